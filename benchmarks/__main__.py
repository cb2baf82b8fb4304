"""Runs benchmarks by name and prints their figures; asserts nothing about them."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import os
import platform
import sys
import time

from benchmarks.scale import Scale
from core.contracts.errors import LodgerError

NAMES = (
    "start_up",
    "telegram_turn",
    "one_turn",
    "stream_1000",
    "crowd",
    "platforms",
    "prefix_reuse",
    "first_request",
    "prompt_floor",
    "memory_git",
    "parked",
    "one_conversation",
    "many_turns",
)
LIMIT_SECONDS = 1_800
"""No benchmark runs longer, whatever hangs."""


async def run(names: tuple[str, ...], scale: Scale, *, markdown: bool) -> bool:
    """Run benchmarks one after the other; return whether all of them came to their end."""
    complete = True
    for name in names:
        module = importlib.import_module(f"benchmarks.{name}")
        began = time.monotonic()
        try:
            async with asyncio.timeout(LIMIT_SECONDS):
                async for figure in module.measure(scale):
                    print(figure.row() if markdown else figure.line(), flush=True)
        except (LodgerError, OSError, AssertionError) as error:
            complete = False
            print(f"{name} came to no end: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return complete


def main() -> int:
    """Parse the command line and return the exit code: 1 when a benchmark broke."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones; all: {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="small numbers, to see that they work")
    parser.add_argument("--markdown", action="store_true", help="print rows for docs/benchmarks.md")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(NAMES))
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}")
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Python "
        f"{platform.python_version()}. Peers were measured elsewhere: only ratios within one run compare.",
        file=sys.stderr,
    )
    names = tuple(options.names) or NAMES
    return 0 if asyncio.run(run(names, Scale(options.quick), markdown=options.markdown)) else 1


if __name__ == "__main__":
    sys.exit(main())
