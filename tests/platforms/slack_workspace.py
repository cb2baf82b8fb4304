"""Who and what there is in a fake Slack workspace: people, channels, user groups, and its time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from core.contracts.clock import Clock
from tests.platforms.slack_refusals import Refusal, invalid_arguments

if TYPE_CHECKING:
    from tests.platforms.slack_message import Message

Json = dict[str, Any]

TEAM, OTHER_TEAM = "T0TEAM", "T0OTHER"
APP, BOT, BOT_USER = "A0APP", "B0BOT", "U0BOT"
ALICE, BOB, GUEST, EXTERNAL = "U0ALICE", "U0BOB", "U0GUEST", "U0EXT"
OTHER_BOT, OTHER_BOT_USER = "B0OTHER", "U0OTHERBOT"
ROOM, PRIVATE, SHARED = "C0ROOM", "C0PRIVATE", "C0SHARED"
ALICE_DM, BOB_DM, TRIO = "D0ALICE", "D0BOB", "G0TRIO"

_KINDS = {"D": "im", "G": "mpim"}


@dataclass
class Person:
    """A member, guest, stranger of a connected workspace, or bot (`bot_id`)."""

    id: str
    name: str
    team_id: str = TEAM
    bot_id: str = ""
    is_admin: bool = False
    is_owner: bool = False
    is_restricted: bool = False
    is_ultra_restricted: bool = False
    deleted: bool = False

    @property
    def is_stranger(self) -> bool:
        return self.team_id != TEAM

    def as_json(self) -> Json:
        profile = {
            "real_name": self.name.title(),
            "display_name": self.name,
            "team": self.team_id,
            **({"bot_id": self.bot_id, "api_app_id": APP} if self.bot_id else {"email": f"{self.name}@example.com"}),
        }
        return {
            "id": self.id,
            "team_id": self.team_id,
            "name": self.name,
            "deleted": self.deleted,
            "real_name": self.name.title(),
            "tz": "Europe/Berlin",
            "tz_offset": 3600,
            "profile": profile,
            "is_admin": self.is_admin,
            "is_owner": self.is_owner,
            "is_restricted": self.is_restricted,
            "is_ultra_restricted": self.is_ultra_restricted,
            "is_stranger": self.is_stranger,
            "is_bot": bool(self.bot_id),
            "is_app_user": False,
        }


@dataclass
class Channel:
    """One conversation; `kind` is the `channel_type` of its events: channel, group, im or mpim.

    `messages` are those that are kept, by ts, oldest first; `ephemeral` those that one person saw.
    """

    id: str
    name: str = ""
    kind: str = "channel"
    members: list[str] = field(default_factory=list)
    messages: dict[str, Message] = field(default_factory=dict)
    ephemeral: list[Message] = field(default_factory=list)
    is_archived: bool = False
    is_shared: bool = False
    is_open: bool = True

    @property
    def has_bot(self) -> bool:
        return BOT_USER in self.members

    @property
    def is_private(self) -> bool:
        return self.kind != "channel"

    def replies(self, root: str) -> list[Message]:
        """Return the replies of a thread, oldest first."""
        return [message for message in self.messages.values() if message.thread_ts == root]

    def as_json(self) -> Json:
        shown: Json = {
            "id": self.id,
            "created": 1_700_000_000,
            "is_archived": self.is_archived,
            "is_channel": self.kind == "channel",
            "is_group": self.kind == "group",
            "is_im": self.kind == "im",
            "is_mpim": self.kind == "mpim",
            "is_private": self.is_private,
            "is_org_shared": False,
            "is_shared": self.is_shared,
            "is_ext_shared": self.is_shared,
            "context_team_id": TEAM,
        }
        if self.kind == "im":
            other = next(member for member in self.members if member != BOT_USER)
            return shown | {"user": other, "is_user_deleted": False, "is_open": self.is_open}
        return shown | {
            "name": self.name,
            "name_normalized": self.name,
            "is_general": False,
            "is_member": self.has_bot,
            "num_members": len(self.members),
            "creator": ALICE,
            "topic": {"value": "", "creator": "", "last_set": 0},
            "purpose": {"value": "", "creator": "", "last_set": 0},
        }


class Workspace:
    """The people and conversations of one workspace, and the timestamps of what happens in it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_ts = 0
        self.domain = "lodgers"
        self.people = {person.id: person for person in _people()}
        self.channels = {channel.id: channel for channel in _channels()}
        self.usergroups: dict[str, tuple[str, list[str]]] = {"S0OPS": ("ops", [ALICE])}

    @property
    def team(self) -> Json:
        return {"id": TEAM, "domain": self.domain}

    def next_ts(self) -> str:
        """Return a timestamp that no message has yet and that is later than all before."""
        now = int(self._clock.now().timestamp() * 1_000_000)
        self._last_ts = max(now, self._last_ts + 1)
        return f"{self._last_ts // 1_000_000}.{self._last_ts % 1_000_000:06d}"

    def add_person(self, user: str, name: str = "", **fields: Any) -> Person:
        """Let somebody exist; fields as of `Person`."""
        return self.people.setdefault(user, Person(user, name or user.lower(), **fields))

    def add_channel(self, channel: str, name: str = "", kind: str = "", members: tuple[str, ...] = ()) -> Channel:
        """Let a channel exist; without members the bot and Alice are in it."""
        new = Channel(
            channel,
            name=name or channel.lower(),
            kind=kind or _KINDS.get(channel[0], "channel"),
            members=list(members or (BOT_USER, ALICE)),
        )
        return self.channels.setdefault(channel, new)

    def direct(self, user: str) -> Channel:
        """Return the bot's direct channel with somebody, which exists from then on."""
        known = (c for c in self.channels.values() if c.kind == "im" and set(c.members) == {BOT_USER, user})
        return next(known, None) or self.add_channel(f"D{user[1:]}", kind="im", members=(BOT_USER, user))

    def person(self, user: Any) -> Person:
        """Return somebody.

        Raises:
            Refusal: `user_not_found`.
        """
        if (person := self.people.get(str(user))) is None:
            raise Refusal("user_not_found")
        return person

    def seen(self, params: Json, name: str = "channel") -> Channel:
        """Return the channel of a call if the bot can know of it.

        Raises:
            Refusal: `channel_not_found`; a private channel that the bot is not in is not there for it.
        """
        given = params.get(name)
        if not given:
            raise invalid_arguments(f"missing required field: {name} [json-pointer:/{name}]")
        channel = self.channels.get(str(given))
        if channel is None or (channel.is_private and not channel.has_bot):
            raise Refusal("channel_not_found")
        return channel

    def joined(self, params: Json, name: str = "channel") -> Channel:
        """Return the channel of a call if the bot is in it.

        Raises:
            Refusal: `channel_not_found` or `not_in_channel`.
        """
        channel = self.seen(params, name)
        if not channel.has_bot:
            raise Refusal("not_in_channel")
        return channel

    def writable(self, params: Json, name: str = "channel") -> Channel:
        """Return the channel that a call writes to; a person's id means the direct channel.

        Raises:
            Refusal: `channel_not_found`, `not_in_channel` or `is_archived`.
        """
        if str(params.get(name, "")) in self.people:
            return self.direct(str(params[name]))
        channel = self.joined(params, name)
        if channel.is_archived:
            raise Refusal("is_archived")
        return channel


def _people() -> list[Person]:
    return [
        Person(ALICE, "alice", is_admin=True, is_owner=True),
        Person(BOB, "bob"),
        Person(GUEST, "guest", is_restricted=True),
        Person(EXTERNAL, "stranger", team_id=OTHER_TEAM),
        Person(BOT_USER, "lodger", bot_id=BOT),
        Person(OTHER_BOT_USER, "peer", bot_id=OTHER_BOT),
        Person("USLACKBOT", "slackbot"),
    ]


def _channels() -> list[Channel]:
    return [
        Channel(ROOM, "room", members=[BOT_USER, ALICE, BOB, GUEST, OTHER_BOT_USER]),
        Channel(PRIVATE, "private", "group", [BOT_USER, ALICE]),
        Channel(SHARED, "shared", members=[BOT_USER, ALICE, EXTERNAL], is_shared=True),
        Channel(ALICE_DM, kind="im", members=[BOT_USER, ALICE]),
        Channel(BOB_DM, kind="im", members=[BOT_USER, BOB]),
        Channel(TRIO, "mpdm-alice--bob--lodger-1", "mpim", [BOT_USER, ALICE, BOB]),
    ]
