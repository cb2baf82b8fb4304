"""What a fake Slack shows of an agent at work: status lines, titles, suggested prompts, sessions.

After docs.slack.dev/ai/agent-sessions and docs.slack.dev/reference/methods/assistant.threads.setStatus
as read on 2026-11-30.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from core.contracts.clock import Clock
from tests.platforms.slack_blocks import decoded
from tests.platforms.slack_refusals import Refusal, invalid_arguments, required
from tests.platforms.slack_workspace import Channel, Json, Workspace

STATUS_TTL = timedelta(minutes=2)
LOADING_MESSAGES = 10
PROMPTS = 4
TITLE_LIMIT_CHARS = 200

_SESSION_STATES = {"processing", "active", "suspended", "closed"}


@dataclass
class Status:
    """A status line below a thread. `set_at` is seconds of the server's clock, `after` the ts of that moment."""

    text: str
    set_at: float
    after: str
    loading_messages: list[str] = field(default_factory=list)


@dataclass
class Session:
    """An agent's session in a thread; `statuses` are all it had, oldest first."""

    title: str = ""
    statuses: list[str] = field(default_factory=list)

    @property
    def status(self) -> str:
        return self.statuses[-1] if self.statuses else ""


class Agents:
    """Keeps them by channel and thread."""

    def __init__(self, clock: Clock, workspace: Workspace) -> None:
        self.sessions: dict[tuple[str, str], Session] = {}
        self.titles: dict[tuple[str, str], str] = {}
        self.prompts: dict[tuple[str, str], list[Json]] = {}
        self.subscribed_to_stops = True
        self._clock = clock
        self._workspace = workspace
        self._statuses: dict[tuple[str, str], Status] = {}

    def status(self, channel: str, thread: str) -> str:
        """Return the status line that stands below a thread now; the next message and two minutes clear it."""
        status = self._statuses.get((channel, thread))
        if status is None or self._clock.monotonic() - status.set_at > STATUS_TTL.total_seconds():
            return ""
        messages = self._workspace.channels[channel].messages.values()
        answered = any(m.from_bot and m.thread_ts == thread and m.ts > status.after for m in messages)
        return "" if answered else status.text

    def loading_messages(self, channel: str, thread: str) -> list[str]:
        """Return what the status line rotates through."""
        status = self._statuses.get((channel, thread))
        return status.loading_messages if status else []

    def set_status(self, params: Json) -> Json:
        """Carry out assistant.threads.setStatus; an empty status clears it."""
        channel, thread = self._thread(params)
        if "status" not in params:
            raise invalid_arguments("missing required field: status [json-pointer:/status]")
        rotating = decoded(params.get("loading_messages") or [])
        if len(rotating) > LOADING_MESSAGES:
            raise invalid_arguments(f"no more than {LOADING_MESSAGES} items allowed [json-pointer:/loading_messages]")
        status = Status(str(params["status"]), self._clock.monotonic(), self._workspace.next_ts(), rotating)
        self._statuses[channel.id, thread] = status
        return {}

    def set_title(self, params: Json) -> Json:
        """Carry out assistant.threads.setTitle."""
        channel, thread = self._thread(params)
        self.titles[channel.id, thread] = required(params, "title")
        return {}

    def set_prompts(self, params: Json) -> Json:
        """Carry out assistant.threads.setSuggestedPrompts; without a thread they are the channel's."""
        channel = self._workspace.joined(params, "channel_id")
        thread = self._thread(params)[1] if params.get("thread_ts") else ""
        prompts = decoded(params.get("prompts"))
        fits = isinstance(prompts, list) and 0 < len(prompts) <= PROMPTS
        if not fits or not all(prompt.get("title") and prompt.get("message") for prompt in prompts):
            raise invalid_arguments(f"must be 1 to {PROMPTS} items with title and message [json-pointer:/prompts]")
        self.prompts[channel.id, thread] = prompts
        return {}

    def set_session(self, params: Json) -> Json:
        """Carry out agents.sessions.setStatus; the first call makes the session and alone sets its title."""
        channel, thread = self._session_thread(params)
        status = required(params, "status")
        if status not in _SESSION_STATES:
            raise Refusal("invalid_status")
        title = _title(params)
        if params.get("initiator_user_id"):
            self._workspace.person(params["initiator_user_id"])
        session = self.move(channel, thread, status, title)
        shown = {"status": session.status, "agent_status": session.status, "title": session.title}
        return shown if self.subscribed_to_stops else shown | _UNSUBSCRIBED

    def rename(self, params: Json) -> Json:
        """Carry out agents.sessions.rename."""
        channel, thread = self._session_thread(params)
        required(params, "title")
        session = self.sessions.get((channel.id, thread))
        if session is None:
            raise Refusal("session_not_found")
        session.title = _title(params)
        return {"title": session.title}

    def move(self, channel: Channel, thread: str, status: str, title: str = "") -> Session:
        """Let a session have a status, and exist."""
        session = self.sessions.setdefault((channel.id, thread), Session(title))
        session.statuses.append(status)
        return session

    def _thread(self, params: Json) -> tuple[Channel, str]:
        channel = self._workspace.joined(params, "channel_id")
        thread = required(params, "thread_ts")
        if thread not in channel.messages:
            raise Refusal("invalid_thread_ts")
        return channel, thread

    def _session_thread(self, params: Json) -> tuple[Channel, str]:
        channel = self._workspace.seen(params, "channel_id")
        if not channel.has_bot:
            raise Refusal("not_authorized")
        if not params.get("thread_ts"):
            raise Refusal("thread_ts_required")
        return channel, str(params["thread_ts"])


_WARNING = "missing_agent_session_stopped_event_subscription"
_UNSUBSCRIBED = {"warning": _WARNING, "response_metadata": {"warnings": [_WARNING]}}


def _title(params: Json) -> str:
    title = str(params.get("title") or "")
    if len(title) > TITLE_LIMIT_CHARS:
        raise invalid_arguments(f"must be less than {TITLE_LIMIT_CHARS + 1} characters [json-pointer:/title]")
    return title
