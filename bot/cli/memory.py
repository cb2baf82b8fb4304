"""`lodger memory`: an agent's memory, its history, and undo."""

from __future__ import annotations

import argparse
import sys

from bot.cli.session import with_host
from bot.control.client import HostClient
from core.turns.outcomes import EXIT_ERROR, EXIT_USAGE


def run(options: argparse.Namespace) -> int:
    """Do what the action says for the named agent, or for the only one."""
    if options.action in {"show", "diff", "undo"} and not options.what:
        print(f"lodger: memory {options.action} needs a path or revision", file=sys.stderr)
        return EXIT_USAGE

    async def work(client: HostClient) -> int:
        agent = options.agent or (await client.get("/agents"))[0]["name"]
        match options.action:
            case "list":
                for file in await client.get(f"/memory/{agent}"):
                    print(f"{file['path']}  {len(file['body'])}/{file['limit_chars']}  {file['description']}")
            case "show":
                return await _show(client, agent, options.what)
            case "log":
                for commit in await client.get(f"/memory/{agent}/log"):
                    when = f"{commit['revision'][:10]}  {commit['committed_at'][:16]}"
                    print(f"{when}  {commit['author']}: {commit['message']}")
            case "diff":
                print((await client.get(f"/memory/{agent}/diff/{options.what}"))["diff"])
            case "undo":
                print((await client.post(f"/memory/{agent}/undo/{options.what}", {}))["told"])
        return 0

    return with_host(options, work)


async def _show(client: HostClient, agent: str, path: str) -> int:
    for file in await client.get(f"/memory/{agent}"):
        if file["path"] == path:
            print(file["body"])
            return 0
    print(f"lodger: there is no {path!r} in the memory of {agent}", file=sys.stderr)
    return EXIT_ERROR
