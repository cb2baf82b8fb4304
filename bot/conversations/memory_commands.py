"""`/memory` and `/remember`: an agent's memory from the chat."""

from __future__ import annotations

from bot.conversations.access import Standing
from bot.conversations.command_calls import CommandCall, CommandPorts
from bot.conversations.presses import find_commit, undo_commit
from core.contracts.agents import Agent, Audience
from core.contracts.errors import MemoryConflict, MemoryRefused, NotFound
from core.contracts.memory import ChangeKind, CommitOrigin, MemoryChange, MemoryStore
from core.contracts.permissions import PersonRole

NOTES = "notes.md"
_LOG_LINES = 15


async def memory(ports: CommandPorts, call: CommandCall) -> str:
    """Show, or undo a commit of, the agent's memory."""
    commands = MemoryCommands(ports.memory)
    return await commands.run(call.rest, agent=call.agent, audience=call.conversation.audience, who=call.who)


async def remember(ports: CommandPorts, call: CommandCall) -> str:
    """Keep a fact that a person tells."""
    commands = MemoryCommands(ports.memory)
    return await commands.remember(call.rest, agent=call.agent, audience=call.conversation.audience, who=call.who)


class MemoryCommands:
    """Shows and changes memory for a person, within what the conversation's audience may see."""

    def __init__(self, memory: MemoryStore) -> None:
        self._memory = memory

    async def run(self, rest: str, *, agent: Agent, audience: Audience, who: Standing) -> str:
        """Answer `/memory ...`; an unknown word is answered with the usage."""
        match rest.split():
            case []:
                return await self._tree(agent, audience)
            case ["show", path]:
                return await self._show(agent, audience, path)
            case ["log"]:
                return await self._log(agent, audience)
            case ["diff", revision]:
                return await self._diff(agent, audience, revision)
            case ["undo", revision]:
                return await self._undo(agent, revision, _origin(who, audience))
            case _:
                return "Use: /memory, /memory show PATH, /memory log, /memory diff REV, /memory undo REV"

    async def remember(self, text: str, *, agent: Agent, audience: Audience, who: Standing) -> str:
        """Append a line to the notes, as a commit by the person."""
        if not text:
            return "What shall I remember? /remember TEXT"
        try:
            file = await self._memory.read(agent.memory_id, NOTES, audience)
        except NotFound:
            change = MemoryChange(
                kind=ChangeKind.CREATE,
                path=NOTES,
                text=f"- {text}\n",
                description="Facts that people asked me to remember",
            )
        else:
            body = f"{file.body.rstrip()}\n- {text}\n"
            change = MemoryChange(kind=ChangeKind.REPLACE, path=NOTES, text=body, description=file.description)
        try:
            commit = await self._memory.commit(
                agent.memory_id, [change], message=f"Remember: {text[:60]}", origin=_origin(who, audience)
            )
        except (MemoryRefused, MemoryConflict) as error:
            return f"Not remembered: {error}"
        return f"Remembered in {NOTES} ({commit.revision[:10]})."

    async def _tree(self, agent: Agent, audience: Audience) -> str:
        snapshot = await self._memory.snapshot(agent.memory_id, audience)
        lines = [
            f"{file.path}  {len(file.body)}/{file.limit_chars}  {file.description}"
            for file in snapshot.files
            if not file.hidden
        ]
        return "```\n" + "\n".join(lines) + f"\n```\nRevision {snapshot.revision[:10]}."

    async def _show(self, agent: Agent, audience: Audience, path: str) -> str:
        try:
            file = await self._memory.read(agent.memory_id, path, audience)
        except NotFound:
            return f"There is no {path!r} in memory. /memory lists the files."
        return f"{file.path}: {file.description}\n\n{file.body}"

    async def _log(self, agent: Agent, audience: Audience) -> str:
        commits = await self._memory.log(agent.memory_id, limit=_LOG_LINES, audience=audience)
        return "\n".join(
            f"`{commit.revision[:10]}` {commit.committed_at:%d %b %H:%M} {commit.author}: {commit.message}"
            for commit in commits
        )

    async def _diff(self, agent: Agent, audience: Audience, revision: str) -> str:
        commit = await find_commit(self._memory, agent.memory_id, revision)
        if commit is None:
            return f"There is no commit {revision!r}. /memory log lists them."
        return f"```diff\n{await self._memory.diff(agent.memory_id, commit.revision, audience)}\n```"

    async def _undo(self, agent: Agent, revision: str, origin: CommitOrigin) -> str:
        commit = await find_commit(self._memory, agent.memory_id, revision)
        if commit is None:
            return f"There is no commit {revision!r}. /memory log lists them."
        return await undo_commit(self._memory, agent.memory_id, commit.revision, origin)


def _origin(who: Standing, audience: Audience) -> CommitOrigin:
    trusted = who.role in {PersonRole.OWNER, PersonRole.OPERATOR}
    return CommitOrigin(author=who.person.name, audience=audience, person=who.person.id, approved=trusted)
