"""Slack's mrkdwn as people read it: names instead of ids, plain signs instead of entities; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

_ANGLE = re.compile(r"<([^<>\n]+)>")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(?://)?", re.IGNORECASE)
_USER = re.compile(r"<@([UW][A-Z0-9]+)(?:\|[^<>]*)?>")


def mentioned(text: str) -> tuple[str, ...]:
    """Return the ids of the people that a text mentions, each once."""
    return tuple(dict.fromkeys(_USER.findall(text)))


def readable(text: str, *, own: str, names: Mapping[str, str]) -> str:
    """Return a text as it reads: without the mention of the agent itself (`own`), with people's names."""
    without = re.sub(rf"<@{re.escape(own)}(?:\|[^<>]*)?>[ \t]*", "", text) if own else text
    spelled = _ANGLE.sub(lambda found: _spelled(found[1], names), without)
    return _unescaped(spelled).strip()


def _spelled(inside: str, names: Mapping[str, str]) -> str:
    target, _, label = inside.partition("|")
    match target[:1]:
        case "@":
            return f"@{names.get(target[1:]) or label or target[1:]}"
        case "#":
            return f"#{label or target[1:]}"
        case "!":
            return label or f"@{target[1:].partition('^')[0]}"
        case _:
            return _link(target, label)


def _link(target: str, label: str) -> str:
    """Return a link as it was written: Slack makes one of whatever looks like an address, of `main.py` too."""
    if label and label == _SCHEME.sub("", target, count=1):
        return label
    return f"{label} ({target})" if label and label != target else target.removeprefix("mailto:")


def _unescaped(text: str) -> str:
    # In this order: "&amp;lt;" is "&lt;", written by somebody who meant just that.
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
