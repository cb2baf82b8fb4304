"""Puts together all that stands between an event of a platform and a queued message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bot.conversations.access import AccessDesk
from bot.conversations.answers import Answers
from bot.conversations.command_calls import CommandPorts
from bot.conversations.commands import CommandDesk
from bot.conversations.groups import GroupDesk
from bot.conversations.hearing import Hearing
from bot.conversations.intake import Intake
from bot.conversations.pairing import PairingDesk
from bot.conversations.presses import DecisionDesk, PressDesk
from bot.conversations.reception import Reception, ReceptionPorts
from bot.conversations.revisions import Revisions
from bot.conversations.router import Router, RouterPorts
from bot.conversations.sink import InboxSink
from channels.contract import Channel
from core.contracts.attachments import AttachmentStore
from core.contracts.backend import Backend
from core.contracts.clock import Clock
from core.contracts.delivery import DeliveryStore
from core.contracts.ids import ConversationId
from core.contracts.ledger import TurnLedger
from core.contracts.memory import MemoryStore
from core.contracts.people import PeopleStore
from core.contracts.store import TranscriptStore


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundPorts:
    """What the way in stands on."""

    backend: Backend
    transcripts: TranscriptStore
    ledger: TurnLedger
    delivery: DeliveryStore
    people: PeopleStore
    attachments: AttachmentStore
    memory: MemoryStore
    access: AccessDesk
    pairings: PairingDesk
    decisions: DecisionDesk
    channels: Mapping[str, Channel]
    clock: Clock
    agents: Callable[[], Mapping[str, str]]
    """Gives the name of the agent of each channel, as it is now."""
    clean: Callable[[str], str]
    """What every text goes through before it is stored: made writable, secrets masked."""
    wake_cancel: Callable[[ConversationId], None]
    ring: Callable[[ConversationId], Awaitable[None]]
    reload: Callable[[], Awaitable[str]]
    files: Path
    """The folder that files of messages are kept under."""
    file_limit_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """The way in: `sink` is where channels hand events, `router` the handler of the inbox queue."""

    sink: InboxSink
    router: Router


def assemble_inbound(ports: InboundPorts) -> Inbound:
    """Put the way in together; does no I/O."""
    answers = Answers(ports.delivery, ports.channels)
    groups = GroupDesk(
        people=ports.people,
        delivery=ports.delivery,
        transcripts=ports.transcripts,
        channels=ports.channels,
        clock=ports.clock,
    )
    reception = _reception(ports, groups, answers)
    router = Router(
        RouterPorts(
            delivery=ports.delivery,
            access=ports.access,
            groups=groups,
            reception=reception,
            revisions=Revisions(delivery=ports.delivery, reception=reception),
            presses=_presses(ports, groups),
            answers=answers,
            channels=ports.channels,
            clock=ports.clock,
        )
    )
    sink = InboxSink(reception.direct_target, ports.delivery, ports.channels, ports.clean)
    return Inbound(sink=sink, router=router)


def _reception(ports: InboundPorts, groups: GroupDesk, answers: Answers) -> Reception:
    return Reception(
        ReceptionPorts(
            backend=ports.backend,
            delivery=ports.delivery,
            ledger=ports.ledger,
            access=ports.access,
            commands=_commands(ports),
            pairings=ports.pairings,
            groups=groups,
            hearing=Hearing(ports.delivery, ports.access),
            intake=Intake(
                attachments=ports.attachments,
                answers=answers,
                channels=ports.channels,
                clock=ports.clock,
                root=ports.files,
                limit_bytes=ports.file_limit_bytes,
            ),
            answers=answers,
            agents=ports.agents,
            wake_cancel=ports.wake_cancel,
        )
    )


def _commands(ports: InboundPorts) -> CommandDesk:
    return CommandDesk(
        CommandPorts(
            backend=ports.backend,
            transcripts=ports.transcripts,
            ledger=ports.ledger,
            delivery=ports.delivery,
            people=ports.people,
            memory=ports.memory,
            clock=ports.clock,
            decisions=ports.decisions,
            pair=ports.pairings.accept,
            wake_cancel=ports.wake_cancel,
            ring=ports.ring,
            reload=ports.reload,
        )
    )


def _presses(ports: InboundPorts, groups: GroupDesk) -> PressDesk:
    return PressDesk(
        decisions=ports.decisions,
        ledger=ports.ledger,
        backend=ports.backend,
        delivery=ports.delivery,
        memory=ports.memory,
        groups=groups,
        channels=ports.channels,
    )
