"""`lodger memory`: an agent's memory, its history, and undo."""

from __future__ import annotations

import argparse
import sys
from urllib.parse import quote

from bot.cli.session import default_agent, with_host
from bot.control.client import HostClient
from channels.terminal.render import clean
from core.turns.outcomes import EXIT_ERROR, EXIT_USAGE


def run(options: argparse.Namespace) -> int:
    """Do what the action says for the named agent, or for the first."""
    if options.action in {"show", "diff", "undo"} and not options.what:
        print(f"lodger: memory {options.action} needs a path or revision", file=sys.stderr)
        return EXIT_USAGE

    async def work(client: HostClient) -> int:
        agent = options.agent or default_agent(options)
        path, what = f"/memory/{quote(agent, safe='')}", quote(options.what, safe="")
        match options.action:
            case "list":
                for file in await client.get(path):
                    size = f"{len(file['body'])}/{file['limit_chars']}"
                    print(clean(f"{file['path']}  {size}  {file['description']}"))
            case "show":
                return await _show(client, agent, options.what)
            case "log":
                for commit in await client.get(f"{path}/log"):
                    when = f"{commit['revision'][:10]}  {commit['committed_at'][:16]}"
                    print(clean(f"{when}  {commit['author']}: {commit['message']}"))
            case "diff":
                print(clean((await client.get(f"{path}/diff/{what}"))["diff"]))
            case "undo":
                print((await client.post(f"{path}/undo/{what}", {}))["told"])
        return 0

    return with_host(options, work)


async def _show(client: HostClient, agent: str, path: str) -> int:
    for file in await client.get(f"/memory/{quote(agent, safe='')}"):
        if file["path"] == path:
            print(clean(file["body"]))
            return 0
    print(f"lodger: there is no {path!r} in the memory of {agent}", file=sys.stderr)
    return EXIT_ERROR
