"""`lodger approvals`: list what waits for a decision, and decide it."""

from __future__ import annotations

import argparse
import sys
from urllib.parse import quote

from bot.cli.session import with_host
from bot.control.client import HostClient
from channels.terminal.render import clean, exact
from core.turns.outcomes import EXIT_USAGE


def run(options: argparse.Namespace) -> int:
    """List open approvals with everything that would run, or decide one."""
    if options.approval and not options.choice:
        print("lodger: decide with: lodger approvals ID approve|conversation|always|deny", file=sys.stderr)
        return EXIT_USAGE

    async def work(client: HostClient) -> int:
        if options.approval:
            body = {"choice": options.choice, "feedback": options.reason}
            print((await client.post(f"/approvals/{quote(options.approval, safe='')}", body))["told"])
            return 0
        waiting = await client.get("/approvals")
        for approval in waiting:
            until = approval["expires_at"][:16]
            print(clean(f"{approval['id']}  {approval['tool']}  until {until}  {approval['reason']}"))
            print("\n".join(f"    {row}" for row in exact(approval["shown"]).splitlines()))
        if not waiting:
            print("Nothing waits for a decision.")
        return 0

    return with_host(options, work)
