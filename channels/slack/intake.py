"""From what Slack tells to events that are committed."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable
from dataclasses import replace

from channels.contract import Sink
from channels.health import Health
from channels.slack.acts import ASK, QUESTION, Act, parse_command, parse_form, parse_press, parse_shortcut
from channels.slack.emoji import emoji_of
from channels.slack.inbound import Own, Said, is_public, parse_event
from channels.slack.inbound_text import mentioned, readable
from channels.slack.limits import Timing
from channels.slack.message_ids import message_id
from channels.slack.payload import Json, item, text
from channels.slack.people import People
from channels.slack.places import Places
from channels.slack.presses import Replies
from channels.slack.statuses import Statuses
from channels.slack.streams import Streams
from channels.slack.supervision import awaited
from channels.slack.transport import SlackApi
from channels.supervision import guarded
from channels.workers import Beside
from core.contracts.addresses import (
    Address,
    CommandBody,
    DeleteBody,
    EditBody,
    HomeBody,
    InboundBody,
    InboundEvent,
    MessageBody,
    PressBody,
    Privacy,
    Quote,
    ReactionBody,
    Sender,
)
from core.contracts.clock import Clock
from core.contracts.errors import ChannelError, StoreError

logger = logging.getLogger(__name__)

_HOME_TAB = "home"
_MESSAGES_TAB = "messages"


class Intake:
    """Hands events over, those of one channel in the order in which they came."""

    def __init__(
        self,
        own: Own,
        places: Places,
        people: People,
        *,
        api: SlackApi,
        replies: Replies,
        statuses: Statuses,
        streams: Streams,
        health: Health,
        clock: Clock,
        timing: Timing,
        prompts: tuple[str, ...],
    ) -> None:
        self._own = own
        self._places = places
        self._people = people
        self._api = api
        self._replies = replies
        self._statuses = statuses
        self._streams = streams
        self._health = health
        self._clock = clock
        self._timing = timing
        self._prompts = prompts
        self._orders: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._beside = Beside()

    async def take(self, payload: Json, sink: Sink) -> None:
        """Take one request of Slack's, of whatever kind; when this returns it may be acknowledged.

        Events are committed then. What people wait for is committed at once where that is quick, and
        beside the acknowledgement where it is not (C27).

        Raises:
            StoreError: It could not be stored; Slack has to send it again, or to say that it did not work.
        """
        if "event" in payload:
            await self._event(payload, sink)
        elif (shortcut := parse_shortcut(payload)) is not None:
            self._do_beside(self._replies.ask_about(*shortcut))
        else:
            await self._act(payload, sink)

    async def said(self, said: Said, sink: Sink) -> None:
        """Hand over something that was said, told now or read from the history."""
        async with self._orders[said.channel]:
            event = await self._said_event(said)
            await self._accept(event, sink)
        if isinstance(event.body, MessageBody) and said.user:
            self._streams.note_writer(event.address, said.team or self._own.team, said.user)
            if said.is_direct and said.root is None:
                self._do_beside(self._statuses.entitle(event.address, event.body.text))

    async def aclose(self) -> None:
        """End what goes on beside acknowledgements."""
        await self._beside.aclose()

    async def _event(self, payload: Json, sink: Sink) -> None:
        event = item(payload, "event")
        match text(event, "type"):
            case "app_home_opened":
                await self._home_opened(event, sink)
            case "agent_session_stopped":
                await self._stopped(payload, sink)
            case "reaction_added" | "reaction_removed":
                await self._reaction(event, sink)
            case "tokens_revoked" if not item(event, "tokens").get("bot", True):
                return  # People's own tokens; the app has none of these.
            case "tokens_revoked" | "app_uninstalled":
                self._health.lost("Slack took the app's token back; install the app again and put its new token in.")
            case _:
                said = parse_event(payload, self._own)
                if said is not None:
                    await self.said(said, sink)

    async def _said_event(self, said: Said) -> InboundEvent:
        address = self._places.address(said.channel, said.ts, said.root, is_direct=said.is_direct)
        sender = (
            await self._people.sender(said.user, team=said.team, name=said.name)
            if said.user
            else self._people.bot(said.bot, said.name)
        )
        if said.bot:
            sender = replace(sender, is_bot=True)
        return InboundEvent(
            address=address,
            key=said.key,
            sender=sender,
            body=await self._readable(said),
            privacy=await self._privacy(said),
            sent_at=said.sent_at,
            external_id=said.external_id,
        )

    async def _readable(self, said: Said) -> InboundBody:
        match said.body:
            case MessageBody(text=words) as body:
                return replace(body, text=await self._words(words), addressed=said.is_direct or said.is_mention)
            case EditBody(text=words) as body:
                return replace(body, text=await self._words(words))
            case DeleteBody() as body:
                return body
            case unexpected:
                raise TypeError(f"nobody says {type(unexpected).__name__}")

    async def _words(self, words: str) -> str:
        ids = [user for user in mentioned(words) if user != self._own.user]
        names = dict(zip(ids, await asyncio.gather(*map(self._people.name, ids)), strict=True))
        return readable(words, own=self._own.user, names=names)

    async def _privacy(self, said: Said) -> Privacy:
        if said.is_direct:
            return Privacy.DIRECT
        if said.is_shared or said.kind not in {"", "channel"}:
            return Privacy.PRIVATE_GROUP
        return await self._privacy_of(said.channel, is_public(said.kind))

    async def _privacy_of(self, channel: str, is_known_public: bool = False) -> Privacy:
        """Return who can read a channel; what is not known counts as private."""
        if channel.startswith("D"):
            return Privacy.DIRECT
        room = await self._people.room(channel)
        if room.get("is_im") is True:
            return Privacy.DIRECT
        if not room:
            return Privacy.PUBLIC if is_known_public else Privacy.PRIVATE_GROUP
        is_open = not any(room.get(mark) for mark in ("is_private", "is_mpim", "is_ext_shared"))
        return Privacy.PUBLIC if is_open else Privacy.PRIVATE_GROUP

    async def _home_opened(self, event: Json, sink: Sink) -> None:
        user, tab = text(event, "user"), text(event, "tab")
        if tab == _MESSAGES_TAB and text(event, "channel"):
            self._do_beside(self._statuses.suggest(text(event, "channel"), self._prompts))
        elif tab == _HOME_TAB and user:
            key = f"h/{user}/{text(event, 'event_ts')}"
            await self._accept(await self._done(key, user, self._places.home(user), HomeBody(), Privacy.DIRECT), sink)

    async def _stopped(self, payload: Json, sink: Sink) -> None:
        event = item(payload, "event")
        channel, thread, user = text(event, "channel"), text(event, "thread_ts"), text(event, "user")
        if not (channel and thread and user):
            return
        address = self._places.address(channel, thread, thread, is_direct=channel.startswith("D"))
        key = f"s/{text(payload, 'event_id') or text(event, 'event_ts')}"
        privacy = await self._privacy_of(channel)
        await self._accept(await self._done(key, user, address, CommandBody(text="/cancel"), privacy), sink)

    async def _reaction(self, event: Json, sink: Sink) -> None:
        """Take a reaction to a message of the agent's own; all others are nobody's business."""
        on, user = item(event, "item"), text(event, "user")
        channel, ts = text(on, "channel"), text(on, "ts")
        if text(event, "item_user") != self._own.user or user == self._own.user or not (channel and ts and user):
            return
        added = text(event, "type") == "reaction_added"
        root = await self._root_of(channel, ts)
        emoji = (emoji_of(text(event, "reaction")),) if added else ()
        body = ReactionBody(message=message_id(root, ts), emoji=emoji)
        address = self._places.address(channel, ts, root, is_direct=channel.startswith("D"))
        key = f"r/{channel}/{ts}/{user}/{text(event, 'event_ts')}"
        await self._accept(await self._done(key, user, address, body, await self._privacy_of(channel)), sink)

    async def _root_of(self, channel: str, ts: str) -> str | None:
        """Ask in which thread a message stands: a reaction does not say."""
        try:
            found = await self._api.replies(channel, ts, limit=1)
        except ChannelError as error:
            logger.info("slack_thread_not_told", extra={"detail": error.detail})
            return None
        return next((text(one, "thread_ts") or None for one in found if text(one, "ts") == ts), None)

    async def _act(self, payload: Json, sink: Sink) -> None:
        act: Act | None
        if (command := parse_command(payload)) is not None:
            act, words = command
            body: InboundBody = CommandBody(text=words, acknowledge=act.reply.packed())
        elif (form := parse_form(payload)) is not None:
            callback, act = form
            body = self._question(act) if callback == ASK else _press(act)
        elif (act := parse_press(payload)) is not None:
            body = _press(act)
        else:
            return
        await self._in_grace(self._act_event(act, body, sink))

    async def _act_event(self, act: Act, body: InboundBody, sink: Sink) -> None:
        is_direct = act.channel.startswith("D")
        match body:
            case CommandBody():
                address = self._places.channel(act.channel)
            case _ if not act.channel:
                address = self._places.home(act.user)
            case _:
                address = self._places.address(act.channel, act.ts, act.root, is_direct=is_direct)
        if isinstance(body, MessageBody) and body.quote is not None:
            author = await self._people.name(body.quote.author) if body.quote.author else ""
            words = await self._words(body.quote.text)
            body = replace(body, quote=replace(body.quote, author=author or "somebody", text=words))
        privacy = Privacy.DIRECT if not act.channel else await self._privacy_of(act.channel)
        await self._accept(await self._done(act.key, act.user, address, body, privacy, act), sink)

    def _question(self, act: Act) -> MessageBody:
        said, author = act.quote or ("", "")
        quote = Quote(text=said, author=author, by_agent=author == self._own.user, external_id=act.card or None)
        return MessageBody(text=dict(act.values).get(QUESTION, ""), quote=quote if said else None)

    async def _done(
        self, key: str, user: str, address: Address, body: InboundBody, privacy: Privacy, act: Act | None = None
    ) -> InboundEvent:
        sender: Sender = await self._people.sender(user, team=act.team if act else "", name=act.name if act else "")
        return InboundEvent(
            address=address, key=key, sender=sender, body=body, privacy=privacy, sent_at=self._clock.now()
        )

    async def _accept(self, event: InboundEvent, sink: Sink) -> None:
        try:
            await sink.accept(event)
        except StoreError as error:
            if self._health.stored(succeeded=False):
                logger.warning("slack_event_not_stored", extra={"detail": str(error)})
            raise
        self._health.stored(succeeded=True)

    async def _in_grace(self, work: Awaitable[None]) -> None:
        """Await what somebody waits for, but not longer than Slack may wait; it goes on beside then.

        Raises:
            StoreError: It was not stored, and whoever acted sees at once that it did not work.
        """
        task = self._do_beside(work)
        await awaited(task, at_most=self._timing.press_grace, clock=self._clock)
        if task.done() and (failure := task.result()) is not None:
            raise failure

    def _do_beside(self, work: Awaitable[None]) -> asyncio.Task[StoreError | None]:
        return self._beside.begin(_logged(work))


def _press(act: Act) -> PressBody:
    return PressBody(token=act.token, card=act.card, acknowledge=act.reply.packed(), values=act.values)


async def _logged(work: Awaitable[None]) -> StoreError | None:
    """Await what perhaps nobody can be told the failure of; return why it could not be stored, which is noted."""
    try:
        await guarded(work, unless=StoreError, told="slack_act_crashed")
    except StoreError as error:
        return error
    return None
