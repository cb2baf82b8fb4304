"""What the console, the command line and sessions may ask, and the parts that only they use."""

from __future__ import annotations

from functools import partial

from bot.backup import Backups
from bot.config.model import Settings
from bot.conversations.headless import Headless
from bot.conversations.sessions.desk import DeskPorts, SessionDesk
from bot.conversations.worker import ConversationWorker
from bot.doctor import Doctor, DoctorPorts
from bot.health import Health
from bot.host_service import HostService, ServicePorts
from bot.trace import Tracer
from bot.wiring.parts import Desks, Parts
from core.contracts.tools import Toolset
from core.memory.snapshot import GitCopies
from core.sandbox.workspaces import workspace_problem
from core.stores.snapshot import SqliteFreezer


def make_service(settings: Settings, parts: Parts, desks: Desks, health: Health) -> HostService:
    """Return the services for the person at this machine."""
    stores = parts.stores
    headless = Headless(
        backend=parts.backend,
        transcripts=stores.transcripts,
        ledger=stores.ledger,
        delivery=stores.delivery,
        access=desks.access,
        channel=parts.channels.headless,
        bus=desks.bus,
        redactor=parts.redactor,
    )
    return HostService(
        ServicePorts(
            backend=parts.backend,
            transcripts=stores.transcripts,
            ledger=stores.ledger,
            delivery=stores.delivery,
            people=stores.people,
            memory=parts.memory,
            access=desks.access,
            decisions=desks.decisions,
            pairings=desks.pairings,
            headless=headless,
            readiness=health.checks,
            mask=parts.redactor.mask,
            metrics=desks.metrics,
            doctor=_doctor(settings, parts),
            tracer=_tracer(parts),
            backups=_backups(settings, parts),
        )
    )


def make_sessions(parts: Parts, desks: Desks, worker: ConversationWorker, toolset: Toolset) -> SessionDesk:
    """Return what serves two-way sessions."""
    stores = parts.stores
    return SessionDesk(
        DeskPorts(
            books=desks.books,
            backend=parts.backend,
            transcripts=stores.transcripts,
            ledger=stores.ledger,
            delivery=stores.delivery,
            access=desks.access,
            decisions=desks.decisions,
            toolsets={toolset.id: toolset},
            clock=parts.clock,
            redactor=parts.redactor,
            clean=parts.clean,
            wake_cancel=worker.wake_cancel,
        )
    )


def _doctor(settings: Settings, parts: Parts) -> Doctor:
    return Doctor(
        DoctorPorts(
            settings=settings,
            transcripts=parts.stores.transcripts,
            people=parts.stores.people,
            memory=parts.memory,
            model=parts.model,
            sandbox=parts.sandbox,
            workspace_problem=partial(workspace_problem, parts.sandbox),
            platforms=parts.diagnosed,
            clock=parts.clock,
            mask=parts.redactor.mask,
        )
    )


def _tracer(parts: Parts) -> Tracer:
    return Tracer(
        transcripts=parts.stores.transcripts,
        ledger=parts.stores.ledger,
        delivery=parts.stores.delivery,
        mask=parts.redactor.mask,
    )


def _backups(settings: Settings, parts: Parts) -> Backups:
    data_dir = settings.host.data_dir
    return Backups(
        data_dir=data_dir,
        database=SqliteFreezer(parts.stores.database, data_dir / "host.db"),
        memory=GitCopies(data_dir / "memory", parts.clock),
        clock=parts.clock,
    )
