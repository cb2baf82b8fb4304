"""Which images of a view a run sends; the others stand there as words, once and for good.

Rows are never changed. What is left out is known by the image's id, so that every later request
says the same words in the same place: the prefix breaks once, and that is recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from core.contracts.attachments import ImageShelf, LeftOut, MissingImage
from core.contracts.errors import ModelError, ModelImageRefused, ModelPayloadTooLarge
from core.contracts.messages import ImagePart, Message, Part, Role, TextPart, ToolReturn

PartT = TypeVar("PartT", bound=Part)

_WORDS = {
    LeftOut.GONE: "no longer stored",
    LeftOut.TOO_LARGE: "left out, because the request was too large with it",
    LeftOut.REFUSED: "left out, because the model could not take it",
}
BREAKS = {
    LeftOut.GONE: "images are no longer stored",
    LeftOut.TOO_LARGE: "images left out of a request that was too large",
    LeftOut.REFUSED: "images left out that the model could not take",
}
"""What a run's event says of the break."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """Images that go from a view, and why."""

    image_ids: tuple[str, ...]
    why: LeftOut


class NoImages:
    """The shelf of a backend whose host stores no attachments."""

    async def read(self, attachment_id: str) -> bytes | None:
        del attachment_id
        return None

    async def missing(self, attachment_ids: Sequence[str]) -> Mapping[str, MissingImage]:
        del attachment_ids
        return {}

    async def leave_out(self, attachment_ids: Sequence[str], why: LeftOut) -> None:
        """Do nothing: there is none."""


def image_ids(parts: Iterable[Part]) -> tuple[str, ...]:
    """Return the images among parts, those of tool returns too, each once, in order."""
    found: dict[str, None] = {}
    for part in parts:
        inner = part.parts if isinstance(part, ToolReturn) else (part,)
        found.update((image.attachment_id, None) for image in inner if isinstance(image, ImagePart))
    return tuple(found)


def without_images(messages: tuple[Message, ...], left_out: Mapping[str, LeftOut]) -> tuple[Message, ...]:
    """Return the messages with words in place of these images."""
    if not left_out:
        return messages
    return tuple(replace(message, parts=_without(message.parts, left_out)) for message in messages)


def removal_after(error: ModelError, messages: Sequence[Message], *, removals: int) -> Removal | None:
    """Return which images go after a request failed, if that may help; `removals`: how many there were in this step.

    Where a request was too large the oldest go first: half of those outside the active request, then the
    rest of them, at last its own. An image that is refused is rather a new one: the old ones were taken
    before. So there the active request's go first, then all others.
    """
    split = _active_from(messages)
    active = image_ids(part for message in messages[split:] for part in message.parts)
    earlier = image_ids(part for message in messages[:split] for part in message.parts)
    older = tuple(image_id for image_id in earlier if image_id not in active)
    match error:
        case ModelPayloadTooLarge():
            half = older[: (len(older) + 1) // 2] if removals == 0 else older
            chosen, why = half or active, LeftOut.TOO_LARGE
        case ModelImageRefused():
            chosen, why = active or older, LeftOut.REFUSED
        case _:
            return None
    return Removal(image_ids=chosen, why=why) if chosen else None


def _active_from(messages: Sequence[Message]) -> int:
    """Return where the active request begins: at the last user message that opened a turn.

    What is said into a running turn stands behind tool returns of the same run.
    """
    for position in range(len(messages) - 1, 0, -1):
        before, message = messages[position - 1], messages[position]
        steers = before.role is Role.TOOL and before.run_id == message.run_id
        if message.role is Role.USER and not steers:
            return position
    return 0


def _without(parts: tuple[Part, ...], left_out: Mapping[str, LeftOut]) -> tuple[Part, ...]:
    return tuple(
        replace(part, parts=tuple(_worded(inner, left_out) for inner in part.parts))
        if isinstance(part, ToolReturn)
        else _worded(part, left_out)
        for part in parts
    )


def _worded(part: PartT, left_out: Mapping[str, LeftOut]) -> PartT | TextPart:
    if isinstance(part, ImagePart) and part.attachment_id in left_out:
        return TextPart(text=f"[image {part.attachment_id}: {_WORDS[left_out[part.attachment_id]]}]")
    return part


if TYPE_CHECKING:
    _conforms: type[ImageShelf] = NoImages
