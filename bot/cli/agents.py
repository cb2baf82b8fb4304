"""`lodger agents`: list agents."""

from __future__ import annotations

import argparse

from bot.cli.session import with_host
from bot.control.client import HostClient


def run(options: argparse.Namespace) -> int:
    """Print one agent a line."""

    async def work(client: HostClient) -> int:
        for agent in await client.get("/agents"):
            print(f"{agent['name']}  {agent['model']['model']}  {agent['permission_mode']}  {agent['workspace']}")
        return 0

    return with_host(options, work)
