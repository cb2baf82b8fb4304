"""Whether a platform is really heard."""

from __future__ import annotations

from channels.contract import Probe


class Health:
    """Notes of the receiving part of one channel; `probe` says what they come to."""

    def __init__(self, platform: str) -> None:
        """Take the platform's name as people write it."""
        self._platform = platform
        self._problem = "not connected yet"
        self._lost = ""
        self._is_storing = True

    @property
    def lost_for_good(self) -> str:
        """Why trying again cannot help; empty while it can."""
        return self._lost

    def lost(self, detail: str) -> None:
        """Note that the platform does not let the host in any more."""
        self._lost = detail

    def began(self) -> None:
        """Note that the channel is run, anew perhaps: what was lost before may have been mended."""
        self._lost = ""

    def connected(self) -> None:
        """Note that a connection stands."""
        self._problem = ""

    def disconnected(self, detail: str) -> None:
        """Note that there is no connection, and why."""
        self._problem = detail

    def stored(self, *, succeeded: bool) -> bool:
        """Note whether an event could be stored; return whether that changed."""
        changed, self._is_storing = self._is_storing is not succeeded, succeeded
        return changed

    def probe(self) -> Probe:
        """Return whether events arrive and are kept."""
        if self._lost:
            return Probe(healthy=False, detail=self._lost)
        if self._problem:
            return Probe(healthy=False, detail=f"{self._platform} is not heard: {self._problem}.")
        if not self._is_storing:
            return Probe(healthy=False, detail=f"{self._platform} is heard, but what it tells cannot be stored.")
        return Probe(healthy=True, detail="connected")
