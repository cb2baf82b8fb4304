"""`lodger run -p`: one turn without a chat, as text, one JSON object, or a stream of them."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from typing import Any

from bot.cli.session import default_agent, with_host
from bot.control.client import HostClient, HostGone
from bot.control.wire import line
from channels.terminal.render import clean
from core.turns.outcomes import EXIT_ERROR, EXIT_USAGE


def run(options: argparse.Namespace) -> int:
    """Run the turn; the exit code is that of the table of outcomes."""
    text = options.prompt or ("" if sys.stdin.isatty() else sys.stdin.read())
    if not text.strip():
        print("lodger: nothing to say: use -p TEXT or standard input", file=sys.stderr)
        return EXIT_USAGE

    async def work(client: HostClient) -> int:
        agent = options.agent or default_agent(options)
        request = {"text": text, "agent": agent, "conversation": options.conversation}
        result: dict[str, Any] | None = None
        with suppress(HostGone):  # told below, as the turn has no result then
            async for event in client.stream("/turns", request):
                if options.output_format == "stream-json":
                    print(line(event).decode("ascii"), end="", flush=True)
                if event["type"] == "result":
                    result = event
        return _report(result, options.output_format)

    return with_host(options, work)


def _report(result: dict[str, Any] | None, output_format: str) -> int:
    if result is None:
        print("lodger: the host stopped before the turn ended", file=sys.stderr)
        return EXIT_ERROR
    if output_format == "text":
        print(clean(result["text"]))
    elif output_format == "json":
        print(line(result).decode("ascii"), end="")
    return int(result["exit_code"])
