"""The one table of chat commands, the same on every platform, and how a command is known from other text."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from bot.conversations import memory_commands, rights_commands, turn_commands
from bot.conversations.command_calls import Command, CommandCall, CommandPorts, Who
from channels.contract import CommandMenu, MenuScope
from core.contracts.addresses import MessageBody

_START = "start"
"""What Telegram sends when somebody opens the chat: answered, and not offered."""
_COMMAND = re.compile(r"/(?P<name>[^\W\d_][^\W\d]*)(?:@\w+)?(?:\s+(?P<rest>.*))?", re.DOTALL)
_HOW = (
    "In groups I answer when you mention me or reply to me, once an owner has let me in. I take files in any message.",
    "What you write while I work enters my work at its next step, unless /queue says otherwise; others' words wait.",
)


def command_in(bodies: Sequence[MessageBody]) -> tuple[str, str] | None:
    """Return the command that a message, or the parts of an album, gives; as `parse_command`.

    What is forwarded was said by somebody else, and what is not addressed may come from nobody
    whose rights can be looked at, such as a channel: neither gives commands.
    """
    if any(body.forwarded_from for body in bodies) or not any(body.addressed for body in bodies):
        return None
    return parse_command("\n".join(text for body in bodies if (text := body.text.strip())))


def parse_command(text: str) -> tuple[str, str] | None:
    """Return a command's name and the rest, or None for text that is no command.

    A path such as `/etc/hosts` is no command: a name is letters and underscores alone, and what
    follows it is space, or `@` and the name of a bot.
    """
    found = _COMMAND.fullmatch(text.strip())
    return (found["name"].lower(), found["rest"] or "") if found is not None else None


class CommandDesk:
    """Runs commands and answers in one text."""

    def __init__(self, ports: CommandPorts) -> None:
        self._ports = ports

    async def run(self, call: CommandCall, name: str) -> str:
        """Run a command by name; unknown names and missing rights are answered, never ignored."""
        command = COMMANDS.get(name)
        if command is None:
            return f"There is no command /{name}. /help lists them."
        return await self._refusal(command, call) or await command.run(self._ports, call)

    async def _refusal(self, command: Command, call: CommandCall) -> str:
        """Return why somebody may not give a command; empty where they may."""
        if call.rank >= command.who or (command.in_own_chat and call.is_in_own_chat):
            return ""
        if command.who is not Who.REQUESTER:
            return f"/{command.name} is for an {command.who.name.lower()} of this agent."
        turn = await self._ports.ledger.open_turn(call.conversation.id)
        if turn is None:
            return "Nothing is running."
        if turn.requester == call.who.person.id:
            return ""
        return "Only the person who asked, an operator or an owner may do this."


async def _help(ports: CommandPorts, call: CommandCall) -> str:
    del ports
    offered = [
        command
        for command in COMMANDS.values()
        if command.name != _START and command.is_offered_to(call.rank, in_own_chat=call.is_in_own_chat)
    ]
    lines = [f"/{command.usage} — {command.help}" for command in offered]
    workspace = f"Everyone that {call.agent.name} serves shares its workspace."
    return "\n".join((f"I am {call.agent.name}. Write to me, or use:", *lines, *_HOW, workspace))


def menus(commands: Iterable[Command], *, owners: Collection[str]) -> tuple[CommandMenu, ...]:
    """Return what platforms offer in direct chats, in groups, and to `owners`: the commands people may give there."""
    table = [command for command in commands if command.name != _START]

    def offered(rank: Who, *, in_own_chat: bool) -> tuple[tuple[str, str], ...]:
        return tuple((c.name, c.help) for c in table if c.is_offered_to(rank, in_own_chat=in_own_chat))

    return (
        CommandMenu(scope=MenuScope.DIRECT, commands=offered(Who.MEMBER, in_own_chat=True)),
        CommandMenu(scope=MenuScope.GROUP, commands=offered(Who.MEMBER, in_own_chat=False)),
        CommandMenu(
            scope=MenuScope.OWNERS, commands=offered(Who.OWNER, in_own_chat=True), identities=tuple(sorted(owners))
        ),
    )


def _table(*commands: Command) -> dict[str, Command]:
    return {command.name: command for command in commands}


COMMANDS = _table(
    Command(name="help", usage="help", help="what I can do", who=Who.ANYONE, run=_help),
    Command(name=_START, usage=_START, help="the same as /help", who=Who.ANYONE, run=_help),
    Command(name="new", usage="new", help="start a new conversation here", who=Who.MEMBER, run=turn_commands.new),
    Command(name="cancel", usage="cancel", help="stop what is running", who=Who.REQUESTER, run=turn_commands.cancel),
    Command(name="status", usage="status", help="what I am doing", who=Who.MEMBER, run=turn_commands.status),
    Command(
        name="pause",
        usage="pause",
        help="begin nothing new until you say so",
        who=Who.REQUESTER,
        run=turn_commands.pause,
        in_own_chat=True,
    ),
    Command(
        name="resume",
        usage="resume",
        help="go on after /pause",
        who=Who.REQUESTER,
        run=turn_commands.resume,
        in_own_chat=True,
    ),
    Command(
        name="queue",
        usage="queue [steer|after_turn|interrupt]",
        help="what becomes of messages while I work",
        who=Who.OPERATOR,
        run=turn_commands.queue,
        in_own_chat=True,
    ),
    Command(
        name="mode", usage="mode [MODE]", help="how much runs without asking", who=Who.MEMBER, run=rights_commands.mode
    ),
    Command(
        name="memory",
        usage="memory [show PATH | log | diff REV | undo REV]",
        help="what I remember",
        who=Who.MEMBER,
        run=memory_commands.memory,
    ),
    Command(
        name="remember",
        usage="remember TEXT",
        help="keep this in memory",
        who=Who.MEMBER,
        run=memory_commands.remember,
    ),
    Command(name="whoami", usage="whoami", help="who you are to me", who=Who.ANYONE, run=rights_commands.whoami),
    Command(
        name="why",
        usage="why",
        help="which rules decided the last turn's calls",
        who=Who.MEMBER,
        run=rights_commands.why,
    ),
    Command(
        name="approvals",
        usage="approvals [ID approve|conversation|always|deny [REASON]]",
        help="what waits for a decision",
        who=Who.MEMBER,
        run=rights_commands.approvals,
    ),
    Command(name="pair", usage="pair CODE", help="let somebody in", who=Who.OWNER, run=rights_commands.pair),
    Command(
        name="reload", usage="reload", help="read the configuration again", who=Who.OWNER, run=rights_commands.reload
    ),
)
