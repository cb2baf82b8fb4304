"""What an agent's own `.memory.json` allows; a policy that cannot be read is the default one."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields

from core.memory.layout import FILE_CHARS, POLICY
from core.memory.tree import Tree

_LARGEST_FIGURE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPolicy:
    """Limits of one memory.

    `ask_shared` makes every write from a private conversation into a file that others can see
    a question; without it only a file's own audience is held.
    """

    file_chars: int = FILE_CHARS
    core_chars: int = 65_536
    depth: int = 2
    read_only: tuple[str, ...] = ()
    """Paths, or directories with a trailing slash, that the agent may not change."""
    ask_shared: bool = False

    def protects(self, path: str) -> bool:
        """Return whether the agent may not change `path`."""
        return any(path == entry or (entry.endswith("/") and path.startswith(entry)) for entry in self.read_only)

    def looser_than(self, other: MemoryPolicy) -> bool:
        """Return whether anything is allowed here that `other` refuses or asks about."""
        return (
            self.file_chars > other.file_chars
            or self.core_chars > other.core_chars
            or self.depth > other.depth
            or not set(self.read_only) >= set(other.read_only)
            or (other.ask_shared and not self.ask_shared)
        )


def policy_of(tree: Tree) -> MemoryPolicy:
    """Return the policy that a tree carries."""
    if POLICY not in tree.entries or tree.size_bytes(POLICY) > FILE_CHARS:
        return MemoryPolicy()
    policy = read_policy(tree.read(POLICY))
    return policy if isinstance(policy, MemoryPolicy) else MemoryPolicy()


def read_policy(data: bytes) -> MemoryPolicy | str:
    """Return the policy in `data`, or what is wrong with it."""
    try:
        loaded = json.loads(data)
    except (ValueError, RecursionError):
        return "it is not valid JSON"
    if not isinstance(loaded, dict):
        return "it is not a JSON object"
    fault = next((fault for name, value in loaded.items() if (fault := _value_fault(name, value))), None)
    if fault is not None:
        return fault
    return MemoryPolicy(**{**loaded, "read_only": tuple(loaded.get("read_only", ()))})


def _value_fault(name: str, value: object) -> str | None:
    match name:
        case "file_chars" | "core_chars" | "depth":
            sound = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _LARGEST_FIGURE
            return None if sound else f"{name} is no whole number from 1 to {_LARGEST_FIGURE:,}"
        case "ask_shared":
            return None if isinstance(value, bool) else "ask_shared is neither true nor false"
        case "read_only":
            sound = isinstance(value, list) and all(isinstance(path, str) for path in value)
            return None if sound else "read_only is no list of paths"
        case _:
            known = ", ".join(field.name for field in fields(MemoryPolicy))
            return f"unknown name {name!r}; known are {known}"
