"""What two configurations differ in, and what of a new one a running host can take on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass, replace
from typing import TypeVar

from bot.config.model import Channels, DiscordSettings, Settings, SlackSettings, TelegramSettings
from bot.config.sections import readers_of

_Channel = TypeVar("_Channel", TelegramSettings, SlackSettings, DiscordSettings)


def adopted(running: Settings, wanted: Settings) -> Settings:
    """Return the wanted settings, with what cannot change under a running host left as it is.

    That is: the folders, the database, connections to platforms, addresses that are listened at,
    and the sandbox. Which agent answers on a connected platform can change.
    """
    return replace(
        wanted,
        host=running.host,
        console=running.console,
        sandbox=running.sandbox,
        channels=Channels(
            telegram=_same_connection(running.channels.telegram, wanted.channels.telegram),
            slack=_same_connection(running.channels.slack, wanted.channels.slack),
            discord=_same_connection(running.channels.discord, wanted.channels.discord),
        ),
    )


def changed_keys(before: Settings, after: Settings) -> tuple[str, ...]:
    """Return the paths of the keys that differ; a table that came or went is named as a whole.

    Only names: no value, so no secret.
    """
    return tuple(_differing(before, after, ""))


def _same_connection(running: _Channel | None, wanted: _Channel | None) -> _Channel | None:
    if running is None or wanted is None:
        return running
    return replace(running, agent=wanted.agent)


def _differing(before: object, after: object, path: str) -> Iterator[str]:
    if before == after:
        return
    parts = _parts(before), _parts(after)
    if parts[0] is None or parts[1] is None or type(before) is not type(after):
        yield path
        return
    for name in dict.fromkeys((*parts[0], *parts[1])):
        here = f"{path}.{name}" if path else name
        if name in parts[0] and name in parts[1]:
            yield from _differing(parts[0][name], parts[1][name], here)
        else:
            yield here


def _parts(value: object) -> Mapping[str, object] | None:
    """Return the keys of a section or the sections of a table by name; None for a single value."""
    if isinstance(value, Mapping):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {name: getattr(value, name) for name in readers_of(type(value))} or None
    return None
