"""`lodger run`: one turn for a script, or a two-way session for a program, without a chat."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from bot.cli.session import default_agent, with_host
from bot.cli.two_way import converse
from bot.control.client import HostClient, HostGone, HostRefused
from bot.control.wire import line
from channels.terminal.render import clean
from core.turns.outcomes import EXIT_ERROR, EXIT_USAGE

STREAM_JSON = "stream-json"


def run(options: argparse.Namespace) -> int:
    """Run a turn or a session; the exit code is that of the table of outcomes."""
    problem = _misused(options)
    if problem:
        print(f"lodger: {problem}", file=sys.stderr)
        return EXIT_USAGE
    if options.input_format == STREAM_JSON:
        return with_host(options, lambda client: converse(client, options, agent=_agent(options)))
    text = options.prompt or ("" if sys.stdin.isatty() else sys.stdin.read())
    if not text.strip():
        print("lodger: nothing to say: use -p TEXT or standard input", file=sys.stderr)
        return EXIT_USAGE
    return with_host(options, lambda client: _one_turn(client, options, text))


async def _one_turn(client: HostClient, options: argparse.Namespace, text: str) -> int:
    """Run one turn. A signal stops the turn as well, because nobody waits for it any more."""
    # A service manager's signal means what Ctrl-C means.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, signal.raise_signal, signal.SIGINT)
    request = {"text": text, "agent": _agent(options), "conversation": options.conversation}
    started: dict[str, Any] = {}
    result: dict[str, Any] | None = None
    try:
        with suppress(HostGone):  # told below, as the turn has no result then
            async for event in client.stream("/turns", request):
                if options.output_format == STREAM_JSON:
                    print(line(event).decode("ascii"), end="", flush=True)
                match event["type"]:
                    case "started":
                        started = event
                    case "result":
                        result = event
    except asyncio.CancelledError:
        await _cancel(client, started)
        raise
    return _report(result, options.output_format)


async def _cancel(client: HostClient, started: dict[str, Any]) -> None:
    if started:
        path = f"/turns/{quote(started['conversation_id'], safe='')}/cancel"
        with suppress(HostGone, HostRefused):
            await client.post(path, {"input_id": started["input_id"]})


def _agent(options: argparse.Namespace) -> str:
    """Return the agent that is meant; empty for whichever the conversation has."""
    return options.agent or ("" if options.conversation else default_agent(options))


def _misused(options: argparse.Namespace) -> str:
    """Return which options do not go together, or nothing."""
    is_session = options.input_format == STREAM_JSON
    problems = {
        "--input-format stream-json needs --output-format stream-json": is_session
        and options.output_format != STREAM_JSON,
        "-p TEXT is for one turn; a session is told on standard input": is_session and bool(options.prompt),
        "--after needs --input-format stream-json and --conversation": options.after is not None
        and not (is_session and options.conversation),
        "--max-turns counts from 1": options.max_turns is not None and options.max_turns < 1,
        "--after counts from 0": options.after is not None and options.after < 0,
    }
    return next((problem for problem, is_so in problems.items() if is_so), "")


def _report(result: dict[str, Any] | None, output_format: str) -> int:
    if result is None:
        print("lodger: the host stopped before the turn ended", file=sys.stderr)
        return EXIT_ERROR
    if output_format == "text":
        print(clean(result["text"]))
    elif output_format == "json":
        print(line(result).decode("ascii"), end="")
    return int(result["exit_code"])
