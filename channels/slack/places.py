"""Which conversation a message belongs to, in each of the modes; pure."""

from __future__ import annotations

from dataclasses import dataclass

from core.contracts.addresses import Address

THREAD, CHAT = "thread", "chat"
HOME = "home:"
"""What the chat of a home screen begins with; the id of its person follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The places of one workspace.

    `direct` and `rooms` say what one conversation is held in, in direct messages and elsewhere:
    `thread`, each message that begins a thread and its replies, or `chat`, all of a channel.
    """

    name: str
    team: str
    direct: str = THREAD
    rooms: str = THREAD

    def address(self, channel: str, ts: str, root: str | None, *, is_direct: bool) -> Address:
        """Return where a message is held: one of the thread of `root`, or in the channel itself."""
        mode = self.direct if is_direct else self.rooms
        return self.channel(channel, thread=(root or ts) if mode == THREAD else None)

    def channel(self, channel: str, thread: str | None = None) -> Address:
        """Return a channel as a whole, or a thread in it."""
        return Address(channel=self.name, account=self.team, chat=channel, thread=thread, space=self.team)

    def home(self, user: str) -> Address:
        """Return the home screen of a person."""
        return self.channel(f"{HOME}{user}")
