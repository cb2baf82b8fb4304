"""Picks the client for each model, and loads litellm only where a model needs it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from core.contracts.agents import ModelSettings
from core.contracts.errors import ModelRejected
from core.contracts.models import ModelClient, ModelEvent, ModelFacts, ModelRequest
from core.models.profiles import ANTHROPIC, OPENAI, SCRIPTED, bare_name, model_facts, provider_of


class WarmableClient(ModelClient, Protocol):
    """A client that takes seconds to load."""

    async def warm(self) -> None:
        """Load now, without blocking the loop; a second call returns at once."""
        ...


class ModelRouter:
    """A `ModelClient` over all others.

    Args:
        direct: For both forms that are spoken without litellm.
        litellm: For everything else.
        scripted: Clients by the name behind `scripted/`.
    """

    def __init__(self, *, direct: ModelClient, litellm: WarmableClient, scripted: Mapping[str, ModelClient]) -> None:
        self._direct = direct
        self._litellm = litellm
        self._scripted = scripted

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        return self._client_for(request.settings).stream(request)

    def facts(self, settings: ModelSettings) -> ModelFacts:
        return model_facts(settings)

    async def warm(self, models: Iterable[ModelSettings]) -> None:
        """Load what `models` need, so that nobody's first message waits for it."""
        if any(needs_litellm(settings) for settings in models):
            await self._litellm.warm()

    def _client_for(self, settings: ModelSettings) -> ModelClient:
        if provider_of(settings.model) == SCRIPTED:
            client = self._scripted.get(bare_name(settings.model))
            if client is None:
                raise ModelRejected(f"there is no scripted model {settings.model!r}")
            return client
        if needs_litellm(settings):
            return self._litellm
        if provider_of(settings.model) not in {OPENAI, ANTHROPIC} and not settings.api_base:
            # Without this the key of one provider would be shown to another.
            raise ModelRejected(f"the direct client needs an api_base for {settings.model!r}")
        return self._direct


def needs_litellm(settings: ModelSettings) -> bool:
    """Return whether only litellm, or litellm by wish, reaches the model.

    `auto` goes direct to Anthropic, and to servers with an address of their own that copy
    OpenAI's chat form. OpenAI's own models want more than that form.
    """
    provider = provider_of(settings.model)
    if provider == SCRIPTED or settings.client == "direct":
        return False
    if settings.client == "litellm":
        return True
    return not (provider == ANTHROPIC or (provider == OPENAI and settings.api_base))


if TYPE_CHECKING:
    _conforms: type[ModelClient] = ModelRouter
