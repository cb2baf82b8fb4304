"""Home screens: what a person may see and decide on the agent's own page, drawn anew when it changes."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar
from zoneinfo import ZoneInfo

from bot.conversations.access import AccessDesk, Standing
from bot.conversations.cards import approval_card
from bot.conversations.outbox import masked_content
from channels.chunking import measure
from channels.contract import Channel, HomeScreen, HomeSection
from core.contracts.addresses import Address, CardContent, InboundEvent, Privacy
from core.contracts.agents import EVERYONE, Agent, Audience
from core.contracts.backend import Backend
from core.contracts.clock import Clock
from core.contracts.errors import LodgerError, NotFound
from core.contracts.ids import ConversationId, PersonId, TurnId
from core.contracts.ledger import TurnLedger
from core.contracts.memory import MemoryFile, MemoryStore
from core.contracts.people import Person
from core.contracts.permissions import Approval
from core.contracts.runs import Turn, TurnState
from core.permissions.approvals import may_decide
from core.turns.observer import ApprovalsOpened, TurnEvent

logger = logging.getLogger(__name__)

Key = TypeVar("Key")
Kept = TypeVar("Kept")

HOME = "home:"
"""What the chat of a home screen begins with; the platform's id of its person follows."""

REMEMBERED = 50
"""How many home screens, those opened last, are drawn again when something changes."""

_TURNS_REMEMBERED = 200
_FILES_SHOWN = 100
_DESCRIPTION_CHARS = 120
_TOO_LONG = "It is too long to be shown here: decide it where I asked."
_BACKTICKS = re.compile("`+")
_GREETING = "Write to me in a direct message, or mention me where I was let in. /help there lists what I can do."


@dataclass(frozen=True, slots=True, kw_only=True)
class HomePorts:
    """What home screens stand on.

    `screens` holds the channels that have them, by name. `agents` gives the name of the agent of each
    channel and `approvers` who may decide, both as things are now.
    """

    backend: Backend
    ledger: TurnLedger
    memory: MemoryStore
    access: AccessDesk
    channels: Mapping[str, Channel]
    screens: Mapping[str, HomeScreen]
    agents: Callable[[], Mapping[str, str]]
    approvers: Callable[[], Collection[str]]
    clock: Clock
    zone: ZoneInfo
    mask: Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """A screen that somebody opened in this process. The lock keeps an older picture from coming last."""

    event: InboundEvent
    drawing: asyncio.Lock = field(default_factory=asyncio.Lock)


