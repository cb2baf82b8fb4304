"""The commands that Discord's clients offer, kept as the host wants them."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from channels.contract import CommandMenu
from channels.discord.inbound_interactions import TEXT_OPTION
from channels.discord.limits import COMMAND_HELP_LIMIT_CHARS, COMMAND_NAME_LIMIT_CHARS, COMMANDS_LIMIT, Timing
from channels.discord.transport import DiscordApi
from channels.supervision import Backoff, pause_after
from core.contracts.clock import Clock
from core.contracts.errors import ChannelDown, ChannelError

logger = logging.getLogger(__name__)

ASK_ABOUT_THIS = "Ask about this"
"""The command in the menu of every message."""

_SLASH, _ON_MESSAGE = 1, 3
_TEXT = 3
_IN_SERVERS, _IN_DIRECT = 0, 1
"""docs.discord.com/developers/interactions/application-commands, read on 2026-11-30: types and contexts."""

_NAME = re.compile(rf"[a-z0-9_-]{{1,{COMMAND_NAME_LIMIT_CHARS}}}")
_TEXT_HELP = "what comes behind it, if anything"
_ELLIPSIS = "…"
_COMPARED = ("type", "name", "description", "contexts")


class CommandPublisher:
    """Sets the commands once, and only where Discord offers others."""

    def __init__(
        self, api: DiscordApi, menus: Sequence[CommandMenu], *, application: str, clock: Clock, timing: Timing
    ) -> None:
        self._api = api
        self._commands = commands_of(menus)
        self._application = application
        self._clock = clock
        self._pauses = Backoff(timing.command_retry_first, timing.command_retry_longest)

    async def publish(self) -> None:
        """Return when they are as they should be, trying again for as long as that takes. A refused token ends it."""
        while True:
            try:
                if _compared(await self._api.commands(self._application)) != _compared(self._commands):
                    await self._api.set_commands(self._application, self._commands)
                    logger.info("discord_commands_set", extra={"commands": len(self._commands)})
            except ChannelDown:
                return  # Whoever receives says so.
            except ChannelError as error:
                logger.info("discord_commands_not_set", extra={"detail": error.detail})
                await self._clock.sleep(pause_after(error, self._pauses))
            else:
                return


def commands_of(menus: Iterable[CommandMenu]) -> list[dict[str, Any]]:
    """Return the commands of all menus as Discord takes them: it has one list, and who may what is judged here.

    What cannot be made to fit is left out and logged.
    """
    offered = {name: text.strip() for menu in menus for name, text in menu.commands}
    fitting: list[dict[str, Any]] = [_on_message(ASK_ABOUT_THIS)]
    for name, text in offered.items():
        if _NAME.fullmatch(name) and text and len(fitting) <= COMMANDS_LIMIT:
            fitting.append(_slash(name, text))
        else:
            logger.warning("discord_command_not_offered", extra={"command": name})
    return fitting


def _slash(name: str, text: str) -> dict[str, Any]:
    shown = text if len(text) <= COMMAND_HELP_LIMIT_CHARS else text[: COMMAND_HELP_LIMIT_CHARS - 1] + _ELLIPSIS
    option = {"type": _TEXT, "name": TEXT_OPTION, "description": _TEXT_HELP, "required": False}
    return {
        "type": _SLASH,
        "name": name,
        "description": shown,
        "options": [option],
        "contexts": [_IN_SERVERS, _IN_DIRECT],
    }


def _on_message(name: str) -> dict[str, Any]:
    return {"type": _ON_MESSAGE, "name": name, "description": "", "contexts": [_IN_SERVERS, _IN_DIRECT]}


def _compared(commands: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """Return what makes commands the same or others, in whatever order Discord tells them."""
    return sorted(
        [*(str(command.get(name)) for name in _COMPARED), str([option.get("name") for option in _options(command)])]
        for command in commands
    )


def _options(command: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    options = command.get("options")
    return [option for option in options if isinstance(option, Mapping)] if isinstance(options, list) else []
