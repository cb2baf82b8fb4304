"""What `docs/stream-json.md` says: its types and their examples."""

from __future__ import annotations

import functools
import json
import re

from tests.architecture.sources import text_of

_ENTRY = re.compile(r"^### `(\w+)`\n(.*?)(?=^##)", re.MULTILINE | re.DOTALL)
_EXAMPLE = re.compile(r"```json\n(.*?)\n```", re.DOTALL)
IN, OUT, ONE_TURN = "What you send", "What you are told", "One turn"


@functools.cache
def entries(section: str) -> dict[str, dict]:
    """Return the example of every type that a section describes."""
    (text,) = re.findall(
        rf"^## {section}\n(.*?)(?=^## |\Z)", text_of("docs/stream-json.md") + "\n", re.MULTILINE | re.DOTALL
    )
    found = {}
    for name, body in _ENTRY.findall(text + "\n##"):
        (example,) = _EXAMPLE.findall(body)
        assert name not in found, f"{name} is described twice"
        found[name] = json.loads(example)
    return found


def require_described(line: dict) -> None:
    """Require that a line that was told has the fields of its example, and no others."""
    example = entries(OUT)[line["type"]]
    assert line.keys() <= example.keys(), line
    assert example.keys() - line.keys() <= {"run_seq"}, line
    for name, value in example.items():
        if isinstance(value, dict) and name in line and name not in {"arguments", "parameters"}:
            assert line[name].keys() == value.keys(), (name, line)
