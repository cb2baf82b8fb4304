"""The scripted demo model: shows a newcomer an approval and a memory commit, without a key."""

from __future__ import annotations

import html
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING

from core.contracts.agents import ModelSettings
from core.contracts.messages import (
    Message,
    ReminderPart,
    ReturnOutcome,
    Role,
    TextPart,
    ToolCall,
    ToolReturn,
    tool_calls,
    visible_text,
)
from core.contracts.models import ModelClient, ModelEvent, ModelFacts, ModelRequest
from core.models.arguments import parsed_object
from core.models.profiles import model_facts
from core.models.scripted import ScriptedStep, asks, play, says, tool_call

_WELCOME = """\
I am a scripted demo model: I follow a fixed script, need no key and do not think. Try these:

- `list files`: I ask to run a shell command, and you approve or deny it.
- `remember that I like green tea`: I commit a line to my memory.
- `what do you remember?`: here, or in a new conversation.

To talk to a real model, copy `config.example.toml` to `config.toml` and name one there."""
_NO_IDEA = "My script has no answer to that. " + _WELCOME
_COMMAND = "ls -la && echo hello from the sandbox"
_NOTES = "notes.md"
_NOTES_ABOUT = "What people asked me to remember."
_SHOWN_CHARS = 1_500

_GREETING = re.compile(r"\b(?:hi|hello|hey|help|start)\b", re.IGNORECASE)
_RUN = re.compile(r"^\s*(?:please\s+)?run\s+`?(?P<command>[^`\n]+)`?\s*$", re.IGNORECASE)
_SHELL = re.compile(r"\brun\b|\blist (?:the )?files\b|\bshell\b", re.IGNORECASE)
_REMEMBER = re.compile(r"\bremember (?:that )?(?P<fact>[^\n?]+)", re.IGNORECASE)
_RECALL = re.compile(r"\bremember\b.*\?|\bwhat(?:'s| is| are| do| did)\b.*\b(?:my|remember|know)\b", re.IGNORECASE)
_NOTE = re.compile(r"^(?P<sign>[+-]?)- Noted: (?P<fact>.+)$", re.MULTILINE)
"""A line of the notes: plain, or as a unified diff shows it."""


class DemoModel:
    """The client behind `scripted/demo`. Deterministic, does no I/O.

    What it knows it reads from the request alone: from the memory in the system prompt, from
    memory updates and from its own commits, as a real model would.
    """

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        async with aclosing(play(_next_step(request), request, self.facts(request.settings))) as events:
            async for event in events:
                yield event

    def facts(self, settings: ModelSettings) -> ModelFacts:
        return model_facts(settings)


def _next_step(request: ModelRequest) -> ScriptedStep:
    text = _last_user_text(request.messages)
    if text is None:
        return _spoken("\n\n".join(_report(*pair) for pair in _last_returns(request.messages)))
    command = _RUN.match(text)
    if command or _SHELL.search(text):
        line = command["command"].strip() if command else _COMMAND
        return _asking(request, "shell", {"command": line}, "I would like to run a command. Please decide.")
    if _RECALL.search(text):
        return _spoken(_recollection(known_facts(request)))
    fact = _REMEMBER.search(text)
    if fact:
        return _remembering(request, fact["fact"].strip().rstrip("."))
    return _spoken(_WELCOME if _GREETING.search(text) else _NO_IDEA)


def known_facts(request: ModelRequest) -> list[str]:
    """Return the noted facts, oldest first, as the newest source has them."""
    facts = [match["fact"] for match in _NOTE.finditer(request.system)]
    succeeded = {
        part.call_id
        for message in request.messages
        for part in message.parts
        if isinstance(part, ToolReturn) and part.outcome is ReturnOutcome.OK
    }
    for message in request.messages:
        for part in message.parts:
            match part:
                case ReminderPart(kind="memory_update") if _NOTES in part.text:
                    facts = _updated(facts, part.text)
                case ToolCall(name="memory_write") if part.id in succeeded:
                    facts = _updated(facts, _written_text(part)) or facts
                case _:
                    pass
    return [html.unescape(fact) for fact in facts]


def _updated(facts: list[str], text: str) -> list[str]:
    notes = [(match["sign"], match["fact"]) for match in _NOTE.finditer(text)]
    if not any(sign for sign, _ in notes):
        return [fact for _, fact in notes]
    removed = {fact for sign, fact in notes if sign == "-"}
    kept = [fact for fact in facts if fact not in removed]
    return [*kept, *(fact for sign, fact in notes if sign == "+" and fact not in kept)]


def _written_text(call: ToolCall) -> str:
    changes = parsed_object(call.arguments).get("changes") or [{}]
    return str(changes[0].get("text", ""))


def _remembering(request: ModelRequest, fact: str) -> ScriptedStep:
    facts = known_facts(request)
    if fact in facts:
        return _spoken(f"I know that already: {fact}.")
    lines = "".join(f"- Noted: {known}\n" for known in (*facts, fact))
    change = {"kind": "replace" if facts else "create", "path": _NOTES, "text": lines, "description": _NOTES_ABOUT}
    arguments = {"message": fact[:72], "changes": [change]}
    return _asking(request, "memory_write", arguments, "I write that down.")


def _recollection(facts: list[str]) -> str:
    if not facts:
        return "I remember nothing yet. Say `remember that ...` and I commit it to my memory."
    return "From my memory:\n\n" + "\n".join(f"- {fact}" for fact in facts)


def _asking(request: ModelRequest, tool: str, arguments: Mapping[str, object], text: str) -> ScriptedStep:
    if not any(schema.name == tool for schema in request.tools):
        return _spoken(f"I would use the tool `{tool}` here, but this agent does not have it.")
    # The sequence number only grows, so that no call of the conversation ever had this id.
    call_id = f"call_demo_{request.messages[-1].seq}"
    step = asks(tool_call(call_id, tool, json.dumps(arguments, ensure_ascii=False)))
    return ScriptedStep(pieces=_words(text), calls=step.calls)


def _report(call: ToolCall, returned: ToolReturn) -> str:
    text = "\n".join(part.text for part in returned.parts if isinstance(part, TextPart)).strip()
    shown = text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + " ..."
    match returned.outcome:
        case ReturnOutcome.OK if call.name == "memory_write":
            return "Committed. Start a new conversation and ask what I remember: it will be there."
        case ReturnOutcome.OK:
            return f"`{call.name}` ran, and this came back:\n\n```\n{shown}\n```"
        case ReturnOutcome.DENIED:
            return f"You said no, so `{call.name}` did not run."
        case _:
            return f"`{call.name}` did not work: {shown}"


def _last_user_text(messages: tuple[Message, ...]) -> str | None:
    """Return what a person said last; None when tools have answered since."""
    for message in reversed(messages):
        text = visible_text(message.parts) if message.role is Role.USER else ""
        if text:
            return text
        if message.role is Role.TOOL:
            return None
    return ""


def _last_returns(messages: tuple[Message, ...]) -> list[tuple[ToolCall, ToolReturn]]:
    calls = {call.id: call for message in messages for call in tool_calls(message.parts)}
    pairs: list[tuple[ToolCall, ToolReturn]] = []
    for message in reversed(messages):
        if message.role is Role.ASSISTANT:
            break
        pairs += [(calls[part.call_id], part) for part in message.parts if isinstance(part, ToolReturn)]
    return pairs[::-1]


def _spoken(text: str) -> ScriptedStep:
    return says(*_words(text))


def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\s*\S+\s*", text))


if TYPE_CHECKING:
    _conforms: type[ModelClient] = DemoModel
