"""What single values cannot show: names that must exist, values that must differ, and warnings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bot.config.model import (
    DEFAULT_AGENT,
    DEFAULT_NAME,
    DEMO_MODEL,
    MOST_PROMPTS,
    AccessSettings,
    AgentSection,
    BudgetSettings,
    Channels,
    DiscordSettings,
    ModelSection,
    NetworkAccess,
    Settings,
    SlackSettings,
    TelegramSettings,
)
from bot.config.secrets import PLAIN, Secret
from bot.config.sections import read_section
from bot.config.values import Place, closest
from core.permissions.policy import shadowed_rules
from core.secrets.redaction import SHORTEST_SECRET_CHARS

_VARIABLE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")


def completed(settings: Settings, place: Place) -> Settings:
    """Return the settings with a model and an agent where none is given, and every name filled in.

    Raises:
        ConfigError: A name is left out and several could be meant.
    """
    models = settings.models or {DEFAULT_NAME: ModelSection(model=DEMO_MODEL)}
    agents_place = place.child("agents")
    given = settings.agents or {DEFAULT_AGENT: read_section(AgentSection, {}, agents_place.child(DEFAULT_AGENT))}
    agents = {
        name: replace(agent, model=agent.model or _only(models, DEFAULT_NAME, agents_place.child(name).child("model")))
        for name, agent in given.items()
    }
    return replace(settings, models=models, agents=agents, channels=_completed_channels(settings, agents, place))


def check(settings: Settings, place: Place) -> None:
    """Refuse settings that contradict themselves.

    Raises:
        ConfigError: The first contradiction found.
    """
    _check_names(settings, place)
    _check_telegram(settings, place.child("channels").child("telegram"))
    _check_slack(settings, place.child("channels").child("slack"))
    _check_tokens_differ(settings, place)
    _check_bots(settings.access, place.child("access").child("bots"))
    check_folders(settings, place)
    _check_built(settings, place)
    if settings.permissions.remind_after >= settings.permissions.deadline:
        raise place.child("permissions").child("remind_after").error("must be shorter than permissions.deadline")


def check_folders(settings: Settings, place: Place) -> None:
    """Refuse a workspace that holds what no agent may reach: its commands may do there what they like.

    Raises:
        ConfigError: The first such workspace.
    """
    for name, agent in settings.agents.items():
        workspace = agent.workspace.resolve()
        for path, words in _out_of_reach(settings).items():
            # A link is held where it stands and where it leads: either end can be replaced.
            if path.resolve().is_relative_to(workspace) or path.parent.resolve().is_relative_to(workspace):
                where = place.child("agents").child(name).child("workspace")
                raise where.error(f"{str(agent.workspace)!r} holds {words}, which no agent may reach")


def out_of_reach(settings: Settings) -> tuple[Path, ...]:
    """Return what no agent may read or write, by whatever tool."""
    return tuple(_out_of_reach(settings))


def secret_values(settings: Settings) -> tuple[tuple[str, str], ...]:
    """Return every secret as (name, value), for the redactor; the name is the key's path.

    A password inside the database address is listed by itself, too. Values that are too short
    to be masked are left out; `warnings_of` tells of them.
    """
    found = [(name, secret.reveal()) for name, secret in _secrets(settings)]
    url = settings.host.database_url
    if url is not None and (password := _password(url)):
        found += [("host.database_url", password), ("host.database_url", unquote(password))]
    return tuple(dict.fromkeys(pair for pair in found if len(pair[1]) >= SHORTEST_SECRET_CHARS))


def warnings_of(settings: Settings) -> tuple[str, ...]:
    """Return what works but should be changed, a line each; no line holds a secret."""
    return (*_secret_warnings(settings), *_permission_warnings(settings), *_later_warnings(settings))


def _only(known: Mapping[str, object], preferred: str, place: Place) -> str:
    if preferred in known:
        return preferred
    if len(known) == 1:
        return next(iter(known))
    raise place.error("is missing", f"one of {', '.join(known)}")


def _completed_channels(settings: Settings, agents: Mapping[str, AgentSection], place: Place) -> Channels:
    def agent_of(name: str, channel: TelegramSettings | SlackSettings | DiscordSettings) -> str:
        return channel.agent or _only(agents, DEFAULT_AGENT, place.child("channels").child(name).child("agent"))

    channels = settings.channels
    telegram, slack, discord = channels.telegram, channels.slack, channels.discord
    return Channels(
        telegram=telegram and replace(telegram, agent=agent_of("telegram", telegram)),
        slack=slack and replace(slack, agent=agent_of("slack", slack)),
        discord=discord and replace(discord, agent=agent_of("discord", discord)),
    )


def _configured(channels: Channels) -> Iterator[tuple[str, TelegramSettings | SlackSettings | DiscordSettings]]:
    for name, channel in (("telegram", channels.telegram), ("slack", channels.slack), ("discord", channels.discord)):
        if channel is not None:
            yield name, channel


def _check_names(settings: Settings, place: Place) -> None:
    for name, agent in settings.agents.items():
        _must_be_known(agent.model, settings.models, place.child("agents").child(name).child("model"), "model")
    for name, model in settings.models.items():
        for number, fallback in enumerate(model.fallbacks):
            where = place.child("models").child(name).child("fallbacks").child(number)
            _must_be_known(fallback, settings.models, where, "model")
            if fallback == name:
                raise where.error(f"the model {name!r} cannot stand in for itself")
    for name, channel in _configured(settings.channels):
        _must_be_known(channel.agent, settings.agents, place.child("channels").child(name).child("agent"), "agent")


def _must_be_known(name: str, known: Mapping[str, object], place: Place, kind: str) -> None:
    if name not in known:
        raise place.error(f"there is no [{kind}s.{name}]", closest(name, known) or f"{kind}s here: {', '.join(known)}")


def _check_telegram(settings: Settings, place: Place) -> None:
    telegram = settings.channels.telegram
    if telegram is None:
        return
    if bool(telegram.webhook_url) != (telegram.webhook_secret is not None):
        missing = "webhook_secret" if telegram.webhook_url else "webhook_url"
        raise place.child(missing).error("is missing", "webhook_url and webhook_secret go together")
    if telegram.webhook_url and telegram.webhook_listen.port and telegram.webhook_listen == settings.console.listen:
        raise place.child("webhook_listen").error("is the same address as console.listen")


def _check_slack(settings: Settings, place: Place) -> None:
    slack = settings.channels.slack
    if slack is None:
        return
    if (slack.app_token is None) == (slack.signing_secret is None):
        raise place.error("needs either app_token (Socket Mode) or signing_secret (HTTP)")
    telegram = settings.channels.telegram
    taken = {settings.console.listen: "console.listen"}
    if telegram is not None and telegram.webhook_url:
        taken[telegram.webhook_listen] = "channels.telegram.webhook_listen"
    if slack.signing_secret is not None and slack.events_listen.port and slack.events_listen in taken:
        raise place.child("events_listen").error(f"is the same address as {taken[slack.events_listen]}")
    if len(slack.suggested_prompts) > MOST_PROMPTS:
        raise place.child("suggested_prompts").error(f"has more than {MOST_PROMPTS} prompts", "Slack shows four")


def _check_tokens_differ(settings: Settings, place: Place) -> None:
    seen: dict[Secret, str] = {}
    for name, secret in _secrets(settings.channels, "channels"):
        if secret in seen:
            where = place
            for key in name.split("."):
                where = where.child(key)
            raise where.error(f"is the same token as {seen[secret]}", "one token serves one connection")
        seen[secret] = name


def _check_bots(access: AccessSettings, place: Place) -> None:
    for number, bot in enumerate(access.bots):
        if bot in {*access.owners, *access.operators}:
            raise place.child(number).error(f"{bot!r} is an owner or operator, too", "another bot only talks")


def _out_of_reach(settings: Settings) -> Mapping[Path, str]:
    paths = {settings.host.data_dir: "host.data_dir"}
    if settings.source is not None:
        paths[settings.source] = "the configuration file"
    if settings.last_good is not None:
        paths[settings.last_good.parent] = "the copies of configurations that worked"
    return paths


def _check_built(settings: Settings, place: Place) -> None:
    """Refuse what this release cannot do where going on without it would be unsafe or lose something."""
    if settings.host.database_url is not None:
        where = place.child("host").child("database_url")
        raise where.error("other databases than SQLite come with a later release", "leave it out: SQLite in data_dir")
    if settings.sandbox.network is NetworkAccess.ALLOWLIST:
        where = place.child("sandbox").child("network")
        raise where.error("an allow-list of hosts comes with a later release", '"none" or "full"')


def _later_warnings(settings: Settings) -> Iterator[str]:
    """Name the keys that are set and have no effect in this release."""
    later = {
        "budgets": settings.budgets != BudgetSettings(),
        **{f"models.{name}.fallbacks": bool(model.fallbacks) for name, model in settings.models.items()},
    }
    for key, is_set in later.items():
        if is_set:
            yield f"{key} has no effect yet: it comes with a later release"


def _secrets(part: object, path: str = "") -> Iterator[tuple[str, Secret]]:
    if isinstance(part, Secret):
        yield path, part
    elif isinstance(part, Mapping):
        for name, value in part.items():
            yield from _secrets(value, f"{path}.{name}")
    elif is_dataclass(part):
        for field in fields(part):
            yield from _secrets(getattr(part, field.name), f"{path}.{field.name}" if path else field.name)


def _password(url: Secret) -> str:
    try:
        return urlsplit(url.reveal()).password or ""
    except ValueError:
        return ""


def _secret_warnings(settings: Settings) -> Iterator[str]:
    for name, secret in _secrets(settings):
        value = secret.reveal()
        if secret.source == PLAIN and _VARIABLE.fullmatch(value):
            yield f'{name} is the very text "${{NAME}}"; for the variable of that name write {{ env = "NAME" }}'
        elif secret.source == PLAIN and (name != "host.database_url" or _password(secret)):
            yield f"{name} stands in the file as plain text; better refer to it: env, file or keyring"
        if len(value) < SHORTEST_SECRET_CHARS:
            yield f"{name} is shorter than {SHORTEST_SECRET_CHARS} characters and cannot be masked"


def _permission_warnings(settings: Settings) -> Iterator[str]:
    if not settings.permissions.approvers:
        yield "permissions.approvers is empty: nobody can approve anything"
    for rule in shadowed_rules(settings.permissions.rules):
        yield f'the rule "{rule.name}" never asks, an earlier step allows it; use action = "always_ask"'
