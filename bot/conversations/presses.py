"""What a pressed button does: decide an approval, show or undo a memory commit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from zoneinfo import ZoneInfo

from bot.conversations.access import Standing
from bot.conversations.cards import (
    ALWAYS,
    APPROVE,
    CONVERSATION,
    DENY_AND_READ,
    DENY_WITH_REASON,
    EDIT,
    ApprovalPress,
    CommitPress,
    GroupPress,
    approval_card,
    parse_token,
    reminder_id,
    state_words,
    waiting_id,
)
from bot.conversations.forms import REASON, deny_form, edit_form, read_edit
from bot.conversations.groups import GroupDesk
from bot.conversations.home import is_own_home
from bot.conversations.outbox import notice, text_items
from bot.conversations.steering import READ_AFTERWARDS
from channels.contract import Channel, Form
from core.contracts.addresses import Address, CardContent, InboundEvent, OutboundItem, PressBody
from core.contracts.agents import Audience
from core.contracts.backend import Backend
from core.contracts.clock import Clock
from core.contracts.delivery import DeliveryStore
from core.contracts.errors import ChannelError, MemoryConflict, MemoryRefused, NotFound
from core.contracts.ids import ApprovalId, Revision, TurnId
from core.contracts.ledger import TurnLedger
from core.contracts.memory import CommitOrigin, MemoryCommit, MemoryStore
from core.contracts.people import AuditEntry, PeopleStore
from core.contracts.permissions import (
    Approval,
    ApprovalState,
    Decision,
    DecisionScope,
    PersonRole,
)
from core.permissions.approvals import binding_hash, grant_for, may_decide, may_grant
from core.prompts.escaping import escape_user_text

logger = logging.getLogger(__name__)

_SCOPES = {CONVERSATION: DecisionScope.CONVERSATION, ALWAYS: DecisionScope.ALWAYS}
_APPROVING = frozenset({APPROVE, CONVERSATION, ALWAYS, EDIT})
_OPENING_FORMS = frozenset({DENY_WITH_REASON, EDIT})
UNKNOWN_BUTTON = "This button is not known here any more."
_HISTORY_SEARCHED = 500
_ENDED_ALONE = frozenset({ApprovalState.EXPIRED, ApprovalState.VOID})


async def _no_home(event: InboundEvent, who: Standing) -> None:
    """Draw nothing: no channel here has home screens."""
    del event, who


def _nobody_looks() -> None:
    """Tell nobody that an approval changed."""


class DecisionDesk:
    """Decides approvals: one function for button, command, page and command line.

    `changed` hears of every approval that was decided or has ended, once its cards are drawn.
    """

    def __init__(
        self,
        *,
        ledger: TurnLedger,
        delivery: DeliveryStore,
        people: PeopleStore,
        approvers: Callable[[], Collection[str]],
        clock: Clock,
        zone: ZoneInfo,
        clean: Callable[[str], str] = str,
        changed: Callable[[], None] = _nobody_looks,
    ) -> None:
        self._clean = clean
        self._changed = changed
        self._drawing = asyncio.Lock()
        self._ledger = ledger
        self._delivery = delivery
        self._people = people
        self._approvers = approvers
        self._clock = clock
        self._zone = zone

    async def decide(self, approval_id: ApprovalId, choice: str, who: Standing, *, feedback: str = "") -> str:
        """Decide for an authorised person and return what to tell them.

        The first decision wins; whoever comes later is told so and changes nothing.

        Raises:
            NotFound: No such approval.
        """
        approval = await self._ledger.approval(approval_id)
        refusal = await self._refused(approval, choice, who)
        return refusal or await self._decide(approval, choice, who, feedback=feedback)

    async def decide_by_form(
        self, approval_id: ApprovalId, choice: str, who: Standing, values: Mapping[str, str]
    ) -> str:
        """Decide as somebody wrote it into a form, and return what to tell them.

        Text that is no arguments decides nothing. Arguments that are what was shown are a plain approval.

        Raises:
            NotFound: No such approval.
        """
        approval = await self._ledger.approval(approval_id)
        refusal = await self._refused(approval, choice, who)
        if refusal:
            return refusal
        cleaned = {name: self._clean(text) for name, text in values.items()}
        if choice == DENY_WITH_REASON:
            return await self._decide(approval, choice, who, feedback=cleaned.get(REASON, "").strip())
        written = read_edit(approval, cleaned)
        if written.fault:
            return written.fault
        is_as_shown = binding_hash(approval.tool, written.arguments) == approval.hash
        return await self._decide(approval, choice, who, edited=None if is_as_shown else written.arguments)

    async def form(self, approval_id: ApprovalId, choice: str, who: Standing) -> Form | str:
        """Return the form that a press asks for, or why there is none for whoever pressed.

        Raises:
            NotFound: No such approval.
        """
        approval = await self._ledger.approval(approval_id)
        refusal = await self._refused(approval, choice, who)
        if refusal:
            return refusal
        if approval.state is not ApprovalState.OPEN:
            return f"Too late: {state_words(approval)}"
        return deny_form(approval) if choice == DENY_WITH_REASON else edit_form(approval, self._clean)

    async def _decide(
        self, approval: Approval, choice: str, who: Standing, *, feedback: str = "", edited: str | None = None
    ) -> str:
        approve = choice in _APPROVING
        decision = Decision(
            approve=approve,
            by=who.person.id,
            by_name=self._as_data(who.person.name),
            scope=_SCOPES.get(choice, DecisionScope.ONCE),
            feedback=READ_AFTERWARDS if choice == DENY_AND_READ else self._as_data(feedback),
            edited=edited,
        )
        state = ApprovalState.APPROVED if approve else ApprovalState.DENIED
        decided = await self._ledger.decide(
            approval.id, decision, state, hash_shown=approval.hash, grant=grant_for(approval, decision)
        )
        await self.redraw(decided.approval)
        if not decided.won:
            await self._audit(who, "approval_too_late", approval, choice)
            return f"Too late: {state_words(decided.approval)}"
        await self._audit(who, f"approval_{state}", approval, choice, edited=edited)
        if edited is not None:
            return "Approved with your changes."
        return "Approved." if approve else "Denied."

    async def refuse_elsewhere(self, approval_id: ApprovalId, choice: str, who: Standing) -> str:
        """Refuse a press that came from a chat where nobody was asked; whoever forged it is on record.

        Raises:
            NotFound: No such approval.
        """
        await self._audit(who, "approval_refused", await self._ledger.approval(approval_id), choice)
        return "This button does not belong to this chat."

    async def redraw(self, approval: Approval) -> None:
        """Bring the cards of an approval up to date."""
        # One at a time: of two people who decide at once, the older picture must not come last.
        async with self._drawing:
            siblings = await self._ledger.approvals_of(approval.turn_id)
            shown = [a for a in siblings if a.card_id == approval.card_id]
            if approval.card_id is not None:
                await self._delivery.amend(approval.card_id, approval_card(shown, self._zone))
            for sibling in shown:
                await self._close_notice(waiting_id(sibling), sibling)
                await self._close_notice(reminder_id(sibling), sibling)
        self._changed()

    def _as_data(self, text: str) -> str:
        """Return what a person wrote as the model may read it: masked, and never the host's voice."""
        return escape_user_text(self._clean(text))

    async def redraw_ended(self, turn_id: TurnId) -> None:
        """Take the buttons off cards whose questions ended without a person: expired or void."""
        drawn: set[str | None] = set()
        for approval in await self._ledger.approvals_of(turn_id):
            if approval.state in _ENDED_ALONE and approval.card_id not in drawn:
                drawn.add(approval.card_id)
                await self.redraw(approval)

    async def card_failed(self, item: OutboundItem, error: str) -> None:
        """Deny what a card asks about when it can never be shown: nothing waits for ever."""
        for approval in await self._ledger.open_approvals_of():
            if approval.card_id == item.id:
                feedback = f"the approval card could not be shown: {error}"
                decision = Decision(approve=False, by=None, by_name="the host", feedback=feedback)
                await self._ledger.decide(
                    approval.id, decision, ApprovalState.DENIED, hash_shown=approval.hash, grant=None
                )
                self._changed()

    async def _close_notice(self, item_id: str, approval: Approval) -> None:
        try:
            row = await self._delivery.outbox_row(item_id)
        except NotFound:
            return
        if (
            isinstance(row.item.content, CardContent)
            and row.item.content.rows
            and approval.state is not ApprovalState.OPEN
        ):
            await self._delivery.amend(
                row.item.id, CardContent(text=f"{row.item.content.text} {state_words(approval)}")
            )

    async def _refused(self, approval: Approval, choice: str, who: Standing) -> str:
        """Return why somebody may not decide so, which is then on record; empty where they may."""
        refusal = self._refusal(approval, choice, who)
        if refusal:
            await self._audit(who, "approval_refused", approval, choice)
        return refusal

    def _refusal(self, approval: Approval, choice: str, who: Standing) -> str:
        if not may_decide(who.person, who.role, approval, self._approvers()):
            return "You may not decide this."
        if not may_grant(who.role, _SCOPES.get(choice, DecisionScope.ONCE)):
            return "You may approve this once, but not for longer."
        if choice in {ALWAYS, CONVERSATION} and not approval.remember:
            return "No rule can cover this call; it can only be approved once."
        return ""

    async def _audit(
        self, who: Standing, what: str, approval: Approval, choice: str, *, edited: str | None = None
    ) -> None:
        detail = {"approval": approval.id, "tool": approval.tool, "hash": approval.hash, "choice": choice}
        if edited is not None:
            detail["edited_hash"] = binding_hash(approval.tool, edited)
        await self._people.record(AuditEntry(at=self._clock.now(), who=who.person.id, what=what, detail=detail))


