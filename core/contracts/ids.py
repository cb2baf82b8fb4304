"""Identifiers: opaque, sortable by creation time, safe in URLs and file names."""

from __future__ import annotations

import secrets
import time
from typing import NewType

AgentId = NewType("AgentId", str)
ConversationId = NewType("ConversationId", str)
MessageId = NewType("MessageId", str)
TurnId = NewType("TurnId", str)
RunId = NewType("RunId", str)
CallId = NewType("CallId", str)
"""The provider's id where usable, unique within its conversation."""
ApprovalId = NewType("ApprovalId", str)
PersonId = NewType("PersonId", str)
"""One human across platforms; identities such as `telegram:111` link to it."""
Revision = NewType("Revision", str)
"""A commit of an agent's memory: 40 hex digits."""

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_id(prefix: str) -> str:
    """Return `prefix-` and 20 characters: 58 bits of microseconds, then 42 random bits.

    Making one takes longer than a microsecond, so those of one process sort as they were made.
    """
    value = (time.time_ns() // 1_000) << 42 | secrets.randbits(42)
    digits = []
    for _ in range(20):
        value, digit = divmod(value, 32)
        digits.append(_ALPHABET[digit])
    return f"{prefix}-{''.join(reversed(digits))}"


def short_token() -> str:
    """Return an unguessable token of 16 characters (80 bits) for buttons and pairing."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(16))
