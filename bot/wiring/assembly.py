"""Puts open parts together to a host; does no I/O."""

from __future__ import annotations

from functools import partial
from zoneinfo import ZoneInfo

from bot.agents import access_rules, agent_model, agents_of_channels
from bot.alerts import OwnerAlerts
from bot.config.live import LiveSettings
from bot.conversations.access import AccessDesk
from bot.conversations.answers import Answers
from bot.conversations.groups import GroupDesk
from bot.conversations.home import HomeDesk, HomePorts
from bot.conversations.observer import TurnBus
from bot.conversations.pairing import PairingDesk
from bot.conversations.presses import DecisionDesk
from bot.conversations.sessions.book import BookPorts
from bot.conversations.sessions.books import SessionBooks
from bot.conversations.sink import InboxSink
from bot.health import Health
from bot.host import Host
from bot.metrics import CountingSink, HostMetrics
from bot.retention import Retention
from bot.watch import ChannelWatch
from bot.wiring.messages import make_reception, make_router
from bot.wiring.parts import LOCAL, Desks, Parts
from bot.wiring.service import make_service, make_sessions
from bot.wiring.turns import make_deliverer, make_toolset, make_worker
from core.contracts.delivery import CONVERSATION_QUEUE, INBOX_QUEUE, OUTBOX_QUEUE
from core.contracts.retention import RetentionLimits
from core.contracts.runs import Turn
from core.contracts.tools import Toolset
from core.stores.retention import SqlRetention
from core.turns.observer import TurnEvent


def assemble(live: LiveSettings, parts: Parts) -> Host:
    """Put a host together from open parts.

    What a reload can change is read from `live` at use, the rest now.
    """
    settings = live.current
    toolset = make_toolset(settings, parts)
    desks = _desks(live, parts, toolset)
    worker = make_worker(live, parts, desks, toolset)
    reception = make_reception(live, parts, desks, worker)
    router = make_router(parts, desks, reception)
    deliverer = make_deliverer(settings, parts, desks)
    channels = parts.channels.by_name
    sink = InboxSink(reception.direct_target, parts.stores.delivery, channels, parts.clean)
    health = Health(transcripts=parts.stores.transcripts, sink=sink, sandbox=parts.sandbox, channels=channels)
    alerts = _alerts(live, parts)
    return Host(
        settings=settings,
        api=make_service(settings, parts, desks, health),
        sessions=make_sessions(parts, desks, worker, toolset),
        engine=parts.engine,
        handlers={
            INBOX_QUEUE: router.route_address,
            CONVERSATION_QUEUE: worker.advance,
            OUTBOX_QUEUE: deliverer.deliver_chat,
        },
        worker=worker,
        router=router,
        deliverer=deliverer,
        sink=CountingSink(sink, desks.metrics),
        channels=channels,
        webhooks=parts.channels.webhooks,
        web=parts.channels.web,
        terminal=parts.channels.terminal,
        warm=partial(parts.model.warm, [agent_model(settings, agent) for agent in settings.agents.values()]),
        health=health,
        metrics=desks.metrics,
        alerts=alerts,
        watch=ChannelWatch(
            platforms={channel.name: channel.probe for channel in parts.channels.platforms},
            tell=alerts.tell,
            clock=parts.clock,
        ),
        draw_homes=desks.home.run,
        retention=_retention(live, parts),
        reload=parts.reload,
        sandbox=parts.sandbox,
        redactor=parts.redactor,
        clock=parts.clock,
    )


def _desks(live: LiveSettings, parts: Parts, toolset: Toolset) -> Desks:
    stores, zone = parts.stores, ZoneInfo(live.current.host.time_zone)
    access = AccessDesk(stores.people, lambda: access_rules(live.current))
    metrics = HostMetrics(parts.clock, [schema.name for schema in toolset.schemas])
    books = SessionBooks(
        BookPorts(
            log=stores.sessions,
            ledger=stores.ledger,
            delivery=stores.delivery,
            transcripts=stores.transcripts,
            redactor=parts.redactor,
            clock=parts.clock,
        )
    )
    home = _home(live, parts, access, zone)

    def heard(turn: Turn, event: TurnEvent | None) -> None:
        metrics.heard(turn, event)
        home.heard(turn, event)

    return Desks(
        zone=zone,
        access=access,
        pairings=PairingDesk(people=stores.people, access=access, clock=parts.clock),
        decisions=DecisionDesk(
            ledger=stores.ledger,
            delivery=stores.delivery,
            people=stores.people,
            approvers=lambda: live.current.permissions.approvers,
            clock=parts.clock,
            zone=zone,
            clean=parts.clean,
            changed=home.changed,
        ),
        home=home,
        groups=GroupDesk(
            people=stores.people,
            delivery=stores.delivery,
            transcripts=stores.transcripts,
            channels=parts.channels.by_name,
            clock=parts.clock,
        ),
        answers=Answers(stores.delivery, parts.channels.by_name),
        books=books,
        metrics=metrics,
        bus=TurnBus(record=books.record, count=heard),
    )


def _home(live: LiveSettings, parts: Parts, access: AccessDesk, zone: ZoneInfo) -> HomeDesk:
    return HomeDesk(
        HomePorts(
            backend=parts.backend,
            ledger=parts.stores.ledger,
            memory=parts.memory,
            access=access,
            channels=parts.channels.by_name,
            screens=parts.channels.screens,
            agents=lambda: agents_of_channels(live.current),
            approvers=lambda: live.current.permissions.approvers,
            clock=parts.clock,
            zone=zone,
            mask=parts.redactor.mask,
        )
    )


def _alerts(live: LiveSettings, parts: Parts) -> OwnerAlerts:
    return OwnerAlerts(
        people=parts.stores.people,
        delivery=parts.stores.delivery,
        channels=parts.channels.by_name,
        local=LOCAL,
        owners=lambda: live.current.access.owners,
        clock=parts.clock,
    )


def _retention(live: LiveSettings, parts: Parts) -> Retention:
    def limits() -> RetentionLimits:
        kept = live.current.retention
        return RetentionLimits(
            events=kept.events,
            inbox=kept.inbox,
            sessions=kept.sessions,
            attachments=kept.attachments,
            overflow=kept.overflow,
        )

    return Retention(
        store=SqlRetention(parts.stores.database, parts.clock, shown=("web", "terminal")),
        data_dir=live.current.host.data_dir,
        limits=limits,
        clock=parts.clock,
    )