class PressDesk:
    """Handles the buttons of this host's cards. Anybody can press; who may is checked here.

    `draw_home` draws the home screen that a decision was pressed on; it never raises.
    """

    def __init__(
        self,
        *,
        decisions: DecisionDesk,
        ledger: TurnLedger,
        backend: Backend,
        delivery: DeliveryStore,
        memory: MemoryStore,
        groups: GroupDesk,
        channels: Mapping[str, Channel],
        draw_home: Callable[[InboundEvent, Standing], Awaitable[None]] = _no_home,
    ) -> None:
        self._decisions = decisions
        self._draw_home = draw_home
        self._groups = groups
        self._ledger = ledger
        self._backend = backend
        self._delivery = delivery
        self._memory = memory
        self._channels = channels

    async def press(self, event: InboundEvent, body: PressBody, who: Standing, *, reply_id: str) -> str:
        """Do what the button says, or the form it opened, and return a short notice for the presser."""
        try:
            match parse_token(body.token):
                case ApprovalPress() as approval_press:
                    return await self._approval(event, body, approval_press, who)
                case CommitPress() as commit_press:
                    return await self._commit(event.address, commit_press, who, reply_id)
                case GroupPress(allow=allow):
                    return await self._groups.decide(event, who, allow=allow)
                case None:
                    return UNKNOWN_BUTTON
        except NotFound:
            # A forged token, or one of a database that is gone: nothing to decide, nothing to retry.
            return UNKNOWN_BUTTON

    async def _approval(self, event: InboundEvent, body: PressBody, press: ApprovalPress, who: Standing) -> str:
        is_at_home = is_own_home(event)
        if not is_at_home and not await self._was_asked_in(event.address, press.approval_id):
            return await self._decisions.refuse_elsewhere(press.approval_id, press.choice, who)
        if press.choice not in _OPENING_FORMS:
            told = await self._decisions.decide(press.approval_id, press.choice, who)
        elif body.values:
            told = await self._decisions.decide_by_form(press.approval_id, press.choice, who, dict(body.values))
        else:
            return await self._open_form(event, body, press, who)
        if is_at_home:
            await self._draw_home(event, who)
        return told

    async def _open_form(self, event: InboundEvent, body: PressBody, press: ApprovalPress, who: Standing) -> str:
        form = await self._decisions.form(press.approval_id, press.choice, who)
        if isinstance(form, str):
            return form
        try:
            await self._channels[event.address.channel].open_form(body, form)
        except ChannelError as error:
            logger.warning("form_not_opened", extra={"channel": event.address.channel, "error": error.detail})
            by_command = f"To deny with a reason, write: /approvals {press.approval_id} deny REASON"
            return f"The form could not be opened; press again. {by_command}"
        return ""

    async def _was_asked_in(self, address: Address, approval_id: ApprovalId) -> bool:
        """Whether this host asked about the approval in this very chat.

        The chat is compared, not the message: a card whose send was cut off by a crash is posted
        again, and then both of them are real. A home screen is no such chat.
        """
        approval = await self._ledger.approval(approval_id)
        places = [approval.card_id, waiting_id(approval), reminder_id(approval)]
        for item_id in filter(None, places):
            try:
                row = await self._delivery.outbox_row(item_id)
            except NotFound:
                continue
            if row.item.address == address:
                return True
        return False

    async def _commit(self, address: Address, press: CommitPress, who: Standing, reply_id: str) -> str:
        binding = await self._delivery.binding(address.key)
        if binding is None or not who.may_talk:
            return "This button is not for you."
        agent = await self._backend.get_agent(binding.agent_id)
        conversation = await self._backend.get_conversation(binding.conversation_id)
        commit = await find_commit(self._memory, agent.memory_id, press.revision)
        if commit is None:
            return "That commit is not known here."
        if press.act == "diff":
            diff = await self._memory.diff(agent.memory_id, commit.revision, conversation.audience)
            await self._post(address, f"```diff\n{diff}\n```", reply_id)
            return ""
        return await self._undo(address, agent.memory_id, commit, conversation.audience, who)

    async def _undo(
        self, address: Address, memory_id: str, commit: MemoryCommit, audience: Audience, who: Standing
    ) -> str:
        origin = CommitOrigin(
            author=who.person.name,
            audience=audience,
            person=who.person.id,
            approved=who.role in {PersonRole.OWNER, PersonRole.OPERATOR},
        )
        told = await undo_commit(self._memory, memory_id, commit.revision, origin)
        for row in await self._delivery.outbox_of(address.key, limit=200):
            if isinstance(row.item.content, CardContent) and _undoes(row.item.content, commit.revision):
                settled = CardContent(text=f"{row.item.content.text} — {told}", silent=True)
                await self._delivery.amend(row.item.id, settled)
        return told

    async def _post(self, address: Address, markdown: str, reply_id: str) -> None:
        first: OutboundItem = notice(reply_id, address, markdown, silent=True)
        capabilities = self._channels[address.channel].capabilities
        await self._delivery.post(text_items(first, markdown, capabilities))


async def find_commit(memory: MemoryStore, memory_id: str, revision: str) -> MemoryCommit | None:
    """Return the commit that a possibly short revision names, if exactly one does."""
    found = [c for c in await memory.log(memory_id, limit=_HISTORY_SEARCHED) if c.revision.startswith(revision)]
    return found[0] if len(found) == 1 and revision else None


async def undo_commit(memory: MemoryStore, memory_id: str, revision: Revision, origin: CommitOrigin) -> str:
    """Undo a commit and return what to tell the person who asked."""
    try:
        undone = await memory.undo(memory_id, revision, origin=origin)
    except MemoryConflict as error:
        return f"Not undone: later commits changed the same lines of {', '.join(error.paths)}."
    except MemoryRefused as error:
        return f"Not undone: {error}"
    return f"Undone by {origin.author} in {undone.revision[:10]}."


def _undoes(card: CardContent, revision: str) -> bool:
    tokens = [button.token for row in card.rows for button in row if button.token.startswith("u:")]
    return any(revision.startswith(token.removeprefix("u:")) for token in tokens)
