"""`lodger restore`: puts a backup in place while no host runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bot.config.errors import ConfigError
from bot.config.load import load_settings
from bot.folders import open_data_dir
from bot.restore import Restored, restore
from core.contracts.clock import SystemClock
from core.contracts.errors import DirectoryInUse, LodgerError
from core.stores.directory_lock import DirectoryLock
from core.stores.schema import KNOWN
from core.turns.outcomes import EXIT_ERROR, EXIT_USAGE


def run(options: argparse.Namespace) -> int:
    """Restore into the configured data directory; every failure is one line and has changed nothing."""
    try:
        data_dir = load_settings(options.config or None).host.data_dir
        open_data_dir(data_dir)
        with DirectoryLock(data_dir):
            restored = restore(
                Path(options.file).expanduser(), data_dir, schemas=KNOWN, force=options.force, now=SystemClock().now()
            )
    except ConfigError as error:
        return _failed(error, EXIT_USAGE)
    except DirectoryInUse as error:
        return _failed(f"{error}: a host, or a `lodger chat`, of yours. End it first.", EXIT_ERROR)
    except LodgerError as error:
        return _failed(error, EXIT_ERROR)
    _tell(restored)
    return 0


def _tell(restored: Restored) -> None:
    manifest = restored.manifest
    memories = "1 memory" if len(manifest.memories) == 1 else f"{len(manifest.memories)} memories"
    print(f"Restored the backup of {manifest.created_at:%Y-%m-%d %H:%M} UTC: {memories}.")
    if restored.replaced is not None:
        print(f"What was there before is in {restored.replaced}")
    print("Start the host with `lodger up`.")


def _failed(error: object, code: int) -> int:
    print(f"lodger: {error}", file=sys.stderr)
    return code
