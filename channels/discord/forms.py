"""Forms as Discord's modals: how one is asked for, and what comes back; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from channels.chunking import measure, safe_end
from channels.contract import Form, FormField, TextUnit
from channels.discord.limits import (
    CUSTOM_ID_LIMIT_CHARS,
    FORM_FIELDS,
    FORM_LABEL_LIMIT_CHARS,
    FORM_TEXT_LIMIT_CHARS,
    FORM_TITLE_LIMIT_CHARS,
)
from channels.discord.rendering import encodable
from core.contracts.errors import SendRejected

FORM_MARK = "f:"
"""What the custom id of a form begins with; the token follows."""

_MODAL = 9
_LABEL = 18
_TEXT_INPUT = 4
_SHORT, _PARAGRAPH = 1, 2
_ELLIPSIS = "…"
_DEEPEST = 4


def modal(form: Form) -> dict[str, Any]:
    """Return the answer to a press that shows the form; Discord draws the button that sends it itself.

    Raises:
        SendRejected: It has no field or too many, or carries more than Discord takes.
    """
    if not 1 <= len(form.fields) <= FORM_FIELDS:
        raise SendRejected(f"a form has 1 to {FORM_FIELDS} fields, not {len(form.fields)}")
    return {
        "type": _MODAL,
        "data": {
            "custom_id": _custom_id(f"{FORM_MARK}{form.token}"),
            "title": _clipped(form.title, FORM_TITLE_LIMIT_CHARS),
            "components": [_field(field) for field in form.fields],
        },
    }


def token_of(custom_id: str) -> str | None:
    """Return the token of a form by the custom id that it came back with; None for what is no form."""
    return custom_id.removeprefix(FORM_MARK) if custom_id.startswith(FORM_MARK) else None


def values_of(data: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return what was written into a form, as (field, text), from the data of its submission.

    Texts stand in rows or under labels, depending on the app that sent it.
    """
    found = ((part.get("custom_id"), part.get("value")) for part in _parts(data.get("components"), _DEEPEST))
    return tuple((name, text or "") for name, text in found if isinstance(name, str) and isinstance(text, str | None))


def _parts(components: Any, deepest: int) -> Iterator[Mapping[str, Any]]:
    if not isinstance(components, list) or not deepest:
        return
    for part in components:
        if isinstance(part, Mapping):
            if part.get("type") == _TEXT_INPUT:
                yield part
            yield from _parts(part.get("components"), deepest - 1)
            yield from _parts([part.get("component")], deepest - 1)


def _field(field: FormField) -> dict[str, Any]:
    value = encodable(field.value)
    is_long = field.lines > 1 or "\n" in value
    text_input: dict[str, Any] = {
        "type": _TEXT_INPUT,
        "custom_id": _custom_id(field.name),
        "style": _PARAGRAPH if is_long else _SHORT,
        "required": field.required,
        "max_length": FORM_TEXT_LIMIT_CHARS,
    }
    if value:
        text_input["value"] = _clipped(value, FORM_TEXT_LIMIT_CHARS)
    return {"type": _LABEL, "label": _clipped(field.label, FORM_LABEL_LIMIT_CHARS), "component": text_input}


def _custom_id(text: str) -> str:
    if not 0 < len(text) <= CUSTOM_ID_LIMIT_CHARS:
        raise SendRejected(f"a custom id has 1 to {CUSTOM_ID_LIMIT_CHARS} characters, not {text!r}")
    return text


def _clipped(text: str, limit: int) -> str:
    shown = encodable(text)
    if measure(shown, TextUnit.UTF16) <= limit:
        return shown
    return shown[: safe_end(shown, limit - len(_ELLIPSIS), TextUnit.UTF16)] + _ELLIPSIS
