"""The commands that a bot offers on a fake Discord, everywhere or in one guild.

Limits follow Discord's page on application commands, as read on 2026-11-30.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import date
from typing import Any

from core.contracts.clock import Clock
from tests.platforms.discord_guilds import BOT, Directory
from tests.platforms.discord_refusals import Refusal, bad_length, invalid_form
from tests.platforms.discord_snowflakes import Snowflakes

CHAT_INPUT = 1
USER = 2
MESSAGE = 3
LIMITS = {CHAT_INPUT: 100, USER: 15, MESSAGE: 15}
OPTIONS_LIMIT = 25
HELP_LIMIT_CHARS = 100
NAME_LIMIT_CHARS = 32
CREATES_LIMIT = 200

_NAME = re.compile(r"[-_'\w]{1,32}")

Command = dict[str, Any]


class Commands:
    """Commands by the guild they are for; None: everywhere. `writes` counts the requests that changed them."""

    def __init__(self, clock: Clock, ids: Snowflakes, directory: Directory) -> None:
        self.writes = 0
        self._clock = clock
        self._ids = ids
        self._directory = directory
        self._commands: dict[int | None, list[Command]] = {}
        self._created: Counter[tuple[int | None, date]] = Counter()

    def names(self, guild_id: int | None = None, kind: int = CHAT_INPUT) -> list[str]:
        """Return the names of the commands that were set for a guild, or for everywhere."""
        return [command["name"] for command in self.all_of(guild_id) if command["type"] == kind]

    def offered(self, name: str, kind: int, guild_id: int | None) -> Command:
        """Return the command that somebody finds under a name in a guild, or in a direct conversation."""
        places = (guild_id, None) if guild_id is not None else (None,)
        everything = [command for place in places for command in self.all_of(place)]
        found = [command for command in everything if (command["name"], command["type"]) == (name, kind)]
        assert found, f"there is no command {name!r}"
        contexts = found[0].get("contexts")
        assert contexts is None or (1 if guild_id is None else 0) in contexts, f"command {name!r} is not offered there"
        return found[0]

    def all_of(self, guild_id: int | None = None) -> list[Command]:
        """Carry out the request for the commands of a guild, or of everywhere."""
        return self._commands.get(guild_id, [])

    def overwrite(self, app_id: int, guild_id: int | None, body: Any) -> list[Command]:
        """Carry out the request to set all commands of a guild, or of everywhere."""
        if app_id != BOT:
            raise Refusal(403, 20012, "You are not authorized to perform this action on this application")
        if guild_id is not None:
            self._directory.guild_of_bot(guild_id)
        if not isinstance(body, list):
            raise invalid_form("", "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType")
        before = {(command["name"], command["type"]): command for command in self.all_of(guild_id)}
        after = [self._command(number, asked, guild_id) for number, asked in enumerate(body)]
        names = [(command["name"], command["type"]) for command in after]
        self._check_numbers(names)
        for command, name in zip(after, names, strict=True):
            if name in before:
                command["id"] = before[name]["id"]
        self._charge(guild_id, len(set(names) - set(before)))
        self._commands[guild_id] = after
        self.writes += 1
        return after

    def _command(self, number: int, asked: dict[str, Any], guild_id: int | None) -> Command:
        kind = int(asked.get("type") or CHAT_INPUT)
        path = str(number)
        if kind == CHAT_INPUT:
            _check_text(asked, path)
            _check_options(asked.get("options") or [], path)
        elif not 1 <= len(str(asked.get("name") or "")) <= NAME_LIMIT_CHARS:
            raise bad_length(f"{path}.name", 1, NAME_LIMIT_CHARS)
        elif asked.get("description"):
            message = "Context menu commands cannot have description"
            raise invalid_form(f"{path}.description", "APPLICATION_COMMANDS_DESCRIPTION_NOT_ALLOWED", message)
        command = {"description": "", "options": [], "contexts": None, "integration_types": [0], "nsfw": False} | asked
        command |= {"type": kind, "id": str(self._ids.next()), "application_id": str(BOT)}
        command |= {"version": command["id"], "default_member_permissions": asked.get("default_member_permissions")}
        return command | ({} if guild_id is None else {"guild_id": str(guild_id)})

    def _check_numbers(self, names: list[tuple[str, int]]) -> None:
        if len(set(names)) < len(names):
            message = "Application command names must be unique"
            raise invalid_form("", "APPLICATION_COMMANDS_DUPLICATE_NAME", message)
        for kind, limit in LIMITS.items():
            if sum(1 for _, other in names if other == kind) > limit:
                raise Refusal(400, 30032, f"Maximum number of application commands reached ({limit})")

    def _charge(self, guild_id: int | None, created: int) -> None:
        today = (guild_id, self._clock.now().date())
        if self._created[today] + created > CREATES_LIMIT:
            message = f"Max number of daily application command creates has been reached ({CREATES_LIMIT})"
            raise Refusal(400, 30034, message)
        self._created[today] += created


def _check_text(asked: dict[str, Any], path: str) -> None:
    name = str(asked.get("name") or "")
    if not _NAME.fullmatch(name) or name != name.lower():
        message = f"Command name is invalid: {name!r}"
        raise invalid_form(f"{path}.name", "APPLICATION_COMMAND_INVALID_NAME", message)
    if not 1 <= len(asked.get("description") or "") <= HELP_LIMIT_CHARS:
        raise bad_length(f"{path}.description", 1, HELP_LIMIT_CHARS)


def _check_options(options: list[dict[str, Any]], path: str) -> None:
    if len(options) > OPTIONS_LIMIT:
        raise bad_length(f"{path}.options", 0, OPTIONS_LIMIT)
    needed = [bool(option.get("required")) for option in options]
    if needed != sorted(needed, reverse=True):
        message = "Required options must be placed before non-required options"
        raise invalid_form(f"{path}.options", "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", message)
    for number, option in enumerate(options):
        _check_text(option, f"{path}.options.{number}")
        _check_options(option.get("options") or [], f"{path}.options.{number}")
        if len(option.get("choices") or []) > OPTIONS_LIMIT:
            raise bad_length(f"{path}.options.{number}.choices", 0, OPTIONS_LIMIT)
