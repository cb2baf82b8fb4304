"""Short ways to write model requests in tests."""

from __future__ import annotations

from datetime import UTC, datetime

from core.contracts.agents import ModelSettings
from core.contracts.ids import CallId, ConversationId, MessageId
from core.contracts.messages import (
    Message,
    ReasoningPart,
    ReturnOutcome,
    Role,
    TextPart,
    ToolCall,
    text_return,
)
from core.contracts.models import ModelRequest
from core.contracts.tools import ToolSchema

READ_FILE = ToolSchema(
    name="read_file",
    description="Read a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)


def rows(*contents: tuple[Role, tuple]) -> tuple[Message, ...]:
    """Number the given contents as messages of one conversation."""
    return tuple(
        Message(
            id=MessageId(f"msg-{seq}"),
            conversation_id=ConversationId("conv-1"),
            seq=seq,
            role=role,
            parts=parts,
            created_at=datetime(2026, 1, 1, tzinfo=UTC),
        )
        for seq, (role, parts) in enumerate(contents, start=1)
    )


def user(*parts) -> tuple[Role, tuple]:
    return Role.USER, tuple(TextPart(text=part) if isinstance(part, str) else part for part in parts)


def assistant(*parts) -> tuple[Role, tuple]:
    return Role.ASSISTANT, tuple(TextPart(text=part) if isinstance(part, str) else part for part in parts)


def result(call_id: str, text: str, outcome: ReturnOutcome = ReturnOutcome.OK) -> tuple[Role, tuple]:
    return Role.TOOL, (text_return(CallId(call_id), text, outcome),)


def call(call_id: str, arguments: str = '{"path":"a.md"}', name: str = "read_file") -> ToolCall:
    return ToolCall(id=CallId(call_id), name=name, arguments=arguments)


def thought(text: str, form: str, signature: str | None = None) -> ReasoningPart:
    return ReasoningPart(text=text, form=form, signature=signature)


def settings(model: str = "openai/m1", api_base: str = "", **changes) -> ModelSettings:
    return ModelSettings(name="main", model=model, api_base=api_base, **changes)


def request(
    model: ModelSettings,
    *contents: tuple[Role, tuple],
    system: str = "You are a test.",
    tools: tuple[ToolSchema, ...] = (READ_FILE,),
) -> ModelRequest:
    return ModelRequest(
        settings=model,
        system=system,
        messages=rows(*(contents or (user("hello"),))),
        tools=tools,
        max_output_tokens=1_000,
    )


async def answer_of(client, model_request):
    """Return all deltas and the finished step."""
    *deltas, finished = [event async for event in client.stream(model_request)]
    return deltas, finished
