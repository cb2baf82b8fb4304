"""A request as a provider's cache sees it: tools, system, then message blocks, without cache markers."""

from __future__ import annotations

import json
from typing import Any

Body = dict[str, Any]

_SYSTEM_ROLES = frozenset({"system", "developer"})


def standing_text(body: Body) -> str:
    """Return tools and system prompt: what every request of a conversation begins with."""
    return "\n".join(_standing_blocks(body))


def request_text(body: Body) -> str:
    """Return the whole request, block by block in the order a cache compares them.

    Equal requests give equal texts, and one that goes on where another ended has it as its
    beginning. Texts in strings and in lists of blocks are the same to providers, and here.
    """
    return "\n".join([*_standing_blocks(body), *_talk_blocks(body)])


def common_chars(one: str, other: str) -> int:
    """Return how many characters two requests have in common at their beginning."""
    differences = (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differences, min(len(one), len(other)))


def _standing_blocks(body: Body) -> list[str]:
    system = [{"role": "system", "content": body["system"]}] if "system" in body else []
    told = [*system, *(message for message in body["messages"] if message["role"] in _SYSTEM_ROLES)]
    return [*map(_text, body.get("tools", [])), *(block for message in told for block in _blocks(message))]


def _talk_blocks(body: Body) -> list[str]:
    talk = [message for message in body["messages"] if message["role"] not in _SYSTEM_ROLES]
    return [block for message in talk for block in _blocks(message)]


def _blocks(message: Body) -> list[str]:
    """Return a message's content blocks, then its calls, each with the role it is under."""
    role = message["role"]
    content = message.get("content") or []
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    extras = {name: value for name, value in message.items() if name not in {"role", "content", "tool_calls"}}
    parts = [*content, *message.get("tool_calls", []), *([extras] if extras else [])]
    return [f"{role} {_text(part)}" for part in parts]


def _text(value: Any) -> str:
    return json.dumps(_unmarked(value), ensure_ascii=False)


def _unmarked(value: Any) -> Any:
    match value:
        case dict():
            return {name: _unmarked(inner) for name, inner in value.items() if name != "cache_control"}
        case list():
            return [_unmarked(inner) for inner in value]
        case _:
            return value
