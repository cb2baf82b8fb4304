"""The running host: its parts side by side until it is told to stop, then a graceful end."""

from __future__ import annotations

import asyncio
import getpass
import logging
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta

from bot.config.checks import secret_values
from bot.config.last_good import Start, keep_last_good
from bot.config.model import LogLevel, LogSettings, Settings
from bot.console.app import build_console
from bot.console.server import serve
from bot.console.sessions import ConsoleSessions
from bot.control.server import build_control
from bot.conversations.access import LOCAL_OWNER
from bot.host import Host
from bot.logs import configure
from bot.sockets import socket_path
from bot.wiring.opening import open_host
from channels.contract import Channel
from core.contracts.addresses import Sender
from core.contracts.clock import SystemClock
from core.contracts.delivery import CONVERSATION_QUEUE, INBOX_QUEUE, OUTBOX_QUEUE
from core.contracts.engine import GaveUp
from core.contracts.errors import ChannelDown, StoreError
from core.contracts.ids import ConversationId
from core.sandbox.workspaces import workspace_problem
from core.secrets.redaction import ValueRedactor

logger = logging.getLogger(__name__)

FLUSH_PATIENCE = timedelta(seconds=5)
"""How long messages that are under way may take after that."""
DRAIN_PATIENCE = timedelta(seconds=20)
"""How long running turns may go on after a stop was asked for; then the next start takes them up."""

_SILENT_SECONDS = 0.5
"""A stop that takes longer says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A host that serves. `console_link` signs a browser in once; empty without a console."""

    host: Host
    console_link: str


async def run_host(start: Start, *, debug: bool) -> int:
    """Run until SIGTERM or SIGINT. A second signal stops at once what is still running.

    SIGHUP has the configuration read again.
    """
    stop, hurry, hangup = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def told_to_stop() -> None:
        (hurry if stop.is_set() else stop).set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told_to_stop)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, hangup.set)
    settings = start.loaded.settings
    async with (
        serving(settings, channels=True, debug=debug, hurry=hurry) as served,
        _reloading(served.host, hangup),
    ):
        await _started(start, served.host)
        _tell(f"Lodger is running. Open {served.console_link}" if served.console_link else "Lodger is running.")
        for problem in await _shell_problems(served.host):
            _tell(problem)
        await stop.wait()
        _tell("")  # after the ^C that the terminal shows
    _tell("Lodger has stopped.")
    return 0


async def _started(start: Start, host: Host) -> None:
    """Keep what the host has started with; where that is not the file as it stands, say so."""
    await asyncio.to_thread(keep_last_good, start.loaded)
    if start.refusal is not None:
        logger.error("started_with_last_good", extra={"reason": str(start.refusal)})
        await host.alerts.tell("configuration-refused", host.redactor.mask(start.notice))


@asynccontextmanager
async def _reloading(host: Host, hangup: asyncio.Event) -> AsyncIterator[None]:
    """Reload at each SIGHUP for the length of the block; owners are told of a refusal."""

    async def reload_at_each() -> None:
        while True:
            await hangup.wait()
            hangup.clear()
            report = await host.reload()
            if report.refusal:
                await host.alerts.tell("configuration-refused", report.text)

    with _lone_errors_unwrapped():
        async with asyncio.TaskGroup() as group:
            task = group.create_task(reload_at_each(), name="reload")
            try:
                yield
            finally:
                task.cancel()


