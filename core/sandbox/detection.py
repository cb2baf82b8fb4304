"""Which sandbox this machine offers, found by running each."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from core.contracts.errors import InvalidInput, SandboxUnavailable
from core.contracts.sandbox import Sandbox
from core.sandbox.bubblewrap import open_bubblewrap
from core.sandbox.host import UnsafeHostShell
from core.sandbox.landlock import open_landlock
from core.sandbox.refused import RefusingSandbox

KINDS = ("auto", "bubblewrap", "landlock", "unsafe_host_shell")

_OPENERS: Mapping[str, Callable[[Path], Awaitable[Sandbox]]] = {
    "bubblewrap": open_bubblewrap,
    "landlock": open_landlock,
}
"""In the order in which `auto` tries them."""


async def open_sandbox(kind: str, *, scratch: Path, platform: str = sys.platform) -> Sandbox:
    """Return the configured sandbox, or one that refuses with the reason of each that was tried.

    `auto` never ends in `unsafe_host_shell`, and a kind that is named is never replaced by another.

    Args:
        kind: One of `KINDS`.
        scratch: A folder of the host's own, made if missing, for trial runs.
        platform: As `sys.platform` names it.

    Raises:
        InvalidInput: There is no such kind.
    """
    if kind not in KINDS:
        raise InvalidInput(f"sandbox kind {kind!r} is none of {', '.join(KINDS)}")
    if kind == "unsafe_host_shell":
        return UnsafeHostShell()
    if platform != "linux":
        return RefusingSandbox(f"no sandbox is built for {platform!r} yet, only for Linux (on Windows: WSL2)")
    reasons: list[str] = []
    for name in _OPENERS if kind == "auto" else (kind,):
        try:
            return await _OPENERS[name](scratch)
        except SandboxUnavailable as error:
            reasons.append(f"{name}: {error.reason}")
    return RefusingSandbox("; ".join(reasons))
