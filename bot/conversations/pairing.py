"""Pairing: how an unknown person gets to talk, by a code that an owner confirms."""

from __future__ import annotations

from datetime import timedelta

from bot.conversations.access import AccessDesk, Standing
from core.contracts.addresses import InboundEvent
from core.contracts.clock import Clock
from core.contracts.ids import short_token
from core.contracts.people import AuditEntry, PeopleStore

CODE_LIVES = timedelta(hours=1)
_CODE_CHARS = 8


class PairingDesk:
    """Hands out codes and accepts them."""

    def __init__(self, *, people: PeopleStore, access: AccessDesk, clock: Clock) -> None:
        self._people = people
        self._access = access
        self._clock = clock

    async def greet(self, event: InboundEvent) -> str:
        """Return what a stranger reads: a code where the rules offer one, else one plain line."""
        if not self._access.wants_pairing(event.privacy):
            return "I do not know you, so I cannot help you here. My owner can add you to the allow list."
        pairing = await self._people.open_pairing(
            event.sender.identity,
            event.sender.name,
            code=short_token()[:_CODE_CHARS].upper(),
            expires_at=self._clock.now() + CODE_LIVES,
        )
        return (
            f"We have not met. Give my owner this code: {pairing.code}\n"
            f"They let you in with `/pair {pairing.code}` or `lodger pair {pairing.code}`. It is valid for one hour."
        )

    async def accept(self, code: str, who: Standing) -> str:
        """Accept a code for an owner and return what to tell them."""
        pairing = await self._people.accept_pairing(code.strip().upper(), now=self._clock.now())
        if pairing is None:
            return f"There is no open code {code.strip()!r}; it may have expired."
        await self._people.record(
            AuditEntry(at=self._clock.now(), who=who.person.id, what="paired", detail={"identity": pairing.identity})
        )
        return f"{pairing.name} ({pairing.identity}) may talk to me now."
