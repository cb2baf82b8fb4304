"""The agent's one reaction to a message; Slack lets an app have many."""

from __future__ import annotations

from channels.slack.answers import Json
from channels.slack.emoji import slack_name
from channels.slack.errors import ReactionGone, ReactionStands
from channels.slack.message_ids import root_and_ts
from channels.slack.transport import SlackApi
from core.contracts.errors import SendRejected


class Reactions:
    """Sets what one app's reaction to a message is."""

    def __init__(self, api: SlackApi) -> None:
        self._api = api
        self._own_user = ""

    async def put(self, channel: str, external_id: str, emoji: str) -> None:
        """Make `emoji` the app's one reaction to a message; empty takes it back. Done twice it changes nothing.

        Raises:
            ChannelError: It could not be set; `SendRejected` where there is no such message or emoji.
        """
        root, ts = root_and_ts(external_id)
        wanted = slack_name(emoji) if emoji else ""
        if emoji and not wanted:
            raise SendRejected(f"Slack has no name for {emoji!r}")
        message = await self._api.message(channel, root, ts)
        if message is None:
            if wanted:
                raise SendRejected("the message to react to is not there any more")
            return
        given = await self._given(message)
        if wanted and wanted not in given:
            await self._add(channel, ts, wanted)
        for name in given:
            if name != wanted:
                await self._take_back(channel, ts, name)

    async def _given(self, message: Json) -> tuple[str, ...]:
        """Return the app's own reactions to a message."""
        if not self._own_user:
            self._own_user = (await self._api.identity()).user
        reactions = message.get("reactions")
        found = [item for item in reactions if isinstance(item, dict)] if isinstance(reactions, list) else []
        return tuple(str(item.get("name")) for item in found if self._own_user in (item.get("users") or ()))

    async def _add(self, channel: str, ts: str, name: str) -> None:
        try:
            await self._api.react(channel, ts, name)
        except ReactionStands:
            return

    async def _take_back(self, channel: str, ts: str, name: str) -> None:
        try:
            await self._api.unreact(channel, ts, name)
        except ReactionGone:
            return
