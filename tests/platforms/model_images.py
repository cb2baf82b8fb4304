"""What model servers think of the images they are sent, and where requests hold them."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

ENDS = {
    "image/png": (b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"),
    "image/jpeg": (b"\xff\xd8\xff", b"\xff\xd9"),
    "image/gif": (b"GIF8", b";"),
    "image/webp": (b"RIFF", b""),
}
"""How a whole file of each kind begins and ends."""
MOST_BASE64_BYTES = 5 * 1024 * 1024


def image_fault(media_type: str, data: str) -> str:
    """Return what a provider would say of an image in base64; empty where it takes it."""
    if media_type not in ENDS:
        return f"unsupported image type {media_type!r}"
    if len(data) > MOST_BASE64_BYTES:
        return f"image exceeds 5 MB maximum: {len(data)} bytes > {MOST_BASE64_BYTES} bytes"
    try:
        raw = base64.b64decode(data, validate=True)
    except binascii.Error:
        return "Could not process image"
    first, last = ENDS[media_type]
    return "" if raw.startswith(first) and raw.endswith(last) else "Could not process image"


def blocks_of(body: dict[str, Any]) -> list[str]:
    """Return the blocks in the order in which a provider caches them, without markers."""
    flat = [json.dumps([body.get("tools"), body.get("system")])]
    for message in body["messages"]:
        content = message.get("content")
        content = content if isinstance(content, list) else [content]
        flat += [json.dumps([message["role"], _unmarked(block)]) for block in content]
    return flat


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _unmarked(inner) for name, inner in value.items() if name != "cache_control"}
    return [_unmarked(inner) for inner in value] if isinstance(value, list) else value


def images_in(body: dict[str, Any]) -> list[tuple[str, bytes]]:
    """Return (media type, bytes) of every image of a request, wherever it stands."""
    found: list[tuple[str, bytes]] = []

    def look(value: Any) -> None:
        match value:
            case {"type": "image", "source": {"media_type": media_type, "data": data}}:
                found.append((media_type, base64.b64decode(data)))
            case {"type": "image_url", "image_url": {"url": url}}:
                head, data = url.split(";base64,")
                found.append((head.removeprefix("data:"), base64.b64decode(data)))
            case dict():
                for inner in value.values():
                    look(inner)
            case list():
                for inner in value:
                    look(inner)

    look(body["messages"])
    return found
