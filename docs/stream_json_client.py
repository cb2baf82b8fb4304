#!/usr/bin/env python3
"""A small client of docs/stream-json.md: registers a tool, approves a command, steers, leaves, and resumes.

From a checkout that is set up, with the demo model or your own configuration:

    .venv/bin/python docs/stream_json_client.py [--config FILE] [--yes]

It needs the standard library alone, and starts `lodger run` as a program of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import uuid
from typing import Any

LODGER = (sys.executable, "-m", "bot.cli.main")
SESSION = ("run", "--input-format", "stream-json", "--output-format", "stream-json")
CLOCK = {
    "name": "local_time",
    "description": "Tells the time where the person is.",
    "parameters": {"type": "object", "properties": {}},
}

Line = dict[str, Any]


class Session:
    """One connection. `seq` is the last line of the conversation that was told."""

    def __init__(self, options: argparse.Namespace, *more: str, seq: int = 0) -> None:
        config = ("--config", options.config) if options.config else ()
        self._approves_all = options.yes
        command = [*LODGER, *config, *SESSION, *more]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.seq = seq
        self.opened = self.until("session")
        self.send("tools", tools=[CLOCK])

    def send(self, kind: str, **fields: Any) -> None:
        """Send one input."""
        if self._process.stdin is not None:
            self._process.stdin.write(json.dumps({"type": kind, **fields}).encode() + b"\n")
            self._process.stdin.flush()

    def say(self, text: str, **fields: Any) -> str:
        """Send a message and return its id once the host has it: from then on it cannot be lost."""
        message = uuid.uuid4().hex
        self.send("user", id=message, text=text, **fields)
        self.until("queued", id=message)
        return message

    def until(self, kind: str, **fields: Any) -> Line:
        """Read and act on every line up to the first of this type with these fields, and return that."""
        for text in self._process.stdout or ():
            line: Line = json.loads(text)
            self.seq = line.get("seq", self.seq)
            self._act_on(line)
            if line["type"] == kind and fields.items() <= line.items():
                return line
        raise SystemExit(f"the session ended with exit code {self._process.wait()}")

    def _act_on(self, line: Line) -> None:
        match line["type"]:
            case "text_delta":
                show(line["text"])
            case "tool_request" if line["seq"] > self.opened["last_seq"]:  # older ones may be withdrawn already
                self.send("tool_result", call_id=line["call_id"], text=time.strftime("%H:%M"))
            case "steered":
                show("\n(your message has entered the turn)\n")
            case "result":
                show(f"\n({line['outcome']})\n")
            case "error":
                show(f"\n(refused: {line['reason']})\n")

    def decide(self, question: Line) -> None:
        """Ask the person at the terminal about a call, and pass the decision on."""
        show(f"\nMay I run {question['tool']}? {question['shown']}\n({question['reason']})\n")
        approve = self._approves_all or input("y or n: ").strip().lower() == "y"
        choice = "approve" if approve else "deny"
        self.send("decision", approval_id=question["approval_id"], choice=choice)
        self.until("approval_settled", approval_id=question["approval_id"])

    def leave(self) -> None:
        """Go away in the middle; what runs goes on in the host, or with the next one."""
        self._process.terminate()
        self._process.communicate()

    def end(self) -> int:
        """Say that nothing more comes, and return the exit code."""
        self.send("end")
        code = int(self.until("end")["exit_code"])
        self._process.communicate()
        return code


def show(text: str) -> None:
    """Show text to the person at the terminal."""
    sys.stdout.write(text)
    sys.stdout.flush()


def main() -> int:
    """Hold one conversation over two connections."""
    parser = argparse.ArgumentParser(description="Try the stream-json protocol.")
    parser.add_argument("--config", default="", help="the configuration file of lodger")
    parser.add_argument("--yes", action="store_true", help="approve what is asked")
    options = parser.parse_args()

    first = Session(options)
    conversation = first.opened["conversation_id"]
    show(f"Conversation {conversation} with {first.opened['agent']}.\n\n")

    first.say("list files")
    question = first.until("approval_opened")
    first.say("and what do you remember?", mode="steer")  # it enters the turn behind the command
    first.decide(question)
    first.until("result")

    show("\nNow something is asked, and the connection is lost before the answer comes.\n")
    message = first.say("remember that I like green tea")
    first.leave()

    second = Session(options, "--conversation", conversation, "--after", str(first.seq), seq=first.seq)
    show(f"Back behind line {first.seq}:\n")
    second.send("user", id=message, text="remember that I like green tea")  # sent twice, it counts once
    second.until("result")
    return second.end()


if __name__ == "__main__":
    sys.exit(main())
