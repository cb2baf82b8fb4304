"""What comes in: from the channels' sink to commands, presses and the queue of a conversation."""

from __future__ import annotations

from bot.agents import agents_of_channels
from bot.config.live import LiveSettings
from bot.conversations.command_calls import CommandPorts
from bot.conversations.commands import CommandDesk
from bot.conversations.hearing import Hearing
from bot.conversations.intake import Intake
from bot.conversations.presses import PressDesk
from bot.conversations.reception import Reception, ReceptionPorts
from bot.conversations.revisions import Revisions
from bot.conversations.router import Router, RouterPorts
from bot.conversations.voices import Voices
from bot.conversations.worker import ConversationWorker
from bot.wiring.parts import Desks, Parts


def make_reception(live: LiveSettings, parts: Parts, desks: Desks, worker: ConversationWorker) -> Reception:
    """Return what receives messages: commands, files, groups, and the way to a conversation."""
    stores, settings = parts.stores, live.current
    return Reception(
        ReceptionPorts(
            backend=parts.backend,
            delivery=stores.delivery,
            ledger=stores.ledger,
            access=desks.access,
            commands=_commands(parts, desks, worker),
            pairings=desks.pairings,
            groups=desks.groups,
            hearing=Hearing(stores.delivery, desks.access),
            intake=Intake(
                attachments=stores.attachments,
                answers=desks.answers,
                channels=parts.channels.by_name,
                clock=parts.clock,
                root=settings.host.data_dir / "attachments",
                limit_bytes=settings.host.attachment_limit,
                voices=Voices(
                    attachments=stores.attachments,
                    answers=desks.answers,
                    transcriber=parts.transcriber,
                    clock=parts.clock,
                    clean=parts.clean,
                ),
            ),
            answers=desks.answers,
            agents=lambda: agents_of_channels(live.current),
            wake_cancel=worker.wake_cancel,
        )
    )


def make_router(parts: Parts, desks: Desks, reception: Reception) -> Router:
    """Return the handler of the inbox queue."""
    stores = parts.stores
    presses = PressDesk(
        decisions=desks.decisions,
        ledger=stores.ledger,
        backend=parts.backend,
        delivery=stores.delivery,
        memory=parts.memory,
        groups=desks.groups,
        channels=parts.channels.by_name,
        draw_home=desks.home.open,
    )
    return Router(
        RouterPorts(
            delivery=stores.delivery,
            access=desks.access,
            groups=desks.groups,
            reception=reception,
            revisions=Revisions(delivery=stores.delivery, reception=reception),
            presses=presses,
            answers=desks.answers,
            open_home=desks.home.open,
            channels=parts.channels.by_name,
            clock=parts.clock,
        )
    )


def _commands(parts: Parts, desks: Desks, worker: ConversationWorker) -> CommandDesk:
    stores = parts.stores

    async def reload() -> str:
        return (await parts.reload()).text

    return CommandDesk(
        CommandPorts(
            backend=parts.backend,
            transcripts=stores.transcripts,
            ledger=stores.ledger,
            delivery=stores.delivery,
            people=stores.people,
            memory=parts.memory,
            clock=parts.clock,
            decisions=desks.decisions,
            pair=desks.pairings.accept,
            wake_cancel=worker.wake_cancel,
            ring=stores.delivery.ring,
            reload=reload,
        )
    )
