"""The menus of commands that Telegram's clients offer, kept as the host wants them."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta

from telegram import (
    BotCommandScope,
    BotCommandScopeAllGroupChats,
    BotCommandScopeAllPrivateChats,
    BotCommandScopeChat,
)

from channels.contract import CommandMenu, MenuScope
from channels.supervision import Backoff
from channels.telegram.limits import COMMAND_HELP_LIMIT_CHARS, COMMAND_NAME_LIMIT_CHARS, COMMANDS_LIMIT, Timing
from channels.telegram.transport import BotApi
from core.contracts.clock import Clock
from core.contracts.errors import ChannelDown, ChannelError, SendLimited

logger = logging.getLogger(__name__)

_NAME = re.compile(rf"[a-z0-9_]{{1,{COMMAND_NAME_LIMIT_CHARS}}}")
_ELLIPSIS = "…"

_Commands = tuple[tuple[str, str], ...]
_Offer = tuple[BotCommandScope, _Commands]


class MenuPublisher:
    """Sets each menu once, and only where Telegram offers another one."""

    def __init__(
        self, api: BotApi, menus: Sequence[CommandMenu], *, channel: str, clock: Clock, timing: Timing
    ) -> None:
        self._api = api
        self._menus = menus
        self._channel = channel
        self._clock = clock
        self._pauses = Backoff(timing.menu_retry_first, timing.menu_retry_longest)

    async def publish(self) -> None:
        """Return when every menu is as it should be, trying again for as long as that takes.

        An owner's own menu has to wait until the owner has written to the bot. A refused token ends it.
        """
        missing = [offer for menu in self._menus for offer in _offers(menu, self._channel)]
        while missing:
            try:
                waits = [(offer, await self._offer(*offer)) for offer in missing]
            except ChannelDown:
                return  # whoever receives says so
            missing = [offer for offer, wait in waits if wait is not None]
            if missing:
                longest = max(wait for _, wait in waits if wait is not None)
                await self._clock.sleep(max(longest, self._pauses.next()))

    async def _offer(self, scope: BotCommandScope, commands: _Commands) -> timedelta | None:
        """Let a menu be offered; where it could not be, return how long to wait at least."""
        try:
            if await self._api.commands(scope) != commands:
                await self._api.set_commands(scope, commands)
                logger.info("telegram_menu_set", extra={"channel": self._channel, "scope": scope.type})
        except ChannelDown:
            raise
        except ChannelError as error:
            logger.info("telegram_menu_not_set", extra={"scope": scope.type, "detail": error.detail})
            return error.retry_after if isinstance(error, SendLimited) else timedelta(0)
        return None


def _offers(menu: CommandMenu, channel: str) -> Iterator[_Offer]:
    """Give the scopes that a menu is for, each with what Telegram takes of it."""
    commands = _fitting(menu.commands)
    match menu.scope:
        case MenuScope.DIRECT:
            yield BotCommandScopeAllPrivateChats(), commands
        case MenuScope.GROUP:
            yield BotCommandScopeAllGroupChats(), commands
        case MenuScope.OWNERS:
            for identity in menu.identities:
                platform, _, person = identity.partition(":")
                if platform == channel and person.isdecimal():
                    # A private chat has the id of its person.
                    yield BotCommandScopeChat(int(person)), commands


def _fitting(commands: _Commands) -> _Commands:
    """Return commands within Telegram's limits; what cannot be made to fit is left out and logged."""
    fitting: list[tuple[str, str]] = []
    for name, text in commands:
        if _NAME.fullmatch(name) and text.strip() and len(fitting) < COMMANDS_LIMIT:
            fitting.append((name, _shortened(text.strip())))
        else:
            logger.warning("telegram_command_not_offered", extra={"command": name})
    return tuple(fitting)


def _shortened(text: str) -> str:
    return text if len(text) <= COMMAND_HELP_LIMIT_CHARS else text[: COMMAND_HELP_LIMIT_CHARS - 1] + _ELLIPSIS
