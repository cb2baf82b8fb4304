"""A group with the people and bots in it, and what they do there."""

from __future__ import annotations

from core.contracts.addresses import Address, MembershipBody, MessageBody, PressBody, Privacy, Sender
from core.contracts.people import Place
from tests.bot.conversations.hosting import ALICE, MIKE, Hosted, chat

GROUP = chat("-100")
TOPIC = chat("-100", "7")
BOB = Sender(identity="telegram:555", name="Bob")
"""Nobody to this host: in a group, a member like any other."""
PEER = Sender(identity="telegram:999", name="Peer", is_bot=True)


async def arrives(host: Hosted, body, *, who: Sender = BOB, where: Address = GROUP, key: str = "") -> None:
    """Let something happen in a group, and the host do all that follows."""
    await host.arrives(body, who=who, where=where, privacy=Privacy.PRIVATE_GROUP, key=key)
    await host.settle()


async def talks(host: Hosted, text: str, *, who: Sender = BOB, where: Address = GROUP, key: str = "") -> None:
    """Let somebody say something that is not addressed to the agent."""
    await arrives(host, MessageBody(text=text, addressed=False), who=who, where=where, key=key)


async def mentions(host: Hosted, text: str, *, who: Sender = BOB, where: Address = GROUP, key: str = "") -> None:
    """Let somebody say something to the agent."""
    await arrives(host, MessageBody(text=text), who=who, where=where, key=key)


async def presses(host: Hosted, token: str, *, who: Sender = ALICE, where: Address = GROUP) -> str:
    """Let somebody press a button there; return what they are told."""
    await arrives(host, PressBody(token=token, card="1", acknowledge="q"), who=who, where=where)
    return host.channel.acknowledgements[-1][1]


async def comes(host: Hosted, *, who: Sender = MIKE) -> None:
    """Let somebody add the agent to the group."""
    await arrives(host, MembershipBody(present=True), who=who)


async def goes(host: Hosted, *, who: Sender = MIKE) -> None:
    """Let somebody remove the agent from the group."""
    await arrives(host, MembershipBody(present=False), who=who)


async def admitted(host: Hosted) -> Hosted:
    """Let an owner admit the group, and forget what was said about it."""
    await comes(host)
    assert await presses(host, "g:allow") == "I work here now."
    host.channel.messages.clear()
    return host


async def place_of(host: Hosted) -> Place | None:
    return await host.stores.people.place("telegram/bot/-100")
