"""What a run sends in front of the transcript: the stored prompt, or a fresh one for a stated reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.contracts.agents import CompiledPrompt, ModelSettings
from core.contracts.ids import Revision
from core.contracts.memory import MemoryCommit, MemorySnapshot, MemoryStore
from core.contracts.messages import ReminderPart
from core.contracts.models import ModelFacts
from core.contracts.store import ConversationState
from core.contracts.tools import ToolSchema
from core.prompts.compile import compile_prompt, stamp
from core.prompts.updates import memory_update_reminder
from core.tools.schema import schemas_json

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


async def prepare_prompt(
    state: ConversationState, *, tools: Sequence[ToolSchema], facts: ModelFacts, memory: MemoryStore
) -> PreparedPrompt:
    """Return the conversation's prompt, byte for byte as before unless there is a recorded reason."""
    tools_json = schemas_json(tools)
    expected = stamp(
        agent_name=state.agent.name,
        model=_model_as_sent_to(state.agent.model),
        tools_json=tools_json,
        audience=state.conversation.audience,
    )
    reason = _why_fresh(state, tools_json, expected)
    head = await memory.head(state.agent.memory_id)
    update: ReminderPart | None = None
    if not reason and state.prompt is not None and head != state.prompt.seen_revision:
        update, reason = await _news(state, state.prompt, head, facts=facts, memory=memory)
    if reason or state.prompt is None:
        return await _fresh(state, reason=reason, tools_json=tools_json, stamp_now=expected, facts=facts, memory=memory)
    changed = head != state.prompt.seen_revision
    prompt = replace(state.prompt, seen_revision=head)
    return PreparedPrompt(prompt=prompt, changed=changed, recompiled="", update=update)


def _model_as_sent_to(model: ModelSettings) -> str:
    """Return what of a model its requests depend on: where the host says whether it sees, old images do, too."""
    return model.model if model.sees_images is None else f"{model.model} sees_images={model.sees_images}"


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


async def _news(
    state: ConversationState, prompt: CompiledPrompt, head: Revision, *, facts: ModelFacts, memory: MemoryStore
) -> tuple[ReminderPart | None, str]:
    """Return what others committed since the prompt, or why it is better compiled afresh."""
    since = _since(await memory.log(state.agent.memory_id, limit=_HISTORY_LIMIT), prompt.seen_revision)
    if since is None:
        return None, "memory moved further than its history tells"
    update = await _update(state, prompt, head, [c.revision for c in since if not _is_own(c, state)], memory)
    if update is not None and len(update.text) > _budget_chars(facts) // 4:
        return None, "memory outgrew its updates"
    return update, ""


async def _update(
    state: ConversationState, prompt: CompiledPrompt, head: Revision, news: Sequence[Revision], memory: MemoryStore
) -> ReminderPart | None:
    """Return the files that `news` touched, as they are now; a conversation's own commits are no news to it."""
    if not news:
        return None
    memory_id, audience = state.agent.memory_id, state.conversation.audience
    visible = await memory.log(memory_id, limit=_HISTORY_LIMIT, audience=audience)
    commits = tuple(commit for commit in visible if commit.revision in news)
    touched = frozenset(path for commit in commits for path in commit.paths)
    before = await memory.snapshot(memory_id, audience, at=Revision(prompt.seen_revision))
    after = await memory.snapshot(memory_id, audience, at=head)
    return memory_update_reminder(_only(before, touched), _only(after, touched), commits)


def _only(snapshot: MemorySnapshot, paths: frozenset[str]) -> MemorySnapshot:
    return replace(snapshot, files=tuple(file for file in snapshot.files if file.path in paths))


def _since(newest_first: Sequence[MemoryCommit], seen: str) -> tuple[MemoryCommit, ...] | None:
    """Return the commits after `seen`, newest first; None where `seen` is not among them."""
    for index, commit in enumerate(newest_first):
        if commit.revision == seen:
            return tuple(newest_first[:index])
    return None


def _is_own(commit: MemoryCommit, state: ConversationState) -> bool:
    return commit.author == "agent" and commit.conversation_id == state.conversation.id
