"""`lodger up`: run the host until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
import sys

from bot.app import run_host
from bot.config.errors import ConfigError
from bot.config.last_good import load_or_last_good
from bot.config.load import surroundings
from core.contracts.errors import DirectoryInUse, LodgerError
from core.turns.outcomes import EXIT_ERROR, EXIT_USAGE


def run(options: argparse.Namespace) -> int:
    """Run the host; a refused configuration ends it before anything is opened, unless an earlier one is kept."""
    try:
        start = load_or_last_good(options.config or None, surroundings())
    except ConfigError as error:
        print(f"lodger: {error}", file=sys.stderr)
        return EXIT_USAGE
    if start.notice:
        print(f"lodger: {start.notice}", file=sys.stderr)
    try:
        return asyncio.run(run_host(start, debug=options.debug))
    except DirectoryInUse as error:
        print(f"lodger: {error}: a host, or a `lodger chat`, of yours. End it first.", file=sys.stderr)
        return EXIT_ERROR
    except LodgerError as error:
        print(f"lodger: {error}", file=sys.stderr)
        return EXIT_ERROR
