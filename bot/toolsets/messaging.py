"""`send_message`, `send_file` and `react`: what an agent puts into a chat besides its answer."""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from bot.conversations.outbox import notice, text_items
from bot.conversations.turn_opening import HEADLESS
from bot.toolsets.outgoing_files import OutgoingFiles
from channels.contract import Capabilities, Channel
from core.contracts.addresses import Address, FileContent, OutboundContent, OutboundItem, ReactionContent
from core.contracts.delivery import DeliveryStore
from core.contracts.errors import ToolError
from core.contracts.messages import TextPart
from core.contracts.permissions import Action
from core.contracts.tools import Access, Tool, ToolContext, ToolSchema
from core.permissions.rules import Rule, make_rule
from core.tools.files_port import FilesFactory
from core.tools.paths import absolute_path, place_to_read
from core.tools.schema import Arguments, parse, tool_schema
from core.tools.threads import run_to_end

FILE_LIMIT_BYTES = 50_000_000
_WINDOW_BYTES = 1 << 20
_OVERLAP_BYTES = 1 << 14
"""Longer than any secret."""
SEND_MESSAGE, SEND_FILE, REACT = "send_message", "send_file", "react"

ALWAYS_ASKED: tuple[Rule, ...] = (make_rule(tool=SEND_MESSAGE, action=Action.ALWAYS_ASK, match="**"),)
"""To any chat but the one a turn came from, people are asked, in every mode and whatever the grants.

A message to that one declares no target, so that the rule does not meet it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagingPorts:
    """What the tools stand on."""

    delivery: DeliveryStore
    channels: Mapping[str, Channel]
    files: FilesFactory
    outgoing: OutgoingFiles
    mask: Callable[[str], str]


def messaging_tools(ports: MessagingPorts) -> tuple[Tool, ...]:
    """Return the tools in their order."""
    return (SendMessage(ports), SendFile(ports), React(ports))


class SendMessageArguments(Arguments):
    """Arguments of `send_message`."""

    text: str = Field(description="Markdown")
    to: str | None = Field(default=None, description="Key of another chat")


class SendMessage:
    """Posts a text at once, while the turn goes on."""

    schema: ClassVar[ToolSchema] = tool_schema(
        SEND_MESSAGE,
        "Post a message now; your answer is sent by itself. For another chat a person is asked.",
        SendMessageArguments,
    )

    def __init__(self, ports: MessagingPorts) -> None:
        self._ports = ports

    def access(self, arguments: Mapping[str, Any], context: ToolContext) -> Access:
        to = parse(SendMessageArguments, arguments).to
        return Access(free=True) if _is_origin(to, context) else Access(network=(to or "",))

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> Sequence[TextPart]:
        wanted = parse(SendMessageArguments, arguments)
        if not wanted.text.strip():
            raise ToolError("The text is empty; nothing was sent.")
        address = await self._address(wanted.to, context)
        if address is None:
            return _nowhere("the message")
        # Masked before it is cut, because half a secret would not be recognised.
        first = notice(_item_id(context), address, "")
        items = text_items(first, self._ports.mask(wanted.text), _capabilities(self._ports, address))
        await self._ports.delivery.post(items, turn_id=context.turn_id)
        return (TextPart(text="The message is on its way."),)

    async def _address(self, to: str | None, context: ToolContext) -> Address | None:
        if to is None or _is_origin(to, context):
            return chat_of(context)
        binding = await self._ports.delivery.binding(to)
        if binding is None or binding.address.channel not in self._ports.channels:
            raise ToolError(await self._unknown(to, context))
        return binding.address

    async def _unknown(self, to: str, context: ToolContext) -> str:
        requester = context.requester
        direct = await self._ports.delivery.direct_addresses(requester) if requester is not None else ()
        known = dict.fromkeys(address.key for address in (*filter(None, [context.origin]), *direct))
        return (
            f"No chat of this host has the key {to!r}. A key is channel/account/chat, or channel/account/chat/thread, "
            f"of a chat that has talked to you. The ones of who asked: {', '.join(known) or 'none'}."
        )


class SendFileArguments(Arguments):
    """Arguments of `send_file`."""

    path: str = Field(description="In the workspace")
    caption: str = Field(default="", description="Text below it")


class SendFile:
    """Posts a copy of a file of the workspace, of the long outputs, or of what came with messages."""

    schema: ClassVar[ToolSchema] = tool_schema(
        SEND_FILE, "Send a file of up to 50 MB into this chat.", SendFileArguments
    )

    def __init__(self, ports: MessagingPorts) -> None:
        self._ports = ports

    def access(self, arguments: Mapping[str, Any], context: ToolContext) -> Access:
        return Access(reads=(absolute_path(parse(SendFileArguments, arguments).path, context.workspace),))

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> Sequence[TextPart]:
        wanted = parse(SendFileArguments, arguments)
        address = chat_of(context)
        data = await run_to_end(self._read, wanted.path, context)
        if address is None:
            return _nowhere("the file")
        if not _capabilities(self._ports, address).files:
            raise ToolError("This chat takes no files. Say what is in it, or where it is.")
        name = Path(wanted.path).name
        try:
            copy = await self._ports.outgoing.keep(f"{context.turn_id}-{context.call_id}", name, data)
        except OSError as error:
            raise ToolError(f"The file could not be copied for sending: {error.strerror}.") from error
        media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
        content = FileContent(path=str(copy), name=name, media_type=media_type, caption=wanted.caption)
        await _post(self._ports, address, content, context)
        return (TextPart(text=f"{name} ({len(data):,} bytes) is on its way."),)

    def _read(self, path: str, context: ToolContext) -> bytes:
        place = place_to_read(path, context)
        files = self._ports.files(place.root)
        # A file may grow between the two, so that only what was read counts.
        data = files.read(place.path, limit_bytes=FILE_LIMIT_BYTES + 1)
        if len(data) > FILE_LIMIT_BYTES:
            raise ToolError(f"{path!r} is larger than {FILE_LIMIT_BYTES:,} bytes; send a part of it.")
        if not data:
            raise ToolError(f"{path!r} is empty; there is nothing to send.")
        if any(self._ports.mask(text) != text for text in _windows(data)):
            raise ToolError(f"{path!r} holds a secret of this host and is not sent.")
        return data


class ReactArguments(Arguments):
    """Arguments of `react`."""

    emoji: str = Field(description="One emoji; empty takes yours back")
    message: str | None = Field(default=None, description="Its id; default: the one you answer")


class React:
    """Puts the agent's one reaction on a message."""

    schema: ClassVar[ToolSchema] = tool_schema(REACT, "React to a message with an emoji.", ReactArguments)

    def __init__(self, ports: MessagingPorts) -> None:
        self._ports = ports

    def access(self, arguments: Mapping[str, Any], context: ToolContext) -> Access:
        del context
        parse(ReactArguments, arguments)
        return Access(free=True)

    async def call(self, arguments: Mapping[str, Any], context: ToolContext) -> Sequence[TextPart]:
        wanted = parse(ReactArguments, arguments)
        address = chat_of(context)
        if address is None:
            return _nowhere("the reaction")
        if not _capabilities(self._ports, address).reactions:
            raise ToolError("This chat has no reactions; say it in words.")
        message = wanted.message or await self._answered(context)
        if message is None:
            raise ToolError("There is no message here to react to; name one by its id.")
        await _post(self._ports, address, ReactionContent(emoji=wanted.emoji), context, reply_to=message)
        return (TextPart(text="The reaction is on its way."),)

    async def _answered(self, context: ToolContext) -> str | None:
        """Return the platform's id of the message that the turn opened with."""
        opened = [row for row in await self._ports.delivery.taken(context.turn_id) if row.step == 0]
        return opened[0].event.external_id if opened else None


