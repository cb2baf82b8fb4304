"""Where a host listens for the other commands of its machine."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

_LONGEST_PATH = 100
"""Unix socket paths end at 104 (macOS) or 108 (Linux) bytes."""


def socket_path(data_dir: Path) -> Path:
    """Return the host's socket: in its data directory, or in a short folder where that is too long."""
    path = data_dir / "host.sock"
    if len(str(path).encode()) <= _LONGEST_PATH:
        return path
    digest = hashlib.sha256(str(data_dir).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"lodger-{digest}" / "host.sock"
