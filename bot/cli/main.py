"""`lodger`: parses the command line and hands over to one module a command."""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import sys
from collections.abc import Sequence
from types import ModuleType

_COMMANDS = {
    "init": "ask what you want, write config.toml, and print what is left to do",
    "up": "run the host: channels, console, schedules",
    "chat": "talk to an agent in this terminal",
    "run": "one turn, headless: lodger run -p TEXT; or a two-way session",
    "agents": "list agents",
    "conversations": "list conversations, or show one",
    "memory": "show an agent's memory, its history, a diff; undo a commit",
    "approvals": "list open approvals and decide them",
    "pair": "let a person in by their code",
    "doctor": "prove every part of the host by using it, and say what to mend",
    "trace": "everything that is stored about one turn, without secrets",
    "backup": "write database, memories and files to one archive, while the host works",
    "restore": "put a backup in place, while no host runs",
    "migrate": "bring the database to this version",
}


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = argparse.ArgumentParser(prog="lodger", description="Stateful agents that live where people already talk.")
    parser.add_argument("--config", metavar="FILE", default="", help="the configuration file")
    parser.add_argument("--debug", action="store_true", help="log at DEBUG and show tracebacks")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    parsers = {name: commands.add_parser(name, help=text, description=text) for name, text in _COMMANDS.items()}
    for name in ("chat", "run", "conversations"):
        parsers[name].add_argument("--agent", default="", help="the agent's name")
    parsers["chat"].add_argument("--name", default="main", help="the chat's name; each is a conversation")
    parsers["init"].add_argument("file", nargs="?", default="", help="the configuration to write; config.toml")
    parsers["init"].add_argument("--force", action="store_true", help="replace a file that exists")
    _run_options(parsers["run"])
    parsers["conversations"].add_argument("conversation", nargs="?", default="", help="show this one")
    _memory_options(parsers["memory"])
    _approval_options(parsers["approvals"])
    parsers["trace"].add_argument("turn", help="the turn's id; /status and the log name it")
    parsers["trace"].add_argument("--json", action="store_true", help="all of it, as one JSON object")
    parsers["backup"].add_argument(
        "file", nargs="?", default="", help="a new file or a folder; without it: the data directory's backups"
    )
    parsers["restore"].add_argument("file", help="the backup")
    parsers["restore"].add_argument("--force", action="store_true", help="move what is there aside")
    parsers["pair"].add_argument("code", nargs="?", default="", help="the code; without it: list open requests")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 ok, 1 error, 2 usage, and those of DESIGN 1."""
    options = build_parser().parse_args(argv)
    module = _loaded(options.command)
    try:
        code = int(module.run(options))
        sys.stdout.flush()
    except BrokenPipeError:
        # Who read the output has left, as `head` does. The interpreter would complain once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def _loaded(command: str) -> ModuleType:
    """Import a command's module. What imports make stays: looking through it for garbage is lost time."""
    gc.disable()
    module = importlib.import_module(f"bot.cli.{command}")
    gc.freeze()
    gc.enable()
    return module


def _run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-p", "--prompt", default="", help="what to say; without it: read standard input")
    parser.add_argument("--conversation", default="", help="continue this conversation")
    parser.add_argument("--output-format", choices=("text", "json", "stream-json"), default="text")
    parser.add_argument(
        "--input-format", choices=("text", "stream-json"), default="text", help="stream-json: a two-way session"
    )
    parser.add_argument("--after", type=int, metavar="SEQ", help="go on behind this line of a session")
    parser.add_argument("--max-turns", type=int, metavar="N", help="take at most N messages")


def _memory_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--agent", default="", help="the agent's name")
    parser.add_argument("action", nargs="?", default="list", choices=("list", "show", "log", "diff", "undo"))
    parser.add_argument("what", nargs="?", default="", help="a path for show, a revision for diff and undo")


def _approval_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("approval", nargs="?", default="", help="decide this one; without it: list")
    parser.add_argument("choice", nargs="?", default="", choices=("", "approve", "conversation", "always", "deny"))
    parser.add_argument("--reason", default="", help="what the agent reads with a denial")


if __name__ == "__main__":
    sys.exit(main())
