"""A person's home screen as a view, within Block Kit's limits; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from channels.chunking import cut_text, measure
from channels.contract import HomeSection, TextUnit
from channels.slack.cards import draw_card, plain, section
from channels.slack.limits import HEADER_LIMIT_CHARS, SECTION_LIMIT_CHARS, VIEW_BLOCKS_LIMIT
from channels.slack.mrkdwn import encodable, is_visible, literal, render
from core.contracts.addresses import CardContent

Json = dict[str, Any]

_LEFT_OUT = "… and more, for which there is no room here"
_PART_CHARS = 2000
"""How a text is cut before it is drawn; it grows by that, and what grew too much is cut again."""


def draw_home(sections: tuple[HomeSection, ...]) -> Json:
    """Return the view of a home screen; what is more than Slack takes is left out whole, with a mark at the end."""
    blocks: list[Json] = []
    for group in _groups(sections):
        if len(blocks) + len(group) > VIEW_BLOCKS_LIMIT - 1:
            blocks.append({"type": "context", "elements": [plain(_LEFT_OUT, SECTION_LIMIT_CHARS)]})
            break
        blocks += group
    return {"type": "home", "blocks": blocks}


def _groups(sections: tuple[HomeSection, ...]) -> Iterator[list[Json]]:
    """Yield blocks that stand or fall together: a heading with its text, then each card."""
    for number, part in enumerate(sections):
        heading: list[Json] = [{"type": "divider"}] if number else []
        if part.title.strip():
            heading.append({"type": "header", "text": plain(part.title, HEADER_LIMIT_CHARS)})
        yield heading + [section(text) for text in _texts(part.text)]
        for card in part.cards:
            yield _card(card)


def _card(card: CardContent) -> list[Json]:
    """Return a card's blocks; one that holds nothing takes no room."""
    if not (card.text.strip() or card.code.strip() or card.rows):
        return []
    return list(draw_card(card).blocks)


def _texts(markdown: str, limit_chars: int = _PART_CHARS) -> Iterator[str]:
    for part in cut_text(encodable(markdown), limit_chars, TextUnit.CHARS):
        shown = render(part.text) or literal(part.text)
        if measure(shown, TextUnit.CHARS) > SECTION_LIMIT_CHARS:
            yield from _texts(part.text, limit_chars // 2)
        elif is_visible(shown):
            yield shown
