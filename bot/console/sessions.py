"""Who is signed in: one-time links and browser sessions, in memory; a restart means a new link."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from core.contracts.clock import Clock

_MOST_LINKS = 20
_MOST_SESSIONS = 100
"""Above these the oldest goes, so that nothing grows without end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One signed-in browser. `id` is the hash of its cookie; `csrf` stands in every form it gets."""

    id: bytes
    csrf: str
    expires_at: datetime


class ConsoleSessions:
    """One-time links and the sessions they became.

    Tokens are 256 random bits and are kept only as SHA-256 hashes, compared in constant time.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        link_lifetime: timedelta = timedelta(days=1),
        session_lifetime: timedelta = timedelta(days=30),
    ) -> None:
        self._clock = clock
        self._link_lifetime = link_lifetime
        self._session_lifetime = session_lifetime
        self._links: dict[bytes, datetime] = {}
        self._sessions: dict[bytes, Session] = {}
        self._notes: dict[bytes, str] = {}

    @property
    def session_lifetime(self) -> timedelta:
        """How long a browser stays signed in."""
        return self._session_lifetime

    def login_link(self, bound_address: str) -> str:
        """Return a link, to be used once, that signs a browser in at the console of that address."""
        return f"http://{bound_address}/login?token={self.new_link_token()}"

    def new_link_token(self) -> str:
        """Return a token that `redeem` takes once."""
        token = secrets.token_urlsafe()
        self._links[_hash(token)] = self._clock.now() + self._link_lifetime
        while len(self._links) > _MOST_LINKS:
            del self._links[next(iter(self._links))]
        return token

    def redeem(self, token: str) -> str | None:
        """Use up a link's token and return a new session's cookie, or None."""
        digest = _find(self._links, token)
        if digest is None or self._links.pop(digest) <= self._clock.now():
            return None
        cookie = secrets.token_urlsafe()
        session = Session(
            id=_hash(cookie),
            csrf=secrets.token_urlsafe(),
            expires_at=self._clock.now() + self._session_lifetime,
        )
        self._sessions[session.id] = session
        while len(self._sessions) > _MOST_SESSIONS:
            self._forget(next(iter(self._sessions)))
        return cookie

    def find(self, cookie: str) -> Session | None:
        """Return the session of a cookie, unless it ended."""
        digest = _find(self._sessions, cookie)
        if digest is None:
            return None
        session = self._sessions[digest]
        if session.expires_at <= self._clock.now():
            self._forget(digest)
            return None
        return session

    def is_open(self, session: Session) -> bool:
        """Return whether the session still holds."""
        return session.id in self._sessions and session.expires_at > self._clock.now()

    def end(self, session: Session) -> None:
        """Sign the browser out."""
        self._forget(session.id)

    def leave_note(self, session: Session, text: str) -> None:
        """Keep one line for the next page of this session."""
        if session.id in self._sessions:
            self._notes[session.id] = text

    def take_note(self, session: Session) -> str:
        """Return the line that was left, once; otherwise an empty text."""
        return self._notes.pop(session.id, "")

    def _forget(self, digest: bytes) -> None:
        self._sessions.pop(digest, None)
        self._notes.pop(digest, None)


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


def _find(digests: Iterable[bytes], token: str) -> bytes | None:
    """Return the digest of `token` among `digests`, taking the same time wherever it stands."""
    wanted = _hash(token)
    found = None
    for digest in digests:
        if hmac.compare_digest(digest, wanted):
            found = digest
    return found
