"""The worker of conversations, the loop it runs, and the tools of its turns."""

from __future__ import annotations

from functools import partial

from bot.config.checks import out_of_reach
from bot.config.live import LiveSettings, PolicyInForce
from bot.config.model import NetworkAccess, Settings
from bot.conversations.opening import Openings
from bot.conversations.outbox import Deliverer
from bot.conversations.turn_host import ChatTurnHost, MemoryDoubts
from bot.conversations.worker import ConversationWorker, WorkerPorts
from bot.toolsets.messaging import ALWAYS_ASKED, MessagingPorts, messaging_tools
from bot.toolsets.outgoing_files import OutgoingFiles
from bot.wiring.parts import Desks, Parts
from core.contracts.ids import AgentId
from core.contracts.tools import Toolset
from core.permissions.policy import RulePolicy
from core.sandbox.paths import BeneathFiles
from core.tools.locks import WorkspaceLocks
from core.tools.overflow import OverflowFiles
from core.tools.shell import ShellSettings
from core.tools.toolsets import ToolPorts, default_toolset
from core.tools.view_image import ViewImageTool
from core.tools.wrappers import perform
from core.turns.loop import TurnLoop
from core.turns.services import TurnLimits, TurnServices


def make_worker(live: LiveSettings, parts: Parts, desks: Desks, toolset: Toolset) -> ConversationWorker:
    """Return the handler of the conversations queue."""
    return ConversationWorker(
        WorkerPorts(
            backend=parts.backend,
            ledger=parts.stores.ledger,
            delivery=parts.stores.delivery,
            memory=parts.memory,
            loop=_loop(live, parts, desks),
            access=desks.access,
            decisions=desks.decisions,
            openings=Openings(
                backend=parts.backend,
                attachments=parts.stores.attachments,
                people=parts.stores.people,
                delivery=parts.stores.delivery,
                clock=parts.clock,
                zone=desks.zone,
                clean=parts.clean,
            ),
            channels=parts.channels.by_name,
            toolsets={toolset.id: toolset},
            tools_of=desks.books.tools_of,
            clock=parts.clock,
            bus=desks.bus,
            mask=parts.redactor.mask,
            conceal=lambda text: parts.redactor.stream().feed(text),
            remind_after=lambda: live.current.permissions.remind_after,
        )
    )


def make_deliverer(settings: Settings, parts: Parts, desks: Desks) -> Deliverer:
    """Return the handler of the outbox queue."""
    return Deliverer(
        store=parts.stores.delivery,
        channels=parts.channels.by_name,
        clock=parts.clock,
        card_failed=desks.decisions.card_failed,
        mask=parts.redactor.mask,
        file_done=_outgoing(settings).discard,
    )


def make_toolset(settings: Settings, parts: Parts) -> Toolset:
    """Return the toolset `default`."""
    doubts = MemoryDoubts(parts.memory, parts.stores.ledger)
    messaging = MessagingPorts(
        delivery=parts.stores.delivery,
        channels=parts.channels.by_name,
        files=BeneathFiles,
        outgoing=_outgoing(settings),
        mask=parts.redactor.mask,
    )
    ports = ToolPorts(
        sandbox=parts.sandbox,
        files=BeneathFiles,
        memory=parts.memory,
        redactor=parts.redactor,
        overflow=OverflowFiles(parts.redactor),
        clock=parts.clock,
        was_approved=doubts.was_approved,
        shell=ShellSettings(network=settings.sandbox.network is NetworkAccess.FULL),
    )
    return default_toolset(ports, _view_image(settings, parts), *messaging_tools(messaging))


def _view_image(settings: Settings, parts: Parts) -> ViewImageTool:
    async def sees_images(agent_id: AgentId) -> bool:
        """Return whether a model sees what a tool returns; some take images from people alone."""
        facts = parts.model.facts((await parts.backend.get_agent(agent_id)).model)
        return facts.sees_images and facts.user_after_tool

    return ViewImageTool(
        files=BeneathFiles,
        attachments=parts.stores.attachments,
        root=settings.host.data_dir / "attachments",
        sees_images=sees_images,
        clock=parts.clock,
    )


def _outgoing(settings: Settings) -> OutgoingFiles:
    return OutgoingFiles(settings.host.data_dir / "outgoing")


def _loop(live: LiveSettings, parts: Parts, desks: Desks) -> TurnLoop:
    settings = live.current
    doubts = MemoryDoubts(parts.memory, parts.stores.ledger)
    return TurnLoop(
        TurnServices(
            backend=parts.backend,
            ledger=parts.stores.ledger,
            policy=PolicyInForce(lambda: RulePolicy((*ALWAYS_ASKED, *live.current.permissions.rules))),
            perform=partial(perform, redactor=parts.redactor, overflow=OverflowFiles(parts.redactor)),
            doubt=doubts.question,
            locks=WorkspaceLocks(),
            host=ChatTurnHost(
                access=desks.access,
                delivery=parts.stores.delivery,
                channels=parts.channels.by_name,
                zone=desks.zone,
                overflow_root=settings.host.data_dir / "overflow",
                attachments_root=settings.host.data_dir / "attachments",
                forbidden=out_of_reach(settings),
                mask=parts.redactor.mask,
            ),
            clock=parts.clock,
            limits=TurnLimits(),
            approval_deadline=lambda: live.current.permissions.deadline,
        )
    )
