"""The gateway of a fake Discord: sessions over websockets, resumed with what they missed, or not."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from core.contracts.clock import Clock
from tests.platforms.discord_account import KNOWN_INTENTS, PRIVILEGED, Account, Intent
from tests.platforms.discord_guilds import BOT
from tests.platforms.discord_message import without_content
from tests.platforms.telegram_faults import Fault, FaultScript

IDENTIFY_LIMIT = 1000
IDENTIFY_WINDOW = timedelta(hours=24)
RESUME_WINDOW = timedelta(minutes=3)


class Op(IntEnum):
    """What a frame is."""

    DISPATCH = 0
    HEARTBEAT = 1
    IDENTIFY = 2
    PRESENCE = 3
    VOICE_STATE = 4
    RESUME = 6
    RECONNECT = 7
    REQUEST_MEMBERS = 8
    INVALID_SESSION = 9
    HELLO = 10
    HEARTBEAT_ACK = 11


class Close(IntEnum):
    """Why the platform ends a websocket."""

    UNKNOWN_ERROR = 4000
    UNKNOWN_OPCODE = 4001
    DECODE_ERROR = 4002
    NOT_AUTHENTICATED = 4003
    AUTHENTICATION_FAILED = 4004
    ALREADY_AUTHENTICATED = 4005
    INVALID_INTENTS = 4013
    DISALLOWED_INTENTS = 4014


Json = dict[str, Any]


@dataclass
class Session:
    """What a bot listens with; `sent` are the events it was told, or would have been, by number."""

    id: str
    intents: Intent
    sent: list[tuple[int, Json]] = field(default_factory=list)
    link: Link | None = None
    parted_at: datetime | None = None


class Link:
    """One websocket. When `silent` nothing more goes out on it, as if the way there were cut."""

    def __init__(self, socket: web.WebSocketResponse, request: web.Request) -> None:
        self.socket = socket
        self.session: Session | None = None
        self.silent = False
        self.is_closing = False
        self._request = request
        self._frames: asyncio.Queue[Json | int] = asyncio.Queue()

    def send(self, op: int, data: Any, *, name: str | None = None, number: int | None = None) -> None:
        if not self.silent:
            self._frames.put_nowait({"op": op, "d": data, "s": number, "t": name})

    def close(self, code: int) -> None:
        """Close it after what was sent before."""
        self._frames.put_nowait(code)

    def cut(self) -> None:
        """End it without a word."""
        if self._request.transport is not None:
            self._request.transport.abort()

    async def write(self) -> None:
        """Send what is to be sent, in its order, until it is closed or cancelled."""
        with suppress(ConnectionError):  # whoever reads learns that, too
            while isinstance(frame := await self._frames.get(), dict):
                await self.socket.send_str(json.dumps(frame))
            self.is_closing = True
            await self.socket.close(code=frame)


class Gateway:
    """All sessions. What a bot did is in `identifies`, `resumes` and `heartbeats`.

    `refuses`: no websocket can be opened. `on_change` is called at every change.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        account: Account,
        script: FaultScript,
        guilds: Callable[[], list[Json]],
        members: Callable[[Json], Json],
        on_change: Callable[[], None],
    ) -> None:
        self.url = ""
        self.refuses = False
        self.heartbeat_interval = timedelta(seconds=41.25)
        self.identifies: list[Json] = []
        self.resumes: list[Json] = []
        self.heartbeats = 0
        self.sessions: dict[str, Session] = {}
        self._clock = clock
        self._account = account
        self._script = script
        self._guilds = guilds
        self._members = members
        self._on_change = on_change
        self._links: set[Link] = set()
        self._identified_at: list[datetime] = []
        self._held: list[tuple[str, Json, Intent]] = []

    # What can be seen

    @property
    def is_live(self) -> bool:
        """Whether the bot listens right now."""
        return any(session.link is not None and not session.link.silent for session in self.sessions.values())

    @property
    def identifies_left(self) -> int:
        return IDENTIFY_LIMIT - len(self._recent_identifies())

    def spend_identifies(self, left: int) -> None:
        """Let only so many be left for the next 24 hours."""
        self._identified_at = [self._clock.now()] * (IDENTIFY_LIMIT - left)

    def start_limit(self) -> Json:
        """Return how often a session can still be started."""
        left = max(0, self.identifies_left)
        now = self._clock.now()
        first = min(self._recent_identifies(), default=now)
        reset_ms = (first + IDENTIFY_WINDOW - now) // timedelta(milliseconds=1)
        return {"total": IDENTIFY_LIMIT, "remaining": left, "reset_after": reset_ms, "max_concurrency": 1}

    # What goes wrong

    def cut(self) -> None:
        """End all websockets without a word; sessions can be resumed."""
        for link in self._links:
            link.cut()

    def close(self, code: int = Close.UNKNOWN_ERROR) -> None:
        """Close all websockets with a code."""
        for link in self._links:
            link.close(code)

    def fall_silent(self) -> None:
        """Send nothing more on the websockets there are, not even for heartbeats, and keep them open."""
        for link in self._links:
            link.silent = True

    def ask_reconnect(self) -> None:
        """Tell all to connect anew and to resume."""
        for link in self._links:
            link.send(Op.RECONNECT, None)

    def invalidate(self, *, resumable: bool = False) -> None:
        """Tell all that their sessions are void; those that are not `resumable` are forgotten."""
        for link in self._links:
            link.send(Op.INVALID_SESSION, resumable)
            if not resumable and link.session is not None:
                self._forget(link.session)

    def forget_sessions(self) -> None:
        """Let no session be resumed any more."""
        for session in list(self.sessions.values()):
            self._forget(session)

    def go_down(self) -> None:
        """Refuse websockets, end those there are, and forget all sessions, until `come_up`."""
        self.refuses = True
        self.forget_sessions()
        self.cut()

    def come_up(self) -> None:
        self.refuses = False

    # Events

    def publish(self, name: str, shown: Json, needs: Intent) -> None:
        """Tell every session of an event, if it has the intent that the event needs."""
        planned = self._script.take(name)
        if planned is not None and planned.fault is Fault.REORDERED:
            self._held.append((name, shown, needs))
            return
        for _ in range(2 if planned is not None and planned.fault is Fault.DUPLICATED else 1):
            self._tell_all(name, shown, needs)
        held, self._held = self._held, []
        for late in held:
            self._tell_all(*late)
        self._on_change()

    def _tell_all(self, name: str, shown: Json, needs: Intent) -> None:
        for session in self.sessions.values():
            if needs in session.intents:
                self._tell(session, name, shown)

    def _tell(self, session: Session, name: str, shown: Json) -> None:
        is_hidden = Intent.MESSAGE_CONTENT not in session.intents and "guild_id" in shown
        if is_hidden and name in {"MESSAGE_CREATE", "MESSAGE_UPDATE"}:
            shown = without_content(shown)
        number = len(session.sent) + 1
        frozen = json.loads(json.dumps(shown))  # what is resumed later is what was true then
        session.sent.append((number, {"t": name, "d": frozen}))
        if session.link is not None:
            session.link.send(Op.DISPATCH, frozen, name=name, number=number)

    def _recent_identifies(self) -> list[datetime]:
        since = self._clock.now() - IDENTIFY_WINDOW
        return [at for at in self._identified_at if at > since]

    # Websockets

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Serve one websocket until it ends."""
        if self.refuses:
            return web.Response(status=503)
        socket = web.WebSocketResponse(timeout=1.0)
        await socket.prepare(request)
        link = Link(socket, request)
        self._links.add(link)
        writer = asyncio.create_task(link.write())
        try:
            link.send(Op.HELLO, {"heartbeat_interval": int(self.heartbeat_interval / timedelta(milliseconds=1))})
            async for frame in socket:
                self._receive(link, frame.data if frame.type is WSMsgType.TEXT else "")
        finally:
            self._links.discard(link)
            self._part(link)
            if not link.is_closing:  # reading ends before the last word is said
                writer.cancel()
            await asyncio.wait({writer})
        return socket

    def _receive(self, link: Link, text: str) -> None:
        try:
            frame = json.loads(text)
            op, data = int(frame["op"]), frame.get("d")
        except (ValueError, KeyError, TypeError):
            link.close(Close.DECODE_ERROR)
            return
        match op:
            case Op.HEARTBEAT:
                self.heartbeats += 1
                link.send(Op.HEARTBEAT_ACK, None)
            case Op.IDENTIFY:
                self._identify(link, data)
            case Op.RESUME:
                self._resume(link, data)
            case Op.PRESENCE | Op.VOICE_STATE | Op.REQUEST_MEMBERS if link.session is None:
                link.close(Close.NOT_AUTHENTICATED)
            case Op.PRESENCE | Op.VOICE_STATE:
                pass
            case Op.REQUEST_MEMBERS:
                assert link.session is not None
                self._tell(link.session, "GUILD_MEMBERS_CHUNK", self._members(data))
            case _:
                link.close(Close.UNKNOWN_OPCODE)
        self._on_change()

    def _identify(self, link: Link, data: Json) -> None:
        self.identifies.append(data)
        self._identified_at.append(self._clock.now())
        if self.identifies_left < 0:
            self._account.revoked = True  # the platform then makes a new token
        code = self._identify_problem(link, data)
        if code is not None:
            link.close(code)
            return
        session = Session(secrets.token_hex(16), Intent(int(data["intents"]) & int(sum(Intent))))
        self._join(link, session)
        self.sessions[session.id] = session
        guilds = self._guilds()
        unavailable = [{"id": guild["id"], "unavailable": True} for guild in guilds]
        ready = {
            "v": 10,
            "user": self._account.me(),
            "guilds": unavailable,
            "session_id": session.id,
            "session_type": "normal",
            "resume_gateway_url": f"{self.url}-resume",
            "application": {"id": str(BOT), "flags": self._account.flags},
            "private_channels": [],
            "presences": [],
            "relationships": [],
            "user_settings": {},
        }
        self._tell(session, "READY", ready)
        if Intent.GUILDS in session.intents:
            for guild in guilds:
                self._tell(session, "GUILD_CREATE", guild)

    def _identify_problem(self, link: Link, data: Json) -> int | None:
        """Return with which code the bot is sent away; None: it may stay."""
        intents = int(data.get("intents", 0))
        if link.session is not None:
            return Close.ALREADY_AUTHENTICATED
        if not self._account.accepts(str(data.get("token")).removeprefix("Bot ")):
            return Close.AUTHENTICATION_FAILED
        if intents & ~KNOWN_INTENTS:
            return Close.INVALID_INTENTS
        if intents & PRIVILEGED & ~self._account.privileged:
            return Close.DISALLOWED_INTENTS
        return None

    def _resume(self, link: Link, data: Json) -> None:
        self.resumes.append(data)
        if not self._account.accepts(str(data.get("token")).removeprefix("Bot ")):
            link.close(Close.AUTHENTICATION_FAILED)
            return
        session = self.sessions.get(str(data.get("session_id")))
        if session is not None and self._is_over(session):
            self._forget(session)
            session = None
        if session is None:
            link.send(Op.INVALID_SESSION, False)
            return
        if session.link is not None:
            session.link.session = None
        self._join(link, session)
        for number, event in session.sent:
            if number > int(data.get("seq") or 0):
                link.send(Op.DISPATCH, event["d"], name=event["t"], number=number)
        self._tell(session, "RESUMED", {})

    def _join(self, link: Link, session: Session) -> None:
        link.session, session.link, session.parted_at = session, link, None

    def _part(self, link: Link) -> None:
        """Keep the session of a websocket that ended, unless the bot said that it will not come back."""
        session = link.session
        if session is None:
            return
        session.link, session.parted_at = None, self._clock.now()
        if not link.is_closing and link.socket.close_code in {WSCloseCode.OK, WSCloseCode.GOING_AWAY}:
            self._forget(session)
        self._on_change()

    def _is_over(self, session: Session) -> bool:
        return session.parted_at is not None and self._clock.now() - session.parted_at > RESUME_WINDOW

    def _forget(self, session: Session) -> None:
        self.sessions.pop(session.id, None)
        if session.link is not None:
            session.link.session = None
