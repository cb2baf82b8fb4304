"""Every key of the configuration, its type and its default; `config.example.toml` explains them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from bot.config.secrets import Secret
from bot.config.sections import Converted, Named, Section
from bot.config.values import (
    Choice,
    ListenAddress,
    ListOf,
    Place,
    address,
    approver,
    count,
    directory,
    duration,
    filled_text,
    flag,
    identity,
    listen,
    listen_address,
    money,
    optional_directory,
    public_address,
    secret,
    size,
    text,
    zone,
)
from core.contracts.agents import ModelSettings, PermissionMode, QueueMode
from core.contracts.permissions import Action, PersonRole
from core.permissions.approvals import DEFAULT_APPROVERS
from core.permissions.rules import Rule, RuleError, make_rule

DEFAULT_NAME = "main"
DEFAULT_AGENT = "lodger"
DEMO_MODEL = "scripted/demo"
DEFAULT_LISTEN = ListenAddress(host="127.0.0.1", port=8787)
DEFAULT_WEBHOOK_LISTEN = ListenAddress(host="127.0.0.1", port=8788)
DEFAULT_EVENTS_LISTEN = ListenAddress(host="127.0.0.1", port=8789)
MOST_PROMPTS = 4
"""docs.slack.dev/reference/methods/assistant.threads.setSuggestedPrompts: at most four."""
SHORTEST_INBOX = timedelta(days=2)
"""Platforms send again for a day what they do not know to have arrived; until then it must be recognised."""

# core.telegram.org/bots/api#setwebhook, secret_token, read 2026-11-30
_WEBHOOK_SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")


class ConversationPer(StrEnum):
    """What one conversation is held in: a whole chat, or each of its threads."""

    CHAT = "chat"
    THREAD = "thread"


class LogLevel(StrEnum):
    """From how important on a log line is written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogForm(StrEnum):
    """How a log line is written."""

    TEXT = "text"
    JSON = "json"


class ClientKind(StrEnum):
    """By which client a model is reached."""

    AUTO = "auto"
    LITELLM = "litellm"
    DIRECT = "direct"


class DirectMessages(StrEnum):
    """What an unknown person's direct message leads to."""

    PAIRING = "pairing"
    ALLOWLIST = "allowlist"
    OPEN = "open"


class GroupTalk(StrEnum):
    """What an agent answers in an admitted group.

    `MENTION`: what mentions it or replies to it, and all in a thread that it shares with one person
    alone. `PARTICIPATE`: also every message of a thread it has answered in. `ALL`: every message.
    """

    MENTION = "mention"
    PARTICIPATE = "participate"
    ALL = "all"


class SandboxKind(StrEnum):
    """What isolates commands."""

    AUTO = "auto"
    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    UNSAFE_HOST_SHELL = "unsafe_host_shell"


