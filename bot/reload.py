"""Reading the configuration again under a running host: taken on as a whole, or refused as a whole."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from bot.config.changes import adopted, changed_keys
from bot.config.checks import check_folders, secret_values
from bot.config.errors import ConfigError
from bot.config.live import LiveSettings, ModelKeys
from bot.config.load import Loaded
from bot.config.model import LogSettings, Settings
from bot.folders import UnusableFolder
from core.contracts.errors import MemoryRefused, StoreError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadReport:
    """What came of a reload: names of keys, or why nothing changed. Holds no secret."""

    applied: tuple[str, ...] = ()
    """Keys whose new values are in force."""
    restart: tuple[str, ...] = ()
    """Keys whose new values wait for a restart, from this reload or an earlier one."""
    refusal: str = ""
    """Why the configuration is refused; then the other fields are empty."""

    @property
    def text(self) -> str:
        """What whoever asked for the reload is told."""
        if self.refusal:
            return f"The new configuration is refused: {self.refusal}\nNothing has changed, I go on as before."
        lines = (
            f"In force now: {', '.join(self.applied)}." if self.applied else "Nothing has changed.",
            f"These need a restart: {', '.join(self.restart)}." if self.restart else "",
        )
        return "\n".join(line for line in lines if line)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadPorts:
    """What a reload does to the host. Nothing but `load` and `agents` fails."""

    load: Callable[[Path | None], Loaded]
    """Reads and checks that file, or looks for one where it is None; raises `ConfigError`. May block."""
    redact: Callable[[str, str], None]
    """Has a value masked everywhere from now on; takes its name and the value."""
    keys: ModelKeys
    agents: Callable[[Settings], Awaitable[None]]
    """Makes agents as configured: new ones first, so that what fails has changed no agent there was.

    Raises `UnusableFolder`, `MemoryRefused` or `StoreError`.
    """
    log: Callable[[LogSettings], None]
    """Configures the log."""
    keep: Callable[[Loaded], None]
    """Keeps the text for a start at which the file is refused. May block."""
    mask: Callable[[str], str]
    """Hides secrets in a text."""


class Reloader:
    """Puts what stands in the file now in force: for SIGHUP, `/reload`, and whoever else asks."""

    def __init__(self, live: LiveSettings, ports: ReloadPorts) -> None:
        self._live = live
        self._ports = ports
        self._one_at_a_time = asyncio.Lock()

    async def reload(self) -> ReloadReport:
        """Read the configuration and apply what can change live; several reloads wait for each other.

        Turns that run go on. A configuration that is refused, for whatever reason, changes nothing:
        neither this host, nor what the next start falls back to. Cancelled, it may have made agents
        of the new configuration; the rest is all or nothing.
        """
        async with self._one_at_a_time:
            try:
                report = await self._apply(await asyncio.to_thread(self._ports.load, self._live.current.source))
            except (ConfigError, UnusableFolder, MemoryRefused) as error:
                return self._refused(str(error))
            except StoreError:
                logger.exception("configuration_not_applied")
                return self._refused("the database does not take changes just now. Try again later.")
        logger.info("configuration_reloaded", extra={"applied": report.applied, "restart": report.restart})
        return report

    async def _apply(self, loaded: Loaded) -> ReloadReport:
        running, wanted = self._live.current, loaded.settings
        settings = adopted(running, wanted)
        # The file was checked with its own folders; those that stay may forbid its workspaces.
        check_folders(settings, loaded.place)
        self._learn(wanted)
        try:
            await self._ports.agents(settings)
        except BaseException:
            self._ports.keys.add(running.models)
            raise
        self._live.switch(settings)
        self._ports.log(settings.logs)
        await asyncio.to_thread(self._ports.keep, loaded)
        for warning in wanted.warnings:
            logger.warning("configuration", extra={"warning": warning})
        return ReloadReport(applied=changed_keys(running, settings), restart=changed_keys(settings, wanted))

    def _learn(self, settings: Settings) -> None:
        """Have every secret masked, and known to what needs it, before anything can use it."""
        for name, value in secret_values(settings):
            self._ports.redact(name, value)
        self._ports.keys.add(settings.models)

    def _refused(self, reason: str) -> ReloadReport:
        report = ReloadReport(refusal=self._ports.mask(reason))
        logger.error("configuration_refused", extra={"reason": report.refusal})
        return report