def _windows(data: bytes) -> Iterator[str]:
    """Yield the data as text, a part at a time, each with the end of the one before."""
    for start in range(0, len(data), _WINDOW_BYTES):
        yield data[max(0, start - _OVERLAP_BYTES) : start + _WINDOW_BYTES].decode("utf-8", "replace")


def chat_of(context: ToolContext) -> Address | None:
    """Return the chat that a call's turn came from; None where nobody reads one."""
    origin = context.origin
    return None if origin is None or origin.channel == HEADLESS else origin


def _is_origin(to: str | None, context: ToolContext) -> bool:
    return to is None or (context.origin is not None and to == context.origin.key)


def _item_id(context: ToolContext) -> str:
    """Return one id a call, so that what was posted is not posted again after a crash."""
    return f"{context.turn_id}/tool/{context.call_id}"


def _capabilities(ports: MessagingPorts, address: Address) -> Capabilities:
    return ports.channels[address.channel].capabilities


async def _post(
    ports: MessagingPorts,
    address: Address,
    content: OutboundContent,
    context: ToolContext,
    *,
    reply_to: str | None = None,
) -> None:
    item = OutboundItem(id=_item_id(context), address=address, content=content, reply_to=reply_to)
    await ports.delivery.post([item], turn_id=context.turn_id)


def _nowhere(what: str) -> Sequence[TextPart]:
    return (
        TextPart(
            text=f"Nothing was sent: this turn has no chat. In one, {what} would appear there now. "
            "Put it into your answer, which is all that is read here."
        ),
    )


if TYPE_CHECKING:
    _send_message: type[Tool] = SendMessage
    _send_file: type[Tool] = SendFile
    _react: type[Tool] = React
