"""The settings in force: read at use, so that a reload is one switch for all that reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from bot.config.model import ModelSection, Settings
from bot.config.secrets import Secret
from core.contracts.agents import ModelSettings
from core.contracts.messages import ToolCall
from core.contracts.permissions import Grant, Policy, Subject, Verdict
from core.contracts.tools import Access


class LiveSettings:
    """What holds now. Read `current` whenever something is decided; keep no part of it."""

    def __init__(self, settings: Settings) -> None:
        self._current = settings

    @property
    def current(self) -> Settings:
        """The settings in force, the same until a reload."""
        return self._current

    def switch(self, settings: Settings) -> None:
        """Put other settings in force, all of them at once."""
        self._current = settings


class PolicyInForce:
    """Judges each call by the policy that `policy` gives at that moment."""

    def __init__(self, policy: Callable[[], Policy]) -> None:
        self._policy = policy

    def verdict(self, call: ToolCall, access: Access | None, subject: Subject, grants: tuple[Grant, ...]) -> Verdict:
        return self._policy().verdict(call, access, subject, grants)


class ModelKeys:
    """The keys of models: each is given to the model it was configured with, and to no other.

    A turn that began before a reload goes on with its old model. A key found by name alone would
    then be the new one, shown to the old provider.
    """

    def __init__(self, models: Mapping[str, ModelSection]) -> None:
        self._keys: dict[tuple[str, str, str], Secret | None] = {}
        self.add(models)

    def add(self, models: Mapping[str, ModelSection]) -> None:
        """Know the keys of these models, too; a newer key of the same model replaces the older one."""
        self._keys.update({(name, model.model, model.api_base): model.api_key for name, model in models.items()})

    def key_of(self, model: ModelSettings) -> str | None:
        """Return a model's key, or None where it has none or was never configured like this."""
        key = self._keys.get((model.name, model.model, model.api_base))
        return key.reveal() if key is not None else None


if TYPE_CHECKING:
    _conforms: type[Policy] = PolicyInForce
