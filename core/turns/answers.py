"""Answers to the calls that a run left pending."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from core.contracts.errors import ToolError
from core.contracts.ids import ApprovalId, CallId, new_id
from core.contracts.ledger import CallRecord, CallState
from core.contracts.messages import ReturnOutcome, TextPart, ToolCall, ToolReturn, text_return
from core.contracts.permissions import Action, Approval, ApprovalState, Grant, Subject, Verdict
from core.contracts.tools import Access, ToolContext
from core.permissions.approvals import NOBODY_CAN_APPROVE, as_decided, binding_hash, edit_text, refusal_text
from core.prompts.escaping import escape_user_text
from core.tools.access import conflicts
from core.tools.wrappers import declared_access
from core.turns.observer import ApprovalsOpened, CallFinished, CallStarted
from core.turns.services import TurnServices, TurnWork

INTERRUPTED = "The host stopped while this ran; whether it took effect is unknown. It was not repeated."
CANCELLED = "Cancelled before it ended."
_REFUSED = frozenset({ApprovalState.DENIED, ApprovalState.EXPIRED, ApprovalState.VOID})


class CallDesk:
    """Settles the pending calls of one turn; one at a time."""

    def __init__(self, services: TurnServices, work: TurnWork, subject: Subject) -> None:
        self._services = services
        self._work = work
        self._subject = subject
        self._ledger = services.ledger

    async def settle(self) -> tuple[ToolReturn, ...] | None:
        """Settle every pending call exactly once, or return None while people have to decide.

        Doubtful calls are put to people together. A call starts when it is decided and every
        earlier conflicting call of the step has ended; its result is stored before this goes on,
        so that a crash loses nothing that is known.

        Returns:
            One return per call, in the model's order; None when a decision is still open and
            nothing more can run. A tool that fails, or breaks, is a return with outcome "error".

        Raises:
            asyncio.CancelledError: Started calls were cancelled, have ended, and their results
                are stored.
        """
        await self._close_interrupted(await self._records())
        await self._judge(await self._records())
        await self._ledger.expire_approvals(self._work.conversation.id, self._services.clock.now())
        while True:
            refused = await self._write_refusals(await self._records())
            ran = await self._carry_out(await self._records())
            records = await self._records()
            results = tuple(record.result for record in records if record.result is not None)
            if len(results) == len(records):
                return results
            if not refused and not ran:
                return None

    async def _records(self) -> tuple[CallRecord, ...]:
        return await self._ledger.unanswered_calls(self._work.conversation.id)

    async def cancel_rest(self) -> tuple[ToolReturn, ...]:
        """Answer every call without a result as cancelled and return all results in order."""
        results = []
        for record in await self._records():
            result = record.result or text_return(record.call.id, CANCELLED, ReturnOutcome.CANCELLED)
            if record.result is None:
                await self._ledger.finish_call(self._work.claim, result, CallState.DENIED)
            results.append(result)
        return tuple(results)

    async def _close_interrupted(self, records: Sequence[CallRecord]) -> None:
        """Settle calls that a dead worker had started: never repeated by themselves."""
        for record in records:
            if record.state is CallState.STARTED:
                result = text_return(record.call.id, INTERRUPTED, ReturnOutcome.UNKNOWN)
                await self._ledger.finish_call(self._work.claim, _told(record, result), CallState.UNKNOWN)

    async def _judge(self, records: Sequence[CallRecord]) -> None:
        """Give every call without a verdict one, and put the doubtful ones to people together."""
        fresh = [record for record in records if record.verdict is None and record.state is CallState.WAITING]
        if fresh:
            grants = await self._ledger.grants(self._work.agent.id, self._work.conversation.id)
            verdicts: list[tuple[CallId, Verdict, ToolReturn | None]] = []
            for record in fresh:
                verdict = await self._verdict(record.call, grants)
                verdicts.append((record.call.id, verdict, self._immediate_refusal(record.call, verdict)))
            await self._ledger.record_verdicts(self._work.claim, self._work.turn.id, verdicts)
            records = await self._records()
        await self._ask_people([r for r in records if r.state is CallState.WAITING and r.approval is None])

    async def _verdict(self, call: ToolCall, grants: tuple[Grant, ...]) -> Verdict:
        if self._cannot_run(call):
            return Verdict(action=Action.ALLOW, rule="not runnable", reason="answered with an error")
        verdict = self._services.policy.verdict(call, self._access(call), self._subject, grants)
        if verdict.action is Action.ALLOW:
            question = await self._services.doubt(call, self._context(call))
            if question is not None:
                return Verdict(action=Action.ASK, rule="memory admission", reason=question)
        return verdict

    def _access(self, call: ToolCall) -> Access | None:
        """Return what a call would touch; one that cannot run touches nothing."""
        try:
            return declared_access(self._work.toolset, call, self._context(call))
        except ToolError:
            return Access(free=True)

    def _cannot_run(self, call: ToolCall) -> bool:
        """Whether the call will only be answered with an error, so that nobody need be asked."""
        try:
            declared_access(self._work.toolset, call, self._context(call))
        except ToolError:
            return True
        return False

    def _immediate_refusal(self, call: ToolCall, verdict: Verdict) -> ToolReturn | None:
        match verdict.action:
            case Action.ALLOW:
                return None
            case Action.DENY:
                text = f"Denied by {verdict.rule}: {verdict.reason}"
                return text_return(call.id, text, ReturnOutcome.DENIED)
            case Action.ASK | Action.ALWAYS_ASK:
                if self._work.turn.interactive:
                    return None
                return text_return(call.id, f"{NOBODY_CAN_APPROVE} ({verdict.reason})", ReturnOutcome.DENIED)
            case _:
                assert_never(verdict.action)

    async def _ask_people(self, records: Sequence[CallRecord]) -> None:
        if not records:
            return
        approvals = tuple(self._approval(record) for record in records)
        card = await self._services.host.approval_card(self._work.turn, approvals, said=self._work.text)
        self._work.texts.clear()
        await self._ledger.open_approvals(self._work.claim, approvals, card)
        await self._work.observer.observe(self._work.turn, ApprovalsOpened(approvals=approvals))

    def _approval(self, record: CallRecord) -> Approval:
        now = self._services.clock.now()
        turn, call = self._work.turn, record.call
        verdict = record.verdict
        assert verdict is not None, "only judged calls are put to people"  # noqa: S101 - an invariant of _judge
        return Approval(
            id=ApprovalId(new_id("apr")),
            turn_id=turn.id,
            conversation_id=turn.conversation_id,
            agent_id=turn.agent_id,
            call_id=call.id,
            tool=call.name,
            shown=call.arguments,
            hash=binding_hash(call.name, call.arguments),
            rule=verdict.rule,
            reason=verdict.reason,
            remember=verdict.remember,
            state=ApprovalState.OPEN,
            requester=turn.requester,
            origin=turn.origin,
            created_at=now,
            expires_at=now + self._services.approval_deadline(),
        )

    async def _write_refusals(self, records: Sequence[CallRecord]) -> int:
        """Turn denials, expiries and voided questions into results; return how many."""
        written = 0
        for record in records:
            approval = record.approval
            if record.result is None and approval is not None and approval.state in _REFUSED:
                text = refusal_text(approval.state, approval.decision)
                result = text_return(record.call.id, text, ReturnOutcome.DENIED)
                await self._ledger.finish_call(self._work.claim, result, CallState.DENIED)
                written += 1
        return written

    async def _carry_out(self, records: Sequence[CallRecord]) -> int:
        """Run every approved call that no undecided earlier call stands in the way of; return how many."""
        accesses = {record.call.id: self._access(as_decided(record.call, record.approval)) for record in records}
        ended = {record.call.id: asyncio.Event() for record in records}
        started = 0
        async with asyncio.TaskGroup() as group:
            for index, record in enumerate(records):
                if record.result is not None:
                    ended[record.call.id].set()
                    continue
                in_the_way = [
                    earlier
                    for earlier in records[:index]
                    if conflicts(accesses[earlier.call.id], accesses[record.call.id], self._work.agent_workspace)
                ]
                undecided = any(e.result is None and e.state is not CallState.APPROVED for e in in_the_way)
                if record.state is not CallState.APPROVED or undecided:
                    continue
                started += 1
                waits = [ended[earlier.call.id] for earlier in in_the_way]
                group.create_task(self._run(record, accesses[record.call.id], waits, ended[record.call.id]))
        return started

    async def _run(
        self, record: CallRecord, access: Access | None, waits: Sequence[asyncio.Event], ended: asyncio.Event
    ) -> None:
        for earlier in waits:
            await earlier.wait()
        async with self._services.locks.hold(self._work.agent_workspace, access):
            refusal = await self._refused_now(record, access)
            if refusal is not None:
                await self._ledger.finish_call(self._work.claim, _told(record, refusal), CallState.DENIED)
            else:
                await self._perform(record)
        ended.set()

    async def _refused_now(self, record: CallRecord, access: Access | None) -> ToolReturn | None:
        """Check guards, rules and the binding again, at the moment of execution.

        Edited arguments go through the whole policy here, for the first time. What it only asks about
        has its answer: a person who may decide wrote exactly these.
        """
        asked = record.call
        if record.approval is not None and record.approval.hash != binding_hash(asked.name, asked.arguments):
            return text_return(asked.id, "Denied: the call is not the one that was shown.", ReturnOutcome.DENIED)
        call = as_decided(asked, record.approval)
        if self._cannot_run(call):
            return None
        grants = await self._ledger.grants(self._work.agent.id, self._work.conversation.id)
        verdict = self._services.policy.verdict(call, access, self._subject, grants)
        if verdict.action is Action.DENY:
            return self._immediate_refusal(call, verdict)
        return None

    async def _perform(self, record: CallRecord) -> None:
        call = as_decided(record.call, record.approval)
        await self._ledger.start_call(self._work.claim, call.id)
        await self._work.observer.observe(self._work.turn, CallStarted(call=call))
        try:
            result = await self._services.perform(self._work.toolset, call, self._context(call))
        except asyncio.CancelledError:
            await asyncio.shield(self._finish_stopped(record))
            raise
        result = _told(record, _as_data(result))
        await self._ledger.finish_call(self._work.claim, result, CallState.DONE)
        await self._work.observer.observe(self._work.turn, CallFinished(result=result))

    async def _finish_stopped(self, record: CallRecord) -> None:
        """Settle a call that was ended from outside: by a person, or because the host stops."""
        call = record.call
        if self._work.cancel.is_set():
            result, state = text_return(call.id, CANCELLED, ReturnOutcome.CANCELLED), CallState.DONE
        else:
            result, state = text_return(call.id, INTERRUPTED, ReturnOutcome.UNKNOWN), CallState.UNKNOWN
        await self._ledger.finish_call(self._work.claim, _told(record, result), state)

    def _context(self, call: ToolCall) -> ToolContext:
        work = self._work
        return ToolContext(
            agent_id=work.agent.id,
            memory_id=work.agent.memory_id,
            conversation_id=work.conversation.id,
            turn_id=work.turn.id,
            call_id=call.id,
            workspace=work.agent_workspace,
            overflow=self._services.host.overflow(work.conversation),
            audience=work.conversation.audience,
            origin=work.turn.origin,
            requester=work.turn.requester,
            readable=self._subject.granted,
        )


def _told(record: CallRecord, result: ToolReturn) -> ToolReturn:
    """Return the result of a call with what a person made of its arguments in front, so that the model knows."""
    changed = edit_text(record.approval)
    return replace(result, parts=(TextPart(text=escape_user_text(changed)), *result.parts)) if changed else result


def _as_data(result: ToolReturn) -> ToolReturn:
    """Return the result with its text unable to pose as the host's own voice."""
    parts = tuple(
        TextPart(text=escape_user_text(part.text)) if isinstance(part, TextPart) else part for part in result.parts
    )
    return replace(result, parts=parts)
