"""`lodger conversations`: list them, or print one."""

from __future__ import annotations

import argparse
from typing import Any
from urllib.parse import quote

from bot.cli.session import with_host
from bot.control.client import HostClient
from channels.terminal.render import clean


def run(options: argparse.Namespace) -> int:
    """Print one conversation a line, or the messages of one."""

    async def work(client: HostClient) -> int:
        if options.conversation:
            await _show(client, options.conversation)
            return 0
        query = f"?agent={quote(options.agent, safe='')}" if options.agent else ""
        for conversation in await client.get(f"/conversations{query}"):
            print(f"{conversation['id']}  {conversation['agent']}  {conversation['created_at'][:16]}")
        return 0

    return with_host(options, work)


async def _show(client: HostClient, conversation: str) -> None:
    after = 0
    while page := await client.get(f"/conversations/{quote(conversation, safe='')}?after={after}"):
        for message in page:
            after = message["seq"]
            print(f"{message['seq']} {message['role']}: {_text(message)}")


def _text(message: dict[str, Any]) -> str:
    """Return a message's visible text; calls and results as one word each, reminders left out."""
    shown = []
    for part in message["parts"]:
        match part:
            case {"kind": _, "text": _}:
                continue
            case {"name": name, "arguments": arguments}:
                shown.append(f"[{name} {arguments}]")
            case {"outcome": outcome, "parts": parts}:
                shown.append(f"[{outcome}] " + " ".join(inner.get("text", "") for inner in parts))
            case {"form": _}:
                continue
            case {"text": text}:
                shown.append(text)
    return clean(" ".join(shown))
