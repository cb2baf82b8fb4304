"""Agents and conversations: what makes them whole."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from core.contracts.ids import AgentId, ConversationId


class PermissionMode(StrEnum):
    """How far an agent goes without asking; DESIGN section 12 has the order of evaluation."""

    ASK = "ask"
    ACCEPT_EDITS = "accept_edits"
    STRICT = "strict"
    UNRESTRICTED = "unrestricted"


class QueueMode(StrEnum):
    """What becomes of a message that comes while a turn of its conversation runs.

    `STEER`: it enters the turn at its next tool boundary. `AFTER_TURN`: it waits. `INTERRUPT`: the
    turn is stopped and it goes next. Only for whoever may steer; others' messages always wait.
    """

    STEER = "steer"
    AFTER_TURN = "after_turn"
    INTERRUPT = "interrupt"


EVERYONE = "everyone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """Who may see what a conversation sees: a set of audience words.

    Words are `everyone`, `person:<id>` and `address:<channel>/<chat>`. `everyone` is always in.
    """

    words: frozenset[str] = frozenset({EVERYONE})

    def sees(self, word: str) -> bool:
        """Return whether something marked `word` may be shown to this audience."""
        return word in self.words

    @property
    def key(self) -> str:
        """Return a canonical text of the set, equal for equal audiences."""
        return " ".join(sorted(self.words))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """Which model an agent thinks with.

    `model` is a litellm name or `scripted/demo`. `client` is `auto`, `litellm` or `direct`.
    Zero for a token figure means: take it from the model facts; so does None for `sees_images`.
    """

    name: str
    model: str
    api_base: str = ""
    client: str = "auto"
    fallbacks: tuple[str, ...] = ()
    window_tokens: int = 0
    max_output_tokens: int = 0
    toolset: str = ""
    sees_images: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent. `memory_id` names its repository; `workspace` is an absolute path."""

    id: AgentId
    name: str
    model: ModelSettings
    permission_mode: PermissionMode
    toolset: str
    workspace: str
    memory_id: str
    created_at: datetime
    queue_mode: QueueMode = QueueMode.STEER


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """What `create_agent` takes. `memory_files` maps paths to texts; empty: the default ones."""

    name: str
    model: ModelSettings
    permission_mode: PermissionMode = PermissionMode.ASK
    toolset: str = "default"
    workspace: str = ""
    queue_mode: QueueMode = QueueMode.STEER
    memory_files: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One transcript of one agent. `epoch` is the number of the latest claim."""

    id: ConversationId
    agent_id: AgentId
    audience: Audience
    permission_mode: PermissionMode | None
    epoch: int
    created_at: datetime
    title: str = ""
    hidden: bool = False
    queue_mode: QueueMode | None = None
    """None: the agent's."""
    paused: bool = False
    """No turn begins until a person lets the conversation go on; messages wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledPrompt:
    """A system prompt as it was compiled once and is sent byte for byte ever after.

    `seen_revision` is the newest memory revision the conversation knows, by the prompt or by
    later `memory_update` parts; `stamp` is the hash of everything besides memory that the text
    depends on (template, persona source, model, toolset, audience).
    """

    text: str
    revision: str
    seen_revision: str
    stamp: str
    tools_json: str
    """The canonical JSON of the tool schemas that were compiled with it."""
    reason: str
