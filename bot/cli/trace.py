"""`lodger trace TURN`: everything that is stored about one turn, without secrets."""

from __future__ import annotations

import argparse
import json
from urllib.parse import quote

from bot.cli.session import with_host
from bot.control.client import HostClient
from bot.trace import trace_lines
from channels.terminal.render import clean


def run(options: argparse.Namespace) -> int:
    """Print the trace as lines, or the whole of it as JSON."""

    async def work(client: HostClient) -> int:
        trace = await client.get(f"/turns/{quote(options.turn, safe='')}")
        if options.json:
            print(json.dumps(trace, indent=2))
        else:
            for line in trace_lines(trace):
                print(clean(line))
        return 0

    return with_host(options, work)
