"""A text with entities, under Telegram's rules for them; pure.

How entities may nest is what tdlib checks (td/telegram/MessageEntity.cpp, read on 2026-11-30):
code holds nothing and stands in nothing but a quote, quotes do not nest, a link holds no code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, assert_never

from channels.chunking import measure, safe_end
from channels.contract import TextUnit

ENTITY_LIMIT = 100
"""Telegram ignores those behind the first 100: undocumented, telegram/constants.py of python-telegram-bot 22.8."""


class Kind(StrEnum):
    """What an entity says, the most important first: what would be lost comes before what only looks plainer."""

    PRE = "pre"
    LINK = "text_link"
    CODE = "code"
    QUOTE = "blockquote"
    BOLD = "bold"
    STRIKE = "strikethrough"
    ITALIC = "italic"


_LOOKS = frozenset({Kind.BOLD, Kind.STRIKE, Kind.ITALIC})
_CODES = frozenset({Kind.PRE, Kind.CODE})
_CONTENT = frozenset({Kind.PRE, Kind.LINK})
_RANKS = {kind: rank for rank, kind in enumerate(Kind)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """How the characters from `start` up to `end` look; `detail` is a link's target or a language."""

    kind: Kind
    start: int
    end: int
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Formatted:
    """A text, and its entities in the order of their starts, outer ones before those they hold."""

    text: str
    entities: tuple[Entity, ...] = ()

    @property
    def loses_content(self) -> bool:
        """Whether it has more links and blocks of code than Telegram would show."""
        return sum(entity.kind in _CONTENT for entity in self.entities) > ENTITY_LIMIT

    def as_parameter(self) -> list[dict[str, Any]]:
        """Return the entities as the Bot API takes them, in UTF-16 units; of too many, the most important."""
        ranked = sorted(self.entities, key=lambda entity: _RANKS[entity.kind])[:ENTITY_LIMIT]
        return [_as_json(entity, self.text) for entity in sorted(ranked, key=_position)]

    def beginning(self, limit_utf16: int) -> Formatted:
        """Return as much of it, from its start, as fits."""
        text = self.text[: safe_end(self.text, limit_utf16, TextUnit.UTF16)]
        return settled(text, (replace(e, end=min(e.end, len(text))) for e in self.entities if e.start < len(text)))


def settled(text: str, entities: Iterable[Entity]) -> Formatted:
    """Return a text without its outer blanks, and entities as Telegram takes them.

    Then none is empty, begins or ends at a blank, reaches beyond the text or stands where it may
    not: what looks bold, struck or italic goes on around the code that it would hold.

    Args:
        text: Any text.
        entities: Of any two, one holds the other or they share no character; none holds one of its kind.
    """
    shift = len(text) - len(text.lstrip())
    shown = text.strip()
    given = tuple(entities)
    codes = sorted((entity for entity in given if entity.kind in _CODES), key=_position)
    found = (_trimmed(piece, text) for entity in given for piece in _around(entity, codes))
    moved = (replace(e, start=e.start - shift, end=e.end - shift) for e in found if e.start < e.end)
    return Formatted(text=shown, entities=tuple(sorted(moved, key=_position)))


def _around(entity: Entity, codes: Sequence[Entity]) -> Iterator[Entity]:
    """Yield what is left of an entity when it may hold no code."""
    start = entity.start
    if entity.kind in _LOOKS:
        for code in codes:
            if start <= code.start < entity.end:
                yield replace(entity, start=start, end=code.start)
                start = code.end
    yield replace(entity, start=start)


def _trimmed(entity: Entity, text: str) -> Entity:
    covered = text[entity.start : entity.end]
    start = entity.start + len(covered) - len(covered.lstrip())
    return replace(entity, start=start, end=start + len(covered.strip()))


def _position(entity: Entity) -> tuple[int, int, bool, int]:
    return entity.start, -entity.end, entity.kind is not Kind.QUOTE, _RANKS[entity.kind]


def _as_json(entity: Entity, text: str) -> dict[str, Any]:
    place = {
        "type": str(entity.kind),
        "offset": measure(text[: entity.start], TextUnit.UTF16),
        "length": measure(text[entity.start : entity.end], TextUnit.UTF16),
    }
    match entity.kind:
        case Kind.LINK:
            return place | {"url": entity.detail}
        case Kind.PRE:
            return place | ({"language": entity.detail} if entity.detail else {})
        case Kind.CODE | Kind.QUOTE | Kind.BOLD | Kind.STRIKE | Kind.ITALIC:
            return place
        case _:
            assert_never(entity.kind)
