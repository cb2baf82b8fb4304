"""`lodger up`: run the host until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
import sys

from bot.app import run_host
from bot.config.errors import ConfigError
from bot.config.load import load_settings
from core.contracts.errors import DirectoryInUse, LodgerError
from core.turns.outcomes import EXIT_ERROR, EXIT_USAGE


def run(options: argparse.Namespace) -> int:
    """Run the host; configuration errors end it before anything is opened."""
    try:
        settings = load_settings(options.config or None)
    except ConfigError as error:
        print(f"lodger: {error}", file=sys.stderr)
        return EXIT_USAGE
    try:
        return asyncio.run(run_host(settings, debug=options.debug))
    except DirectoryInUse as error:
        print(f"lodger: {error}: a host, or a `lodger chat`, of yours. End it first.", file=sys.stderr)
        return EXIT_ERROR
    except LodgerError as error:
        print(f"lodger: {error}", file=sys.stderr)
        return EXIT_ERROR
