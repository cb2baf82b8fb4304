"""What an owner must be told outside of any conversation, said where they can still be reached."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping

from bot.conversations.access import LOCAL_OWNER
from bot.conversations.outbox import notice, text_items
from channels.contract import Channel
from core.contracts.addresses import Address
from core.contracts.clock import Clock
from core.contracts.delivery import DeliveryStore
from core.contracts.errors import StoreError
from core.contracts.people import PeopleStore

logger = logging.getLogger(__name__)


class OwnerAlerts:
    """Tells owners by a message in a direct chat of theirs, through the outbox like any other.

    Each owner is told once, in the chat that they used last: on a platform rather than on this
    machine, and never on the channel that is in trouble. An owner who never wrote from anywhere
    else cannot be reached; the log and readiness say it in any case.
    """

    def __init__(
        self,
        *,
        people: PeopleStore,
        delivery: DeliveryStore,
        channels: Mapping[str, Channel],
        local: Collection[str],
        owners: Callable[[], Collection[str]],
        clock: Clock,
    ) -> None:
        """Take `local`, the channels of this machine, and `owners`, which gives the identities that count."""
        self._people = people
        self._delivery = delivery
        self._channels = channels
        self._local = frozenset(local)
        self._owners = owners
        self._clock = clock

    async def tell(self, kind: str, text: str, *, not_on: str = "") -> int:
        """Post `text` to every owner and return how many it is on its way to; raises nothing.

        Args:
            kind: What it is about, for the log and the item's id.
            text: Markdown without secrets.
            not_on: The channel that cannot be trusted to deliver it.
        """
        logger.warning("owner_alert", extra={"kind": kind})
        try:
            homes = [home for owner in (*self._owners(), LOCAL_OWNER) if (home := await self._home(owner, not_on))]
            for home in homes:
                first = notice(f"alert/{kind}/{self._clock.now():%Y%m%dT%H%M%S.%f}/{home.key}", home, text)
                await self._delivery.post(text_items(first, text, self._channels[home.channel].capabilities))
        except StoreError as error:
            logger.exception("owner_not_told", extra={"kind": kind, "error": type(error).__name__})
            return 0
        return len(homes)

    async def _home(self, identity: str, not_on: str) -> Address | None:
        """Return where an owner is told; None where nothing is known of them."""
        person = await self._people.person_of(identity)
        if person is None:
            return None
        usable = [
            address
            for address in await self._delivery.direct_addresses(person.id)
            if address.channel in self._channels and address.channel != not_on
        ]
        return next((each for each in usable if each.channel not in self._local), next(iter(usable), None))
