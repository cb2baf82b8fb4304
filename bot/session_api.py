"""What a client of a two-way session may ask of a running host; docs/stream-json.md is its protocol."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Protocol


class SessionApi(Protocol):
    """Sessions for the person at this machine, who counts as an owner.

    All may be called concurrently. Every object that is returned or told is without secrets.
    """

    async def open(self, *, agent: str, conversation: str) -> Mapping[str, Any]:
        """Return the `session` object of a conversation; with an empty name a new one is begun.

        Raises:
            NotFound: No such agent or conversation.
            InvalidInput: The conversation is another agent's.
        """
        ...

    async def state(self, conversation_id: str) -> Mapping[str, Any]:
        """Return the `session` object as things stand now, or raise `NotFound`."""
        ...

    async def lines(self, conversation_id: str, *, after: int) -> AsyncGenerator[Sequence[str], None]:
        """Return the conversation's lines behind number `after`, several at a time, then what follows; endless.

        Each line is one JSON object in ASCII without its line end. Whoever follows counts as a
        connected client. Two followers get the same lines.

        Raises:
            NotFound: No such conversation.
            InvalidInput: There is no line `after` yet.
        """
        ...

    async def take(self, conversation_id: str, said: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """Take one input; it is durable when this returns. Return what is told to this client alone.

        Raises:
            NotFound: No such conversation.
            InvalidInput: It cannot be taken; says why, and nothing was done.
        """
        ...

    async def cancel_turn(self, conversation_id: str, input_id: str) -> str:
        """Stop the turn that a message of `run_headless` began, or withdraw the message; return what was done."""
        ...
