"""Tables as lines of fixed-width text, for platforms that have none."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import assert_never

from channels.markdown import (
    Alignment,
    Break,
    Cell,
    Code,
    Emphasis,
    Image,
    Inline,
    Link,
    Strike,
    Strong,
    Table,
    Text,
    plain_text,
)

_WIDEST_PADDING = 32
"""A longer cell reaches over its column's edge, so that one of them does not widen all rows."""


def draw_table(table: Table) -> str:
    """Return the table as lines: the header, a line across, the rows; columns aligned, without formatting.

    Wide characters count as two. Grows with the text at most by a factor of 20.
    """
    rows = [[" ".join(plain_text(cell).split()) for cell in row] for row in (table.header, *table.rows)]
    widths = [min(max(map(_width, column)), _WIDEST_PADDING) for column in zip(*rows, strict=True)]
    header, *body = (_line(row, widths, table.alignments) for row in rows)
    return "\n".join((header, "-+-".join("-" * width for width in widths), *body))


def links_of(table: Table) -> tuple[Link, ...]:
    """Return the links of all cells, each once, in order; fixed-width text cannot hold them."""
    cells = (cell for row in (table.header, *table.rows) for cell in row)
    return tuple(dict.fromkeys(link for cell in cells for link in _links(cell)))


def _line(row: Sequence[str], widths: Sequence[int], alignments: Sequence[Alignment | None]) -> str:
    cells = map(_aligned, row, widths, alignments)
    return " | ".join(cells).rstrip()


def _aligned(cell: str, width: int, alignment: Alignment | None) -> str:
    missing = max(0, width - _width(cell))
    match alignment:
        case Alignment.RIGHT:
            before = missing
        case Alignment.CENTER:
            before = missing // 2
        case Alignment.LEFT | None:
            before = 0
        case _:
            assert_never(alignment)
    return " " * before + cell + " " * (missing - before)


def _width(text: str) -> int:
    """Return how many columns of a fixed-width font the text takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(char: str) -> int:
    if unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def _links(cell: Cell) -> Iterator[Link]:
    for inline in cell:
        yield from _links_in(inline)


def _links_in(inline: Inline) -> Iterator[Link]:
    match inline:
        case Link():
            yield inline
        case Image(url=url, label=label):
            yield Link(url=url, children=(Text(text=label),))
        case Strong(children=children) | Emphasis(children=children) | Strike(children=children):
            yield from _links(children)
        case Text() | Code() | Break():
            pass
        case _:
            assert_never(inline)
