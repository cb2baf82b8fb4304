"""Sorts streamed pieces into tool calls, whatever a provider does with index, id and name."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from core.contracts.ids import CallId, new_id
from core.contracts.messages import ToolCall
from core.models.arguments import is_complete_object, read_arguments
from core.models.fragments import CallFragment

_USABLE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What every provider form takes back as an id."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_NAME_CHARS = 64
"""OpenAI allows 64 characters, Anthropic 128; a stored name must suit both."""


@dataclass(slots=True)
class _Slot:
    index: int | None
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def raw(self) -> str:
        return "".join(self.pieces)


class CallCollector:
    """Collects the calls of one step in the order in which they began.

    A piece belongs to the call with its id, else to the newest one with its index, else to the
    newest one. A new call begins where these name nobody, where an index comes back with
    another id or name, and where a named object starts behind a finished one.
    """

    def __init__(self, taken: frozenset[str] = frozenset()) -> None:
        self._slots: list[_Slot] = []
        self._taken = taken

    def add(self, piece: CallFragment) -> int | None:
        """Take one piece; return the position of the call if it began with this piece."""
        slot = self._find(piece)
        began = slot is None or self._begins_another(slot, piece)
        if slot is None or began:
            if slot is not None and _repeats(slot, piece):
                return None
            slot = _Slot(index=piece.index)
            self._slots.append(slot)
        slot.id = slot.id or piece.id or ""
        slot.name = slot.name or piece.name or ""
        if piece.arguments:
            slot.pieces.append(piece.arguments)
        return len(self._slots) - 1 if began else None

    def calls(self) -> tuple[ToolCall, ...]:
        """Return every call with a unique, usable id; unusable arguments carry a fault."""
        used = set(self._taken)
        calls = []
        for slot in self._slots:
            call_id = slot.id if _USABLE_ID.fullmatch(slot.id) and slot.id not in used else new_id("call")
            used.add(call_id)
            arguments, fault = read_arguments(slot.raw)
            name, name_fault = _usable_name(slot.name)
            calls.append(ToolCall(id=CallId(call_id), name=name, arguments=arguments, fault=name_fault or fault))
        return tuple(calls)

    def _find(self, piece: CallFragment) -> _Slot | None:
        newest_first = self._slots[::-1]
        if piece.id:
            for slot in newest_first:
                if slot.id == piece.id and piece.index in {None, slot.index}:
                    return slot
        if piece.index is not None:
            return next((slot for slot in newest_first if slot.index == piece.index), None)
        return newest_first[0] if newest_first else None

    def _begins_another(self, slot: _Slot, piece: CallFragment) -> bool:
        if piece.id and slot.id and piece.id != slot.id:
            return True
        if not piece.name or not slot.name:
            return False
        if piece.name != slot.name:
            return True
        # The same name again: most often an echo in every piece, rarely a second call.
        return piece.arguments.lstrip().startswith("{") and is_complete_object(slot.raw)


def _repeats(slot: _Slot, piece: CallFragment) -> bool:
    """Some servers end with the whole call once more: same id, name and arguments."""
    return bool(piece.id) and (piece.id, piece.name, piece.arguments) == (slot.id, slot.name, slot.raw)


def _usable_name(name: str) -> tuple[str, str | None]:
    usable = _NOT_IN_NAMES.sub("_", name)[:_NAME_CHARS]
    if usable == name and name:
        return name, None
    return usable or "unnamed", f"{name[:_NAME_CHARS]!r} is no tool name."
