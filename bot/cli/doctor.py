"""`lodger doctor`: prove every part of the host end to end, and say what to do about what fails."""

from __future__ import annotations

import argparse

from bot.cli.session import with_host
from bot.control.client import HostClient
from channels.terminal.render import clean
from core.turns.outcomes import EXIT_ERROR


def run(options: argparse.Namespace) -> int:
    """Print a line for each thing that was tried; exit 1 when one of them failed."""

    async def work(client: HostClient) -> int:
        failed = 0
        async for finding in client.stream("/doctor"):
            failed += not finding["ok"]
            mark = "FAIL" if not finding["ok"] else ("note" if finding["fix"] else "ok  ")
            print(clean(f"{mark}  {finding['name']}: {finding['detail']}"), flush=True)
            if finding["fix"]:
                print(clean(f"      {finding['fix']}"), flush=True)
        print(f"{failed} of these failed." if failed else "Everything works.")
        return EXIT_ERROR if failed else 0

    return with_host(options, work)