class NetworkAccess(StrEnum):
    """What commands reach."""

    NONE = "none"
    ALLOWLIST = "allowlist"
    FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """`[host]`. No `database_url`: SQLite in `data_dir`; it is a secret because it may hold a password.

    `attachment_limit` is the largest file, in bytes, that is taken from a message.
    """

    data_dir: Annotated[Path, directory] = Path("~/.local/share/lodger")
    database_url: Annotated[Secret | None, _database_url] = None
    time_zone: Annotated[str, zone] = "UTC"
    attachment_limit: Annotated[int, size] = 20_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """`[logs]`."""

    level: Annotated[LogLevel, Choice(LogLevel)] = LogLevel.INFO
    form: Annotated[LogForm, Choice(LogForm)] = LogForm.TEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSettings:
    """`[console]`. `listen` is None where the console is switched off."""

    listen: Annotated[ListenAddress | None, listen] = DEFAULT_LISTEN


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSection:
    """`[models.NAME]`. Zero tokens, an empty toolset, no word on images: as the model facts say."""

    model: Annotated[str, filled_text]
    api_key: Annotated[Secret | None, secret] = None
    api_base: Annotated[str, address] = ""
    fallbacks: Annotated[tuple[str, ...], ListOf(filled_text)] = ()
    client: Annotated[ClientKind, Choice(ClientKind)] = ClientKind.AUTO
    window_tokens: Annotated[int, count] = 0
    max_output_tokens: Annotated[int, count] = 0
    toolset: Annotated[str, text] = ""
    sees_images: Annotated[bool | None, flag] = None

    def settings(self, name: str) -> ModelSettings:
        """Return what the core takes; the key is handed over apart from it."""
        return ModelSettings(
            name=name,
            model=self.model,
            api_base=self.api_base,
            client=self.client.value,
            fallbacks=self.fallbacks,
            window_tokens=self.window_tokens,
            max_output_tokens=self.max_output_tokens,
            toolset=self.toolset,
            sees_images=self.sees_images,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSection:
    """`[agents.NAME]`. `model` names a `[models.NAME]`; `memory` is a folder of initial files.

    `queue_mode` is what becomes of a message that comes while a turn runs.
    """

    model: Annotated[str, text] = ""
    permission_mode: Annotated[PermissionMode, Choice(PermissionMode)] = PermissionMode.ASK
    workspace: Annotated[Path, directory] = Path("~/lodger-workspace")
    memory: Annotated[Path | None, optional_directory] = None
    queue_mode: Annotated[QueueMode, Choice(QueueMode)] = QueueMode.STEER


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramSettings:
    """`[channels.telegram]`. No `webhook_url`: updates are fetched; with one, `webhook_secret` is set, too."""

    token: Annotated[Secret, secret]
    agent: Annotated[str, text] = ""
    api_base: Annotated[str, address] = "https://api.telegram.org"
    webhook_url: Annotated[str, public_address] = ""
    webhook_secret: Annotated[Secret | None, _webhook_secret] = None
    webhook_listen: Annotated[ListenAddress, listen_address] = DEFAULT_WEBHOOK_LISTEN


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackSettings:
    """`[channels.slack]`. `app_token` for Socket Mode, `signing_secret` for events posted to `events_listen`."""

    bot_token: Annotated[Secret, secret]
    app_token: Annotated[Secret | None, secret] = None
    signing_secret: Annotated[Secret | None, secret] = None
    events_listen: Annotated[ListenAddress, listen_address] = DEFAULT_EVENTS_LISTEN
    agent: Annotated[str, text] = ""
    direct: Annotated[ConversationPer, Choice(ConversationPer)] = ConversationPer.THREAD
    rooms: Annotated[ConversationPer, Choice(ConversationPer)] = ConversationPer.THREAD
    suggested_prompts: Annotated[tuple[str, ...], ListOf(filled_text)] = ()
    api_base: Annotated[str, address] = "https://slack.com/api/"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordSettings:
    """`[channels.discord]`. An empty `gateway_url` is the library's own."""

    token: Annotated[Secret, secret]
    agent: Annotated[str, text] = ""
    rooms: Annotated[ConversationPer, Choice(ConversationPer)] = ConversationPer.THREAD
    api_base: Annotated[str, address] = "https://discord.com/api/v10"
    gateway_url: Annotated[str, address] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Channels:
    """`[channels]`: the platforms that are configured."""

    telegram: Annotated[TelegramSettings | None, Section(TelegramSettings)] = None
    slack: Annotated[SlackSettings | None, Section(SlackSettings)] = None
    discord: Annotated[DiscordSettings | None, Section(DiscordSettings)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessSettings:
    """`[access]`: who may talk, steer and administer. `bots` are other bots that may talk.

    `guests`: whether guests and people of other organisations may talk where members may.
    """

    owners: Annotated[tuple[str, ...], ListOf(identity)] = ()
    operators: Annotated[tuple[str, ...], ListOf(identity)] = ()
    direct_messages: Annotated[DirectMessages, Choice(DirectMessages)] = DirectMessages.PAIRING
    groups: Annotated[GroupTalk, Choice(GroupTalk)] = GroupTalk.MENTION
    allow: Annotated[tuple[str, ...], ListOf(identity)] = ()
    bots: Annotated[tuple[str, ...], ListOf(identity)] = ()
    guests: Annotated[bool, flag] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSection:
    """One element of `permissions.rules`."""

    tool: Annotated[str, filled_text]
    action: Annotated[Action, Choice(Action)]
    match: Annotated[str, text] = ""
    channel: Annotated[str, text] = ""
    role: Annotated[PersonRole | None, Choice(PersonRole)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionSettings:
    """`[permissions]`. No approvers: nobody can approve."""

    rules: Annotated[tuple[Rule, ...], ListOf(Converted(Section(RuleSection), _rule))] = ()
    approvers: Annotated[tuple[str, ...], ListOf(approver)] = DEFAULT_APPROVERS
    deadline: Annotated[timedelta, duration] = timedelta(hours=24)
    remind_after: Annotated[timedelta, duration] = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSettings:
    """`[sandbox]`."""

    kind: Annotated[SandboxKind, Choice(SandboxKind)] = SandboxKind.AUTO
    network: Annotated[NetworkAccess, Choice(NetworkAccess)] = NetworkAccess.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSettings:
    """`[budgets]`, in US dollars; 0 is no limit."""

    per_person_per_day_usd: Annotated[float, money] = 5.0
    per_day_usd: Annotated[float, money] = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechSettings:
    """`[speech]`: what writes voice messages down; without a `model` nothing does.

    `local/NAME` is a Whisper model on this machine, anything else a litellm name. `longest` is the
    longest recording that is taken, `timeout` how long one may take to be written down.
    """

    model: Annotated[str, text] = ""
    api_key: Annotated[Secret | None, secret] = None
    api_base: Annotated[str, address] = ""
    language: Annotated[str, text] = ""
    longest: Annotated[timedelta, duration] = timedelta(minutes=10)
    timeout: Annotated[timedelta, duration] = timedelta(minutes=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSettings:
    """`[retention]`: for how long what is no longer needed is kept.

    `events` of runs, `inbox` rows of handled messages, lines of headless `sessions`, `attachments`
    and `overflow` files.
    """

    events: Annotated[timedelta, duration] = timedelta(days=7)
    inbox: Annotated[timedelta, _inbox_age] = timedelta(days=30)
    sessions: Annotated[timedelta, duration] = timedelta(days=7)
    attachments: Annotated[timedelta, duration] = timedelta(days=30)
    overflow: Annotated[timedelta, duration] = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The whole configuration, checked.

    `source` is the absolute path of its file, None where there is none. `last_good` is where the
    text that worked last is kept for a start at which that file is refused; None without a file.
    """

    host: Annotated[HostSettings, Section(HostSettings)] = field(default_factory=HostSettings)
    logs: Annotated[LogSettings, Section(LogSettings)] = field(default_factory=LogSettings)
    console: Annotated[ConsoleSettings, Section(ConsoleSettings)] = field(default_factory=ConsoleSettings)
    models: Annotated[Mapping[str, ModelSection], Named(ModelSection)] = field(default_factory=dict)
    agents: Annotated[Mapping[str, AgentSection], Named(AgentSection)] = field(default_factory=dict)
    channels: Annotated[Channels, Section(Channels)] = field(default_factory=Channels)
    access: Annotated[AccessSettings, Section(AccessSettings)] = field(default_factory=AccessSettings)
    permissions: Annotated[PermissionSettings, Section(PermissionSettings)] = field(default_factory=PermissionSettings)
    sandbox: Annotated[SandboxSettings, Section(SandboxSettings)] = field(default_factory=SandboxSettings)
    speech: Annotated[SpeechSettings, Section(SpeechSettings)] = field(default_factory=SpeechSettings)
    budgets: Annotated[BudgetSettings, Section(BudgetSettings)] = field(default_factory=BudgetSettings)
    retention: Annotated[RetentionSettings, Section(RetentionSettings)] = field(default_factory=RetentionSettings)
    source: Path | None = None
    last_good: Path | None = None
    warnings: tuple[str, ...] = ()
    """What works but should be changed, for doctor: one line each, no secret in any."""


def _database_url(value: object, place: Place) -> Secret | None:
    if value == "":
        return None
    url = secret(value, place)
    if not url.reveal().startswith(("sqlite", "postgresql+psycopg://")):
        raise place.error("expected a database address", "postgresql+psycopg://..., or nothing for SQLite in data_dir")
    return url


def _webhook_secret(value: object, place: Place) -> Secret:
    given = secret(value, place)
    if _WEBHOOK_SECRET.fullmatch(given.reveal()) is None:
        raise place.error("expected 1 to 256 letters (A-Z, a-z), digits, _ and -", "openssl rand -hex 32 makes one")
    return given


def _inbox_age(value: object, place: Place) -> timedelta:
    age = duration(value, place)
    if age < SHORTEST_INBOX:
        raise place.wrong("2d or more", value, "platforms send messages again for a day, which must be recognised")
    return age


def _rule(section: RuleSection, place: Place) -> Rule:
    try:
        return make_rule(
            tool=section.tool,
            action=section.action,
            match=section.match,
            channel=section.channel,
            role=section.role,
        )
    except RuleError as error:
        raise place.child(error.field).error(error.detail) from error
