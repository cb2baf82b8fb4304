"""The Web API of a fake Slack: a call as it arrived, who may make it, and what carries it out."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from core.contracts.clock import Clock
from tests.platforms.slack_refusals import Refusal, rate_limited

Json = dict[str, Any]

_STRUCTURED = {"attachments", "blocks", "chunks", "files", "loading_messages", "metadata", "prompts", "view"}


@dataclass
class Call:
    """One request as it arrived; `status` is 0 until it is answered, and if it never was.

    `error` is Slack's word for why it was refused; `at` is seconds of the server's clock.
    """

    method: str
    params: Json
    token: str
    at: float
    status: int = 0
    error: str = ""

    @property
    def channel(self) -> str | None:
        """The channel that it names, under either of the names that methods have for it."""
        channel: str | None = self.params.get("channel") or self.params.get("channel_id")
        return channel


@dataclass(frozen=True)
class Method:
    """How a call is carried out: what does it, the scope it needs, and its tier in calls a minute."""

    run: Callable[[Json], Json]
    scope: str = ""
    per_minute: int = 50


_SCOPE_OF_KIND = {"channel": "channels:", "group": "groups:", "im": "im:", "mpim": "mpim:"}


@dataclass
class Access:
    """What the tokens of an app are good for. `error` refuses every call, as `token_revoked` does."""

    token: str
    app_token: str
    scopes: set[str]
    error: str = ""

    def check(self, call: Call, scope: str) -> None:
        """Refuse a call that its token does not allow.

        Raises:
            Refusal: `not_authed`, `invalid_auth`, `not_allowed_token_type`, `missing_scope`, or `error`.
        """
        wanted = self.app_token if call.method == "apps.connections.open" else self.token
        if not call.token:
            raise Refusal("not_authed")
        if call.token != wanted:
            known = call.token in {self.token, self.app_token}
            raise Refusal("not_allowed_token_type" if known else "invalid_auth")
        if self.error:
            raise Refusal(self.error)
        if scope and not set(scope.split("|")) & self.scopes:
            needed = scope.replace("|", ",")
            raise Refusal("missing_scope", needed=needed, provided=",".join(sorted(self.scopes)))


class Pace:
    """How often calls may come. `min_interval` is seconds between two posts in a channel, 0 for no limit."""

    def __init__(self, clock: Clock, min_interval: float, *, tiers: bool) -> None:
        self.min_interval = min_interval
        self.tiers = tiers
        self._clock = clock
        self._floods: dict[tuple[str, str | None], float] = {}
        self._calls: dict[str, deque[float]] = defaultdict(deque)
        self._posts: dict[str, float] = {}

    def flood(self, method: str, seconds: float, channel: str | None) -> None:
        """Refuse a method for that long, in a channel or everywhere."""
        self._floods[method, channel] = self._clock.monotonic() + seconds

    def charge(self, call: Call, method: Method) -> None:
        """Count a call.

        Raises:
            Refusal: 429 with Retry-After.
        """
        now = self._clock.monotonic()
        for key in ((call.method, None), (call.method, call.channel)):
            if (left := self._floods.get(key, 0.0) - now) > 0:
                raise rate_limited(left)
        if self.tiers:
            self._charge_tier(call.method, method.per_minute, now)
        if call.method == "chat.postMessage" and self.min_interval:
            left = self._posts.get(str(call.channel), -self.min_interval) + self.min_interval - now
            if left > 0:
                raise rate_limited(left)
            self._posts[str(call.channel)] = now

    def _charge_tier(self, method: str, per_minute: int, now: float) -> None:
        recent = self._calls[method]
        while recent and recent[0] <= now - 60:
            recent.popleft()
        if len(recent) >= per_minute:
            raise rate_limited(recent[0] + 60 - now)
        recent.append(now)


class Methods:
    """Carries calls out, under the rules of those who keep what they are about."""

    def __init__(self, table: dict[str, Method], access: Access, pace: Pace, kind_of: Callable[[str], str]) -> None:
        self._table = table
        self._access = access
        self._pace = pace
        self._kind_of = kind_of

    def carry_out(self, call: Call) -> Json:
        """Return the answer to a call.

        Raises:
            Refusal: It is not carried out.
        """
        method = self._table.get(call.method)
        if method is None:
            raise Refusal("unknown_method", req_method=call.method)
        self._access.check(call, self._scope(call, method))
        self._pace.charge(call, method)
        return {"ok": True, **method.run(call.params)}

    def _scope(self, call: Call, method: Method) -> str:
        """Return the scope that a call needs; some methods have one for each kind of channel."""
        prefix = _SCOPE_OF_KIND.get(self._kind_of(str(call.channel)), "")
        for_kind = [scope for scope in method.scope.split("|") if prefix and scope.startswith(prefix)]
        return for_kind[0] if for_kind else method.scope


async def read_call(request: web.Request, at: float) -> Call:
    """Read a request: query string, form, multipart or JSON; structures may come as JSON texts."""
    params: Json = dict(request.query)
    if request.content_type == "application/json":
        body = await request.json()
        params |= body if isinstance(body, dict) else {}
    else:
        params |= await request.post()
    bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
    token = bearer or str(params.pop("token", ""))
    shown = {name: _structured(name, value) for name, value in params.items()}
    return Call(method=request.match_info["method"], params=shown, token=token, at=at)


def _structured(name: str, value: Any) -> Any:
    if name not in _STRUCTURED or not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
