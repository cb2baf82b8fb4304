"""What a provider's stream consists of, freed from any provider's form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFragment:
    """The next piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningFragment:
    """The next piece of reasoning. A signature, or redacted data, ends its block."""

    text: str = ""
    signature: str | None = None
    redacted: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFragment:
    """A piece of a tool call; providers omit, repeat or reuse every one of these fields."""

    index: int | None = None
    id: str | None = None
    name: str | None = None
    arguments: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageFragment:
    """Reported tokens; None where the provider was silent. `input_tokens` includes cached ones."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishFragment:
    """The provider's own word for how the step ended."""

    reason: str


Fragment: TypeAlias = TextFragment | ReasoningFragment | CallFragment | UsageFragment | FinishFragment
