"""`lodger pair`: let somebody in."""

from __future__ import annotations

import argparse

from bot.cli.session import with_host
from bot.control.client import HostClient
from channels.terminal.render import clean


def run(options: argparse.Namespace) -> int:
    """Accept a code, or list the open requests."""

    async def work(client: HostClient) -> int:
        if options.code:
            print((await client.post("/pairings", {"code": options.code}))["told"])
            return 0
        open_requests = await client.get("/pairings")
        for pairing in open_requests:
            who = f"{clean(pairing['name'])}  {pairing['identity']}"
            print(f"{pairing['code']}  {who}  until {pairing['expires_at'][:16]}")
        if not open_requests:
            print("Nobody waits to be let in.")
        return 0

    return with_host(options, work)
