"""A port at which a process dies: what tests of crashes put in the way."""

from __future__ import annotations

from core.contracts.errors import StoreUnavailable


class Dying:
    """Passes everything on, and dies at one method: before what it does, or behind it.

    `passes` is how often the method may still be called.
    """

    def __init__(self, inner, name: str, *, behind: bool = False, passes: int = 0) -> None:
        self._inner, self._name, self._behind = inner, name, behind
        self.passes = passes

    def __getattr__(self, name):
        return self._die if name == self._name else getattr(self._inner, name)

    async def _die(self, *args, **more):
        method = getattr(self._inner, self._name)
        if self.passes:
            self.passes -= 1
            return await method(*args, **more)
        if self._behind:
            await method(*args, **more)
        raise StoreUnavailable("killed")
