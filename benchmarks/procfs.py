"""What the kernel says about a process: memory and processor time."""

from __future__ import annotations

import os
from pathlib import Path

_UTIME, _STIME = 11, 12
"""Positions behind the command's closing bracket in /proc/PID/stat, from proc(5)."""


def rss_mb(pid: int) -> float:
    """Return the resident memory of a process in units of 10^6 bytes."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    kib = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(kib) * 1024 / 1e6


def cpu_seconds(pid: int) -> float:
    """Return the processor time a process has used, all threads, in steps of a clock tick."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[_UTIME]) + int(fields[_STIME])) / os.sysconf("SC_CLK_TCK")
