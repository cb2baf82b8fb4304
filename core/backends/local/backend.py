"""`LocalBackend`: the backend contract in this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from core.backends.local.images import NoImages, Removal, image_ids, without_images
from core.backends.local.prompting import prepare_prompt
from core.backends.local.run_log import RunLog
from core.backends.local.step import Step
from core.backends.local.view import unanswered, unknown_return, valid_view
from core.contracts.agents import Agent, AgentSpec, Audience, Conversation
from core.contracts.attachments import ImageShelf, LeftOut, MissingImage
from core.contracts.backend import Backend
from core.contracts.clock import Clock
from core.contracts.errors import ApprovalPending, ConversationBusy, InvalidInput, StaleClaim
from core.contracts.events import MessageStored, PromptRecompiled, RunEvent
from core.contracts.ids import AgentId, ConversationId, MessageId, RunId, new_id
from core.contracts.memory import MemoryStore
from core.contracts.messages import Message, Part, Role, ToolCall, ToolReturn, UserPart, tool_calls
from core.contracts.models import ModelClient, ModelRequest
from core.contracts.runs import ApprovalInput, Claim, Run, RunInput, UserInput
from core.contracts.store import ConversationState, NewMessage, RunStart, TranscriptStore
from core.contracts.tools import ToolSchema

logger = logging.getLogger(__name__)


class LocalBackend:
    """Keeps state in a `TranscriptStore`, memory in a `MemoryStore`, and takes steps with a `ModelClient`.

    Use as an async context manager: leaving it ends every step that is under way and awaits it.
    Such a run stays active in the store and is finished as interrupted by the next claim. `images` holds
    what the messages' images are; without it, a model client finds out for itself what is there.
    """

    def __init__(
        self,
        *,
        store: TranscriptStore,
        memory: MemoryStore,
        model: ModelClient,
        clock: Clock,
        mask: Callable[[str], str],
        images: ImageShelf | None = None,
    ) -> None:
        self._store = store
        self._memory = memory
        self._model = model
        self._clock = clock
        self._mask = mask
        self._images = images or NoImages()
        self._steps: dict[RunId, tuple[Step, RunLog, asyncio.Task[None]]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks = [task for _, _, task in self._steps.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def create_agent(self, spec: AgentSpec) -> Agent:
        if await self.find_agent(spec.name) is not None:
            msg = f"there is an agent {spec.name!r} already"
            raise InvalidInput(msg)
        agent_id = AgentId(new_id("agent"))
        agent = _agent(agent_id, spec, memory_id=agent_id, clock=self._clock)
        await self._memory.create(agent.memory_id, spec.memory_files)
        await self._store.insert_agent(agent)
        return agent

    async def get_agent(self, agent_id: AgentId) -> Agent:
        return await self._store.agent(agent_id)

    async def find_agent(self, name: str) -> Agent | None:
        return next((agent for agent in await self._store.agents() if agent.name == name), None)

    async def update_agent(self, agent_id: AgentId, spec: AgentSpec) -> Agent:
        known = await self._store.agent(agent_id)
        agent = _agent(agent_id, spec, memory_id=known.memory_id, clock=self._clock)
        await self._store.update_agent(agent)
        return agent

    async def create_conversation(self, agent_id: AgentId, audience: Audience, *, hidden: bool = False) -> Conversation:
        conversation = Conversation(
            id=ConversationId(new_id("conv")),
            agent_id=agent_id,
            audience=audience,
            permission_mode=None,
            epoch=0,
            created_at=self._clock.now(),
            hidden=hidden,
        )
        await self._store.insert_conversation(conversation)
        return conversation

    async def get_conversation(self, conversation_id: ConversationId) -> Conversation:
        return await self._store.conversation(conversation_id)

    async def claim(self, conversation_id: ConversationId) -> Claim:
        # A step of an older claim cannot store its end any more: nobody should wait for it.
        for step, _, task in list(self._steps.values()):
            if step.conversation_id == conversation_id:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        return await self._store.claim(conversation_id)

    async def start_run(
        self, claim: Claim, run_input: RunInput, *, tools: Sequence[ToolSchema], request_id: str
    ) -> Run:
        state = await self._store.state(claim.conversation_id)
        # Looked for behind the state: what makes the conversation busy may be this very request.
        known = await self._store.find_run(claim.conversation_id, request_id)
        if known is not None:
            return known
        _require_claim(claim, state)
        if state.active_run is not None:
            raise ConversationBusy(claim.conversation_id, state.active_run)
        rows = await self._opening_rows(state, run_input)
        facts = self._model.facts(state.agent.model)
        missing = await self._missing_images(state, rows) if facts.sees_images else {}
        prepared = await prepare_prompt(state, tools=tools, facts=facts, memory=self._memory)
        if prepared.update is not None:
            rows = _with_update(rows, prepared.update)
        start = RunStart(
            run_id=RunId(new_id("run")),
            request_id=request_id,
            messages=tuple(rows),
            prompt=prepared.prompt if prepared.changed else None,
        )
        run, stored = await self._store.begin_run(claim, start)
        if run.id != start.run_id:
            return run
        request = ModelRequest(
            settings=state.agent.model,
            system=prepared.prompt.text,
            messages=without_images(
                valid_view((*state.view, *stored)), {image_id: image.why for image_id, image in missing.items()}
            ),
            tools=tuple(tools),
            max_output_tokens=facts.max_output_tokens,
        )
        gone = tuple(image_id for image_id, image in missing.items() if not image.recorded)
        self._launch(claim, run, request, stored, recompiled=prepared.recompiled, gone=gone)
        return run

    async def events(self, run_id: RunId, *, after: int = 0) -> AsyncIterator[RunEvent]:
        working = self._steps.get(run_id)
        if working is not None:
            async for event in working[1].follow(after):
                yield event
            return
        await self._store.run(run_id)
        position = after
        while batch := await self._store.events(run_id, after=position):
            for event in batch:
                position = event.seq
                yield event

    async def get_run(self, run_id: RunId) -> Run:
        return await self._store.run(run_id)

    async def pending_calls(self, conversation_id: ConversationId) -> tuple[ToolCall, ...]:
        return unanswered((await self._store.state(conversation_id)).view)

    async def cancel_run(self, run_id: RunId) -> None:
        working = self._steps.get(run_id)
        if working is not None:
            working[0].cancel.set()
            await asyncio.wait({working[2]})

    async def settle(self, claim: Claim, returns: Sequence[ToolReturn]) -> None:
        pending = {call.id for call in unanswered((await self._claimed_state(claim)).view)}
        unknown = [result.call_id for result in returns if result.call_id not in pending]
        if unknown or len({result.call_id for result in returns}) != len(returns):
            msg = f"results for calls that are not pending: {unknown!r}"
            raise InvalidInput(msg)
        await self._store.append_returns(claim, [_tool_row(result) for result in returns])

    async def recompile(self, conversation_id: ConversationId, *, reason: str) -> None:
        await self._store.mark_prompt_stale(conversation_id, reason)

    async def list_messages(
        self, conversation_id: ConversationId, *, after_seq: int = 0, limit: int = 200
    ) -> tuple[Message, ...]:
        return await self._store.messages(conversation_id, after_seq=after_seq, limit=limit)

    async def _claimed_state(self, claim: Claim) -> ConversationState:
        """Return the state under a valid claim: a lost one is told before anything else is found wrong."""
        state = await self._store.state(claim.conversation_id)
        _require_claim(claim, state)
        return state

    async def _opening_rows(self, state: ConversationState, run_input: RunInput) -> list[NewMessage]:
        """Return what the run appends: results first, then one user message."""
        pending = unanswered(state.view)
        match run_input:
            case ApprovalInput(returns=returns, parts=parts):
                if [result.call_id for result in returns] != [call.id for call in pending]:
                    msg = f"the answers do not match the pending calls {[call.id for call in pending]!r}"
                    raise InvalidInput(msg)
                return [*(_tool_row(result) for result in returns), *_user_rows(parts)]
            case UserInput(parts=parts):
                parked = await self._store.parked_calls(state.conversation.id) if pending else ()
                if parked:
                    raise ApprovalPending(state.conversation.id, tuple(call.id for call in parked))
                return [*(await self._settled_rows(state, pending)), *_user_rows(parts)]

    async def _missing_images(self, state: ConversationState, rows: Sequence[NewMessage]) -> Mapping[str, MissingImage]:
        """Return the images of the next request that cannot be sent."""
        held = (*(message.parts for message in state.view), *(row.parts for row in rows))
        wanted = image_ids(part for parts in held for part in parts)
        return await self._images.missing(wanted) if wanted else {}

    async def _settled_rows(self, state: ConversationState, pending: tuple[ToolCall, ...]) -> list[NewMessage]:
        """Answer dangling calls: with what the ledger knows, else as unknown."""
        if not pending:
            return []
        known = {result.call_id: result for result in await self._store.known_returns(state.conversation.id)}
        return [_tool_row(known.get(call.id) or unknown_return(call)) for call in pending]

    def _launch(
        self,
        claim: Claim,
        run: Run,
        request: ModelRequest,
        stored: tuple[Message, ...],
        *,
        recompiled: str,
        gone: tuple[str, ...],
    ) -> None:
        opening = tuple(
            RunEvent(run_id=run.id, seq=number, body=MessageStored(message=message))
            for number, message in enumerate(stored, start=1)
        )
        log = RunLog(claim=claim, run_id=run.id, stored=opening, store=self._store, clock=self._clock)
        if recompiled:
            log.add(PromptRecompiled(reason=recompiled))
        step = Step(
            claim=claim,
            run_id=run.id,
            request=request,
            taken_ids=frozenset(call.id for message in request.messages for call in tool_calls(message.parts)),
            model=self._model,
            images=self._images,
            gone=Removal(image_ids=gone, why=LeftOut.GONE),
            store=self._store,
            clock=self._clock,
            log=log,
            mask=self._mask,
        )
        task = asyncio.create_task(step.take(), name=f"step {run.id}")
        self._steps[run.id] = (step, log, task)
        task.add_done_callback(lambda done: self._forget(run.id, done))

    def _forget(self, run_id: RunId, task: asyncio.Task[None]) -> None:
        self._steps.pop(run_id, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("step_crashed", extra={"run_id": run_id}, exc_info=error)


def _require_claim(claim: Claim, state: ConversationState) -> None:
    if state.conversation.epoch != claim.epoch:
        raise StaleClaim(claim.conversation_id, claim.epoch)


def _agent(agent_id: AgentId, spec: AgentSpec, *, memory_id: str, clock: Clock) -> Agent:
    return Agent(
        id=agent_id,
        name=spec.name,
        model=spec.model,
        permission_mode=spec.permission_mode,
        toolset=spec.toolset,
        workspace=spec.workspace,
        queue_mode=spec.queue_mode,
        memory_id=memory_id,
        created_at=clock.now(),
    )


def _tool_row(result: ToolReturn) -> NewMessage:
    return NewMessage(id=MessageId(new_id("msg")), role=Role.TOOL, parts=(result,))


def _user_rows(parts: tuple[UserPart, ...]) -> list[NewMessage]:
    return [NewMessage(id=MessageId(new_id("msg")), role=Role.USER, parts=parts)] if parts else []


def _with_update(rows: list[NewMessage], update: Part) -> list[NewMessage]:
    """Put a memory update behind the last user parts, or in a user message of its own."""
    if rows and rows[-1].role is Role.USER:
        last = rows[-1]
        return [*rows[:-1], NewMessage(id=last.id, role=Role.USER, parts=(*last.parts, update))]
    return [*rows, NewMessage(id=MessageId(new_id("msg")), role=Role.USER, parts=(update,))]


if TYPE_CHECKING:
    _conforms: type[Backend] = LocalBackend
