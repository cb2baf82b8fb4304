"""C40: a model's reasoning goes back in front of its call, also after a restart, and to nobody else.

The whole way: strict servers of the providers, the real clients, the backend, a database file.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from core.contracts.messages import ReasoningPart, Role, ToolReturn
from core.contracts.runs import ApprovalInput, StopReason
from core.models.routing import ModelRouter
from tests.contracts.backend_harnesses import SPEC, BackendWorld, local_on_files, say
from tests.contracts.model_ways import WAYS
from tests.contracts.test_backend_contract import ok
from tests.platforms.model_script import Answer, Call

THINKING = Answer(reasoning="The file will tell.", calls=[Call("call_a", "shell", '{"command":"cat a.md"}')])
STRICT = {
    "direct-anthropic": {"needs_thinking": True},
    "litellm-anthropic": {"needs_thinking": True},
    "direct-openai": {"needs_reasoning": True},
    "litellm-openai": {"needs_reasoning": True},
}


@pytest.fixture(params=STRICT)
def strict(request):
    """Give an opener of (client, server, settings) that requires reasoning in front of calls."""
    return lambda *script: WAYS[request.param].open(*script, **STRICT[request.param])


async def with_model(world: BackendWorld, settings) -> None:
    """Let the agent think with the model of these settings."""
    world.agent = await world.backend.update_agent(world.agent.id, replace(SPEC, model=settings))


async def answer_pending(world: BackendWorld):
    pending = await world.backend.pending_calls(world.conversation_id)
    return await world.step(ApprovalInput(returns=tuple(ok(call.id) for call in pending)))


def order_of_parts(world_messages) -> list[str]:
    return [
        type(part).__name__ for message in world_messages if message.role is Role.ASSISTANT for part in message.parts
    ]


async def test_reasoning_is_sent_back_in_front_of_its_call_after_a_restart(strict, tmp_path):
    async with strict(THINKING, Answer(text="It says hello.")) as (client, server, settings):
        async with local_on_files(tmp_path, client) as world:
            await with_model(world, settings)
            await world.step(say("read a.md"))
            async with world.restart() as again:
                events = await answer_pending(again)
                stored = await again.backend.list_messages(again.conversation_id)
        assert [seen.refusal for seen in server.requests] == ["", ""]
        assert events[-1].body.stop_reason is StopReason.END_TURN
        assert order_of_parts(stored)[:2] == ["ReasoningPart", "ToolCall"]


async def test_another_provider_is_sent_no_reasoning(strict, tmp_path):
    async with AsyncExitStack() as stack:
        client, server, settings = await stack.enter_async_context(strict(THINKING, Answer(text="It says hello.")))
        plain_client, plain, plain_settings = await stack.enter_async_context(
            WAYS["direct-openai"].open(Answer(text="I go on."))
        )
        router = ModelRouter(direct=plain_client, litellm=client, scripted={})
        world = await stack.enter_async_context(local_on_files(tmp_path, router))
        await with_model(world, replace(settings, client="litellm"))
        await world.step(say("read a.md"))
        await answer_pending(world)
        await with_model(world, replace(plain_settings, client="direct"))
        events = await world.step(say("and now?"))
        assert events[-1].body.stop_reason is StopReason.END_TURN
        assert [seen.refusal for seen in plain.requests] == [""]
        assert "The file will tell." not in plain.requests[0].raw.decode()
        assert server.requests[-1].refusal == ""


async def test_reasoning_of_a_call_that_dangled_stays_with_it(strict, tmp_path):
    """C38 and C40 together: the process died behind the call, a person speaks."""
    async with strict(THINKING, Answer(text="I do not know.")) as (client, server, settings):
        async with local_on_files(tmp_path, client) as world:
            await with_model(world, settings)
            await world.step(say("read a.md"))
            async with world.restart() as again:
                await again.step(say("are you there?"))
                stored = await again.backend.list_messages(again.conversation_id)
        assert [seen.refusal for seen in server.requests] == ["", ""]
        asked = stored[1].parts
        assert isinstance(asked[0], ReasoningPart)
        assert isinstance(stored[2].parts[0], ToolReturn)
