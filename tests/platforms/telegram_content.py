"""What a message may consist of on a fake Telegram: text or caption, entities, keyboard."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

from tests.platforms.telegram_refusals import bad_request

TEXT_LIMIT_UTF16 = 4096
CAPTION_LIMIT_UTF16 = 1024
ENTITIES_LIMIT = 100
CALLBACK_DATA_LIMIT_BYTES = 64

Entities = list[dict[str, Any]]
Keyboard = list[list[dict[str, Any]]]


def utf16_units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


@dataclass
class Content:
    """Text as people see it (a caption, for a file), with what formats it and what can be pressed."""

    text: str
    entities: Entities = field(default_factory=list)
    keyboard: Keyboard = field(default_factory=list)


def text_content(params: dict[str, Any]) -> Content:
    """Return the content of a text message; the text comes back trimmed, as the platform does."""
    content = _content(params, "text", "entities")
    if not content.text:
        raise bad_request("message text is empty")
    if utf16_units(content.text) > TEXT_LIMIT_UTF16:
        raise bad_request("message is too long")
    return content


def caption_content(params: dict[str, Any]) -> Content:
    """Return what stands under a file."""
    content = _content(params, "caption", "caption_entities")
    if utf16_units(content.text) > CAPTION_LIMIT_UTF16:
        raise bad_request("message caption is too long")
    return content


def _content(params: dict[str, Any], text_name: str, entities_name: str) -> Content:
    raw = str(params.get(text_name, ""))
    for entity in params.get(entities_name) or []:
        _check_entity(raw, entity)
    entities = _trimmed(raw, (params.get(entities_name) or [])[:ENTITIES_LIMIT])
    return Content(text=raw.strip(), entities=entities, keyboard=_keyboard(params.get("reply_markup") or {}))


def _check_entity(text: str, entity: dict[str, Any]) -> None:
    start, end = entity["offset"], entity["offset"] + entity["length"]
    raw = text.encode("utf-16-le", "surrogatepass")
    if start < 0 or end > len(raw) // 2:
        raise bad_request(f"entity beginning at UTF-16 offset {start} ends after the end of the text")
    for edge in (start, end):
        if edge * 2 < len(raw) and 0xDC00 <= int.from_bytes(raw[edge * 2 : edge * 2 + 2], "little") <= 0xDFFF:
            raise bad_request(f"entity beginning at UTF-16 offset {start} begins or ends inside a character")


def _trimmed(text: str, entities: Entities) -> Entities:
    """Return entities of a text as those of the text without its outer blanks."""
    shift = utf16_units(text[: len(text) - len(text.lstrip())])
    length = utf16_units(text.strip())
    kept = []
    for entity in entities:
        start = max(0, entity["offset"] - shift)
        end = min(length, entity["offset"] + entity["length"] - shift)
        if end > start:
            kept.append(entity | {"offset": start, "length": end - start})
    return kept


def _keyboard(markup: dict[str, Any]) -> Keyboard:
    keyboard: Keyboard = markup.get("inline_keyboard") or []
    for button in itertools.chain.from_iterable(keyboard):
        size = len(str(button.get("callback_data", "")).encode())
        if not 1 <= size <= CALLBACK_DATA_LIMIT_BYTES:
            raise bad_request("BUTTON_DATA_INVALID")
        if not button.get("text"):
            raise bad_request("can't parse inline keyboard button: text is empty")
    return keyboard