class HomeDesk:
    """Draws home screens. A failure is logged and raises nothing: the next opening, or change, draws anew."""

    def __init__(self, ports: HomePorts) -> None:
        self._ports = ports
        self._opened: OrderedDict[tuple[str, str], _Opened] = OrderedDict()
        self._turns: OrderedDict[TurnId, PersonId] = OrderedDict()
        self._has_changed = asyncio.Event()

    async def open(self, event: InboundEvent, who: Standing) -> None:
        """Draw the screen of the event's sender, who stands as `who` says."""
        key = (event.address.channel, event.sender.identity)
        # What the platform says of them now counts from here on; the lock stays that of their screen.
        known = self._opened.pop(key, None)
        opened = _Opened(event=event) if known is None else replace(known, event=event)
        if who.may_talk:
            _keep(self._opened, key, opened, REMEMBERED)
        async with opened.drawing:
            await self._draw(event, who)

    def changed(self) -> None:
        """Have the screens that were opened last drawn again soon, as far as `run` runs."""
        self._has_changed.set()

    def heard(self, turn: Turn, event: TurnEvent | None) -> None:
        """Take note of what a turn tells; None is its end."""
        if event is None:
            self._turns.pop(turn.id, None)
        elif turn.requester is not None:
            self._turns.pop(turn.id, None)
            _keep(self._turns, turn.id, turn.requester, _TURNS_REMEMBERED)
        if isinstance(event, ApprovalsOpened):
            self.changed()

    async def run(self) -> None:
        """Draw again what has changed, until cancelled."""
        while True:
            await self._has_changed.wait()
            self._has_changed.clear()
            for key in tuple(self._opened):
                await self._draw_again(key)

    async def _draw_again(self, key: tuple[str, str]) -> None:
        opened = self._opened.get(key)
        if opened is None:
            return
        async with opened.drawing:
            # Whoever opened it meanwhile has a newer picture, and maybe no right to this one any more.
            if self._opened.get(key) is opened:
                await self._draw(opened.event)

    async def _draw(self, event: InboundEvent, who: Standing | None = None) -> None:
        """Draw a screen; without `who` it is asked anew: what somebody may see ends with their right to see it."""
        channel = event.address.channel
        try:
            standing = who or await self._ports.access.standing_at(event)
            screen = self._ports.screens.get(channel)
            if screen is None:
                raise NotFound("home screen", channel)
            await screen.show_home(_user(event.sender.identity), await self._sections(channel, standing))
        except LodgerError:
            logger.warning("home_not_drawn", extra={"channel": channel}, exc_info=True)

    async def _sections(self, channel: str, who: Standing) -> tuple[HomeSection, ...]:
        name = self._ports.agents().get(channel, "")
        agent = await self._ports.backend.find_agent(name)
        if agent is None:
            raise NotFound("agent", name)
        if not who.may_talk:
            return (HomeSection(title=agent.name, text=self._how_to_be_let_in()),)
        waiting = await self._ports.ledger.open_approvals_of(agent.id)
        sections = (
            HomeSection(title=agent.name, text=f"{_GREETING}\n\nYou are {who.role} here."),
            await self._decisions(channel, waiting, who),
            await self._doings(agent, waiting, who.person.id),
            await self._memory(agent, who.person),
        )
        return tuple(_masked(section, self._ports.mask) for section in sections)

    def _how_to_be_let_in(self) -> str:
        if self._ports.access.wants_pairing(Privacy.DIRECT):
            return "We have not met. Write to me in a direct message: I answer with a code for my owner."
        return "I do not know you. My owner can add you to the allow list."

    async def _decisions(self, channel: str, waiting: Sequence[Approval], who: Standing) -> HomeSection:
        now, approvers = self._ports.clock.now(), self._ports.approvers()
        cards = [
            await self._card(channel, approval)
            for approval in waiting
            if approval.expires_at > now and may_decide(who.person, who.role, approval, approvers)
        ]
        return HomeSection(
            title="Waiting for your decision", text="" if cards else "Nothing waits.", cards=tuple(cards)
        )

    async def _card(self, channel: str, approval: Approval) -> CardContent:
        card = approval_card([approval], self._ports.zone)
        asked = f"{card.text}\nAsked {await self._place(approval.conversation_id, approval.origin)}."
        limits = self._ports.channels[channel].capabilities
        if measure(self._ports.mask(card.code), limits.text_unit) > limits.code_limit:
            # Nobody approves what they cannot read; where it was asked, all of it stands above the card.
            return replace(card, text=f"{asked} {_TOO_LONG}", rows=())
        return replace(card, text=asked)

    async def _doings(self, agent: Agent, waiting: Sequence[Approval], person_id: PersonId) -> HomeSection:
        """Return what the agent works on for a person in this process, and what of theirs waits for a decision."""
        known = [turn_id for turn_id, requester in self._turns.items() if requester == person_id]
        parked = [approval.turn_id for approval in waiting if approval.requester == person_id]
        turns = [await self._ports.ledger.turn(turn_id) for turn_id in dict.fromkeys([*known, *parked])]
        unfinished = [turn for turn in turns if turn.agent_id == agent.id and turn.state is not TurnState.FINISHED]
        lines = [await self._doing(turn) for turn in sorted(unfinished, key=lambda turn: turn.started_at)]
        return HomeSection(title="What I do for you now", text="\n".join(lines) or "Nothing.")

    async def _doing(self, turn: Turn) -> str:
        since = f"{turn.started_at.astimezone(self._ports.zone):%d %b %H:%M}"
        what = "Waiting for a decision" if turn.state is TurnState.PARKED else f"Working, step {turn.steps + 1}"
        return f"- {what}, {await self._place(turn.conversation_id, turn.origin)}, since {since}"

    async def _place(self, conversation_id: ConversationId, origin: Address | None) -> str:
        """Return where a conversation is held, in words for a person."""
        if origin is None:
            return "outside of any chat"
        audience = (await self._ports.backend.get_conversation(conversation_id)).audience
        is_direct = any(word.startswith("person:") for word in audience.words)
        return f"in a direct chat on {origin.channel}" if is_direct else f"in {origin.chat} on {origin.channel}"

    async def _memory(self, agent: Agent, person: Person) -> HomeSection:
        audience = Audience(words=frozenset({EVERYONE, f"person:{person.id}"}))
        snapshot = await self._ports.memory.snapshot(agent.memory_id, audience)
        lines = list(_tree([file for file in snapshot.files if not file.hidden]))
        return HomeSection(title="What I remember", text=_fenced("\n".join(lines)) if lines else "Nothing yet.")


def _keep(kept: OrderedDict[Key, Kept], key: Key, value: Kept, limit: int) -> None:
    """Add what is newest, and let the oldest go where that is one too many."""
    kept[key] = value
    if len(kept) > limit:
        kept.popitem(last=False)


def is_own_home(event: InboundEvent) -> bool:
    """Whether an event comes from the home screen of whoever sent it, and of nobody else."""
    address, identity = event.address, event.sender.identity
    user = _user(identity)
    return bool(user) and identity.startswith(f"{address.channel}:") and address.chat == f"{HOME}{user}"


def _user(identity: str) -> str:
    """Return the platform's own id of a person: what follows the channel, and the team where it names one."""
    return identity.partition(":")[2].rpartition("/")[2]


def _masked(section: HomeSection, mask: Callable[[str], str]) -> HomeSection:
    """Return a section without secret values: it goes past the outbox, which masks everything else."""
    cards = (masked_content(card, mask) for card in section.cards)
    shown = tuple(card for card in cards if isinstance(card, CardContent))
    return HomeSection(title=mask(section.title), text=mask(section.text), cards=shown)


def _tree(files: Sequence[MemoryFile]) -> Iterator[str]:
    """Yield files, ordered by path, as indented lines below their folders."""
    folders: set[str] = set()
    for file in files[:_FILES_SHOWN]:
        *above, name = file.path.split("/")
        for depth, folder in enumerate(above):
            path = "/".join(above[: depth + 1])
            if path not in folders:
                folders.add(path)
                yield f"{'  ' * depth}{folder}/"
        size = f"{len(file.body):,} of {file.limit_chars:,} characters"
        about = " ".join(file.description.split())[:_DESCRIPTION_CHARS]
        yield f"{'  ' * len(above)}{name}  ({size})  {about}".rstrip()
    if len(files) > _FILES_SHOWN:
        yield f"… and {len(files) - _FILES_SHOWN:,} more: /memory lists all."


def _fenced(text: str) -> str:
    """Return text as a block of code in Markdown that nothing in it can end."""
    fence = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(text)), default=0))
    return f"{fence}\n{text}\n{fence}"
