"""`lodger migrate`: bring the database to this version while no host runs."""

from __future__ import annotations

import argparse
import asyncio
import sys

from bot.config.errors import ConfigError
from bot.config.load import load_settings
from bot.restore import finish_restore
from core.contracts.errors import LodgerError
from core.stores.connection import Database
from core.stores.directory_lock import DirectoryLock
from core.turns.outcomes import EXIT_ERROR, EXIT_USAGE


def run(options: argparse.Namespace) -> int:
    """Run the migrations that are missing."""
    try:
        settings = load_settings(options.config or None)
        with DirectoryLock(settings.host.data_dir):
            finish_restore(settings.host.data_dir)
            # Opening migrates.
            asyncio.run(Database.open(settings.host.data_dir / "host.db").close())
    except ConfigError as error:
        print(f"lodger: {error}", file=sys.stderr)
        return EXIT_USAGE
    except (LodgerError, OSError) as error:
        print(f"lodger: {error}", file=sys.stderr)
        return EXIT_ERROR
    print("The database is at this version.")
    return 0