def _tell(text: str) -> None:
    """Write one line to the person who started this process, past the log."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def _shell_problems(host: Host) -> list[str]:
    """Return one line for each agent whose commands cannot run, and what to do about it."""
    report = host.sandbox.report
    if not report.works:
        return [f"The shell tool is off: {report.detail}"]
    tried = {
        name: await workspace_problem(host.sandbox, agent.workspace) for name, agent in host.settings.agents.items()
    }
    return [f"The shell tool of {name} is off: {problem}" for name, problem in tried.items() if problem]


@asynccontextmanager
async def serving(
    settings: Settings, *, channels: bool, debug: bool = False, hurry: asyncio.Event | None = None
) -> AsyncIterator[Serving]:
    """Open a host, run its parts for the length of the block, then drain and close it.

    Raises:
        UnusableFolder, DirectoryInUse, StoreError, CannotListen: The host cannot start; nothing is left open.
    """
    redactor = ValueRedactor(secret_values(settings))

    def log(logs: LogSettings) -> None:
        level = LogLevel.DEBUG if debug else (logs.level if channels else LogLevel.ERROR)
        configure(level=level, form=logs.form, redactor=redactor)

    log(settings.logs)
    for warning in settings.warnings:
        logger.warning("configuration", extra={"warning": warning})
    clock = SystemClock()
    owner = Sender(identity=LOCAL_OWNER, name=_user_name())
    async with AsyncExitStack() as stack:
        host = await stack.enter_async_context(
            open_host(settings, clock=clock, redactor=redactor, channels=channels, log=log)
        )
        for address, webhook in host.webhooks.items():
            # Before the channel runs, so that its platform finds an open door, and closed behind it.
            await stack.enter_async_context(serve(webhook, listen=address))
        await stack.enter_async_context(_running(host, hurry or asyncio.Event()))
        path = socket_path(settings.host.data_dir)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        control = build_control(host.api, host.terminal, owner, host.sessions)
        await stack.enter_async_context(serve(control, uds=path))
        link = ""
        listen = settings.console.listen
        if channels and listen is not None:
            sessions = ConsoleSessions(clock)
            console = build_console(api=host.api, web=host.web, sessions=sessions, clock=clock, owner=owner)
            link = sessions.login_link(
                await stack.enter_async_context(serve(console, listen=f"{listen.host}:{listen.port}"))
            )
        yield Serving(host=host, console_link=link)


@asynccontextmanager
async def _running(host: Host, hurry: asyncio.Event) -> AsyncIterator[None]:
    """Run engine and channels beside the block; afterwards take no more work and let turns end."""
    with _lone_errors_unwrapped():
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_run_channel(host, channel), name=channel.name) for channel in host.channels.values()
            ]
            tasks.append(group.create_task(host.engine.run(host.handlers, _give_up(host)), name="engine"))
            tasks += [
                group.create_task(host.warm(), name="warm"),
                group.create_task(host.watch.run(), name="watch"),
                group.create_task(host.draw_homes(), name="homes"),
                group.create_task(host.retention.run(), name="retention"),
            ]
            try:
                yield
            finally:
                await _drain(host, hurry)
                for task in tasks:
                    task.cancel()


@contextmanager
def _lone_errors_unwrapped() -> Iterator[None]:
    """Let an error of the block out as itself; a task group would hand it on in a group of one."""
    try:
        yield
    except BaseExceptionGroup as group:
        if len(group.exceptions) == 1:
            raise group.exceptions[0] from None
        raise


def _user_name() -> str:
    """Return the name of this process's user; in a container it may have none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # Python 3.13 raises OSError
        return "owner"


async def _run_channel(host: Host, channel: Channel) -> None:
    """Run a channel; one that is refused for good turns readiness red and leaves the others alone."""
    try:
        await channel.run(host.sink)
    except ChannelDown as error:
        logger.exception("channel_refused", extra={"channel": channel.name})
        host.health.channel_ended(channel.name, error)
        await host.watch.channel_ended(channel.name, error)


async def _drain(host: Host, hurry: asyncio.Event) -> None:
    """Stop intake and wait for running turns, until patience or the second signal ends it."""
    host.health.start_draining()
    waiting = asyncio.ensure_future(host.worker.drain(DRAIN_PATIENCE))
    hurried = asyncio.ensure_future(hurry.wait())
    await asyncio.wait({waiting, hurried}, return_when=asyncio.FIRST_COMPLETED, timeout=_SILENT_SECONDS)
    if not (waiting.done() or hurried.done()):
        # On standard error, because the output of a command may be read by a program.
        sys.stderr.write(f"Waiting for running turns, {DRAIN_PATIENCE.seconds} seconds at most. Ctrl-C stops now.\n")
        await asyncio.wait({waiting, hurried}, return_when=asyncio.FIRST_COMPLETED)
    if waiting.done() and not waiting.result():
        logger.warning("drain_ran_out", extra={"patience_seconds": DRAIN_PATIENCE.total_seconds()})
    for task in (waiting, hurried):
        task.cancel()
    await asyncio.gather(waiting, hurried, return_exceptions=True)
    if not hurry.is_set():
        await host.deliverer.drain(FLUSH_PATIENCE)


def _give_up(host: Host) -> GaveUp:
    async def gave_up(queue: str, key: str, error: Exception) -> None:
        logger.error("work_given_up", extra={"queue": queue, "key": key}, exc_info=error)
        if _is_of_the_store(error):
            # Nothing can be recorded now: the engine rests and tries again, and nothing is forgotten.
            raise error
        told = host.redactor.mask(str(error))
        if queue == CONVERSATION_QUEUE:
            await host.worker.give_up(ConversationId(key), told)
        elif queue == INBOX_QUEUE:
            await host.router.give_up(key)
        elif queue == OUTBOX_QUEUE:
            await host.deliverer.give_up(key, told)
        # Behind it: giving up that fails is tried again, and owners are told once.
        host.metrics.gave_up(queue)
        await host.alerts.tell(f"{queue}-given-up", f"I gave up on something in {queue} after several tries: {told}")

    return gave_up


def _is_of_the_store(error: BaseException) -> bool:
    """Whether the store failed, also inside the group that a TaskGroup makes of it."""
    if isinstance(error, BaseExceptionGroup):
        return any(_is_of_the_store(inner) for inner in error.exceptions)
    return isinstance(error, StoreError)
