"""The bot's own account on a fake Discord: its token and what its page in the portal allows."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from enum import IntFlag
from typing import Any

from tests.platforms.discord_guilds import ALICE, BOT, Directory

TOKEN = base64.b64encode(str(BOT).encode()).decode().rstrip("=") + ".Gfake0." + "d" * 38


class Intent(IntFlag):
    """The intents that a session can ask for, as far as they matter here."""

    NONE = 0
    GUILDS = 1 << 0
    GUILD_MEMBERS = 1 << 1
    GUILD_PRESENCES = 1 << 8
    GUILD_MESSAGES = 1 << 9
    GUILD_REACTIONS = 1 << 10
    DIRECT_MESSAGES = 1 << 12
    DIRECT_REACTIONS = 1 << 13
    MESSAGE_CONTENT = 1 << 15


INTENTS = int(
    Intent.GUILDS
    | Intent.GUILD_MESSAGES
    | Intent.GUILD_REACTIONS
    | Intent.DIRECT_MESSAGES
    | Intent.DIRECT_REACTIONS
    | Intent.MESSAGE_CONTENT
)
PRIVILEGED = Intent.GUILD_MEMBERS | Intent.GUILD_PRESENCES | Intent.MESSAGE_CONTENT
KNOWN_INTENTS = (1 << 26) - 1
_LIMITED_FLAGS = {Intent.GUILD_PRESENCES: 1 << 13, Intent.GUILD_MEMBERS: 1 << 15, Intent.MESSAGE_CONTENT: 1 << 19}


@dataclass
class Account:
    """A bot with its application; `privileged` are the intents that its owner has switched on."""

    directory: Directory
    token: str = TOKEN
    privileged: Intent = Intent.MESSAGE_CONTENT
    revoked: bool = False
    is_public: bool = True
    more: dict[str, Any] = field(default_factory=dict)

    def accepts(self, token: str) -> bool:
        return token == self.token and not self.revoked

    @property
    def flags(self) -> int:
        """What the application says of its intents, as a bot in fewer than 100 guilds has them."""
        return sum(flag for intent, flag in _LIMITED_FLAGS.items() if intent in self.privileged)

    def me(self) -> dict[str, Any]:
        """Carry out the request for the bot's own user."""
        return self.directory.bot.as_json() | {"verified": True, "mfa_enabled": True, "locale": "en-US", "flags": 0}

    def application(self) -> dict[str, Any]:
        """Carry out the request for the bot's application; `more` goes over its other fields."""
        shown = {
            "id": str(BOT),
            "name": self.directory.bot.name,
            "icon": None,
            "description": "",
            "summary": "",
            "bot_public": self.is_public,
            "bot_require_code_grant": False,
            "verify_key": "0" * 64,
            "owner": self.directory.users[ALICE].as_json(),
            "team": None,
            "flags": self.flags,
            "interactions_endpoint_url": None,
            "bot": self.directory.bot.as_json(),
        }
        return shown | self.more
