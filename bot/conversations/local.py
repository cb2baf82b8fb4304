"""Conversations that the person at this machine holds without a chat: named, or begun."""

from __future__ import annotations

from bot.conversations.access import LOCAL_OWNER, AccessDesk
from channels.feed import ACCOUNT
from core.contracts.addresses import Address, Sender
from core.contracts.agents import EVERYONE, Audience, Conversation
from core.contracts.backend import Backend
from core.contracts.errors import InvalidInput, NotFound
from core.contracts.ids import ConversationId
from core.contracts.store import TranscriptStore

OWNER = Sender(identity=LOCAL_OWNER, name="owner")


def local_address(channel: str, conversation_id: ConversationId) -> Address:
    """Return the address that a conversation has on a channel of this machine: it is named like it."""
    return Address(channel=channel, account=ACCOUNT, chat=conversation_id)


class LocalConversations:
    """Finds conversations, or begins them for the owner alone."""

    def __init__(self, *, backend: Backend, transcripts: TranscriptStore, access: AccessDesk) -> None:
        self._backend = backend
        self._transcripts = transcripts
        self._access = access

    async def open(self, *, agent: str, conversation: str) -> Conversation:
        """Return the conversation, or with an empty name a new one of the agent; an empty agent is any.

        Raises:
            NotFound: No such agent or conversation.
            InvalidInput: The conversation is another agent's.
        """
        return await (self._known(conversation, agent) if conversation else self._fresh(agent))

    async def _known(self, conversation: str, agent: str) -> Conversation:
        found = await self._backend.get_conversation(ConversationId(conversation))
        owner = await self._backend.get_agent(found.agent_id)
        if agent not in {"", owner.name}:
            raise InvalidInput(f"conversation {conversation!r} is one of agent {owner.name!r}")
        return found

    async def _fresh(self, agent: str) -> Conversation:
        found = [known for known in await self._transcripts.agents() if agent in {"", known.name}]
        if not found:
            raise NotFound("agent", agent)
        owner = await self._access.standing(OWNER)
        words = frozenset({EVERYONE, f"person:{owner.person.id}"})
        return await self._backend.create_conversation(found[0].id, Audience(words=words))
