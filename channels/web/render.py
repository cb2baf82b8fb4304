"""What a web chat shows, as HTML fragments; pure, and escaped by construction.

Every fragment is one element. Those of messages carry `data-id`: a later fragment of the same id
replaces the earlier one, so that a preview becomes the answer and a card its settled form.
Markup is only ever composed from literals and `Markup.format`, which escapes what it is given.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from markupsafe import Markup, escape

from channels.web.markdown import to_html
from core.contracts.addresses import (
    Button,
    ButtonStyle,
    CardContent,
    FileContent,
    OutboundContent,
    ReactionContent,
    Removal,
    TextContent,
)

_BUTTON_CLASSES = {ButtonStyle.NORMAL: "", ButtonStyle.GOOD: "good", ButtonStyle.DANGER: "danger"}

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xa0\xad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f"
    "\u205f-\u206f\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
"""Control, formatting and blank characters, but for tab and newline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PressForm:
    """Where a card's buttons post to, and what proves that our own page posted."""

    action: str
    csrf: str


def said(key: str, name: str, text: str, *, at: datetime | None = None) -> Markup:
    """Draw what a person said, exactly as typed."""
    return Markup(
        '<article class="said" data-id="{key}"><h3 class="unseen">{name} said</h3><div class="bubble">{text}</div>'
        "{time}</article>"
    ).format(key=key, name=name, text=text, time=_time(at))


def message(external_id: str, content: OutboundContent, form: PressForm, *, at: datetime | None = None) -> Markup:
    """Draw a message of the agent in its final form."""
    match content:
        case TextContent():
            return Markup(
                '<article class="answer" data-id="{id}"><h3 class="unseen">The agent answered</h3>'
                '<div class="prose">{body}</div>{time}</article>'
            ).format(id=external_id, body=to_html(content.markdown), time=_time(at))
        case CardContent():
            return _card(external_id, content, form, at)
        case FileContent():
            return _file(external_id, content, at)
        case ReactionContent():
            return Markup('<article class="card quiet settled" data-id="{id}">Reacted with {emoji}</article>').format(
                id=external_id, emoji=content.emoji
            )
        case Removal():
            return removed(external_id)
        case _:
            assert_never(content)


def removed(external_id: str) -> Markup:
    """Draw what stands in the place of a message that is there no more: nothing that can be seen."""
    return Markup('<article class="removed" data-id="{id}" hidden></article>').format(id=external_id)


def preview(external_id: str, text: str) -> Markup:
    """Draw the answer so far; screen readers wait for the final one."""
    return Markup(
        '<article class="answer preview" data-id="{id}" aria-busy="true" aria-live="off">'
        '<div class="prose">{body}</div></article>'
    ).format(id=external_id, body=to_html(text))


def notice(text: str) -> Markup:
    """Draw a short line that is shown for a moment and kept nowhere."""
    return Markup('<p class="notice">{text}</p>').format(text=text)


def verbatim(code: str) -> Markup:
    """Draw the whole of `code` in a fixed-width block.

    Characters that show nothing or reorder what stands around them are shown by number, so that
    nobody approves a command that reads differently from what runs.
    """
    pieces: list[Markup] = []
    end = 0
    for unseen in _UNSEEN.finditer(code):
        pieces.append(escape(code[end : unseen.start()]))
        pieces.append(Markup('<span class="codepoint">U+{number}</span>').format(number=f"{ord(unseen[0]):04X}"))
        end = unseen.end()
    body = Markup().join([*pieces, escape(code[end:])])
    return Markup('<pre class="verbatim" tabindex="0"><code>{body}</code></pre>').format(body=body)


def _file(external_id: str, file: FileContent, at: datetime | None) -> Markup:
    return Markup(
        '<article class="answer" data-id="{id}"><h3 class="unseen">The agent sent a file</h3>'
        '<div class="prose"><p><strong>{name}</strong></p><p>{caption}</p></div>{time}</article>'
    ).format(id=external_id, name=file.name, caption=file.caption, time=_time(at))


def _card(external_id: str, card: CardContent, form: PressForm, at: datetime | None) -> Markup:
    card = _without_forms(card)
    return Markup(
        '<article class="{kind}" data-id="{id}"><div class="card-text">{text}</div>{code}{buttons}{time}</article>'
    ).format(
        kind=_card_kind(card),
        id=external_id,
        text=card.text,
        code=verbatim(card.code) if card.code else Markup(),
        buttons=_buttons(external_id, card, form),
        time=_time(at),
    )


def _without_forms(card: CardContent) -> CardContent:
    """Return a card without the buttons that open a form: the history has them, this page has no forms."""
    rows = (tuple(button for button in row if not button.opens_form) for row in card.rows)
    return replace(card, rows=tuple(row for row in rows if row))


def _card_kind(card: CardContent) -> str:
    """Return the classes: a silent card is a quiet line, one without buttons is settled."""
    kinds = ["card", *(["quiet"] if card.silent else []), *([] if card.rows else ["settled"])]
    return " ".join(kinds)


def _buttons(external_id: str, card: CardContent, form: PressForm) -> Markup:
    if not card.rows:
        return Markup()
    rows = Markup().join(
        Markup('<div class="row">{buttons}</div>').format(buttons=Markup().join(_button(button) for button in row))
        for row in card.rows
    )
    return Markup(
        '<form class="press" method="post" action="{action}"><input type="hidden" name="csrf" value="{csrf}">'
        '<input type="hidden" name="card" value="{card}">{rows}</form>'
    ).format(action=form.action, csrf=form.csrf, card=external_id, rows=rows)


def _button(button: Button) -> Markup:
    return Markup('<button class="{style}" name="token" value="{token}">{label}</button>').format(
        style=_BUTTON_CLASSES[button.style], token=button.token, label=button.label
    )


def _time(at: datetime | None) -> Markup:
    if at is None:
        return Markup()
    return Markup('<time datetime="{iso}">{short}</time>').format(iso=at.isoformat(), short=f"{at:%H:%M} UTC")
