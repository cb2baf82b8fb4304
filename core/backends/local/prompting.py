"""What a run sends in front of the transcript: the stored prompt, or a fresh one for a stated reason."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.contracts.agents import CompiledPrompt
from core.contracts.ids import Revision
from core.contracts.memory import MemoryCommit, MemoryStore
from core.contracts.messages import ReminderPart
from core.contracts.models import ModelFacts
from core.contracts.store import ConversationState
from core.contracts.tools import ToolSchema
from core.prompts.compile import compile_prompt, stamp
from core.prompts.updates import memory_update_reminder

_CHARS_PER_TOKEN = 4
_MEMORY_SHARE = 0.2
_HISTORY_LIMIT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedPrompt:
    """The prompt of the next run. `changed` is set when it must be stored with the run.

    `update` tells an open conversation what others changed in its memory.
    """

    prompt: CompiledPrompt
    changed: bool
    recompiled: str
    update: ReminderPart | None


def canonical_tools(tools: Sequence[ToolSchema]) -> str:
    """Return the schemas as one canonical JSON text, in their given order."""
    return json.dumps(
        [{"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in tools],
        ensure_ascii=False,
        separators=(",", ":"),
    )


async def prepare_prompt(
    state: ConversationState, *, tools: Sequence[ToolSchema], facts: ModelFacts, memory: MemoryStore
) -> PreparedPrompt:
    """Return the conversation's prompt, byte for byte as before unless there is a recorded reason."""
    tools_json = canonical_tools(tools)
    expected = stamp(
        agent_name=state.agent.name,
        model=state.agent.model.model,
        tools_json=tools_json,
        audience=state.conversation.audience,
    )
    head = await memory.head(state.agent.memory_id)
    reason = _why_fresh(state, tools_json, expected)
    if reason or state.prompt is None:
        return await _fresh(state, reason=reason, tools_json=tools_json, stamp_now=expected, facts=facts, memory=memory)
    if head == state.prompt.seen_revision:
        return PreparedPrompt(prompt=state.prompt, changed=False, recompiled="", update=None)
    update = await _update(state, state.prompt, head, memory)
    if update is not None and len(update.text) > _budget_chars(facts) // 4:
        return await _fresh(
            state,
            reason="memory outgrew its updates",
            tools_json=tools_json,
            stamp_now=expected,
            facts=facts,
            memory=memory,
        )
    seen = replace(state.prompt, seen_revision=head)
    return PreparedPrompt(prompt=seen, changed=True, recompiled="", update=update)


def _why_fresh(state: ConversationState, tools_json: str, expected: str) -> str:
    if state.prompt is None:
        return "new conversation"
    if state.prompt_stale:
        return state.prompt_stale
    if state.prompt.tools_json != tools_json:
        return "tools changed"
    if state.prompt.stamp != expected:
        return "template, model or audience changed"
    return ""


async def _fresh(
    state: ConversationState, *, reason: str, tools_json: str, stamp_now: str, facts: ModelFacts, memory: MemoryStore
) -> PreparedPrompt:
    audience = state.conversation.audience
    snapshot = await memory.snapshot(state.agent.memory_id, audience)
    text = compile_prompt(
        agent_name=state.agent.name, snapshot=snapshot, audience=audience, core_budget_chars=_budget_chars(facts)
    )
    prompt = CompiledPrompt(
        text=text,
        revision=snapshot.revision,
        seen_revision=snapshot.revision,
        stamp=stamp_now,
        tools_json=tools_json,
        reason=reason,
    )
    return PreparedPrompt(prompt=prompt, changed=True, recompiled=reason, update=None)


def _budget_chars(facts: ModelFacts) -> int:
    return int(facts.window_tokens * _MEMORY_SHARE) * _CHARS_PER_TOKEN


async def _update(
    state: ConversationState, prompt: CompiledPrompt, head: Revision, memory: MemoryStore
) -> ReminderPart | None:
    """Return what others committed since; a commit of this very conversation is no news to it."""
    agent, audience = state.agent, state.conversation.audience
    commits = _since(await memory.log(agent.memory_id, limit=_HISTORY_LIMIT, audience=audience), prompt.seen_revision)
    if all(_is_own(commit, state) for commit in commits):
        return None
    before = await memory.snapshot(agent.memory_id, audience, at=Revision(prompt.seen_revision))
    after = await memory.snapshot(agent.memory_id, audience, at=head)
    return memory_update_reminder(before, after, commits)


def _since(newest_first: Sequence[MemoryCommit], seen: str) -> tuple[MemoryCommit, ...]:
    """Return the commits after `seen`, newest first."""
    for index, commit in enumerate(newest_first):
        if commit.revision == seen:
            return tuple(newest_first[:index])
    return tuple(newest_first)


def _is_own(commit: MemoryCommit, state: ConversationState) -> bool:
    return commit.author == "agent" and commit.conversation_id == state.conversation.id
