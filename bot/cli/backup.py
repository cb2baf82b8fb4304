"""`lodger backup`: database, memories and files in one archive, while the host works."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bot.cli.session import with_host
from bot.control.client import HostClient
from core.turns.outcomes import EXIT_ERROR

_MEGABYTE = 1_000_000


def run(options: argparse.Namespace) -> int:
    """Ask the host for a backup; it writes the file, so a relative name is made a whole one here."""
    file = str(Path(options.file).expanduser().absolute()) if options.file else ""

    async def work(client: HostClient) -> int:
        return await take(client, file)

    return with_host(options, work)


async def take(client: HostClient, file: str) -> int:
    """Have the backup taken, tell how that went, and return the exit code."""
    async for event in client.stream("/backups", {"file": file}):
        match event["type"]:
            case "result":
                print(f"Backup written: {event['file']} ({event['size_bytes'] / _MEGABYTE:.1f} MB)")
                return 0
            case "error":
                print(f"lodger: {event['error']}", file=sys.stderr)
                return EXIT_ERROR
    print("lodger: the host ended before the backup was whole; there is none", file=sys.stderr)
    return EXIT_ERROR
