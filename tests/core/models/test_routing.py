"""Which client a model gets."""

import pytest

from core.contracts.errors import ModelRejected
from core.contracts.messages import TextPart
from core.models.routing import ModelRouter
from core.models.scripted import ScriptedModel, says
from tests.core.models.transcripts import answer_of, request, settings


class SlowToLoad(ScriptedModel):
    """Counts how often it was warmed."""

    warmed = 0

    async def warm(self):
        self.warmed += 1


def router():
    litellm = SlowToLoad([says("litellm")])
    clients = ModelRouter(
        direct=ScriptedModel([says("direct")]), litellm=litellm, scripted={"demo": ScriptedModel([says("demo")])}
    )
    return clients, litellm


@pytest.mark.parametrize(
    ("model", "api_base", "client", "expected"),
    [
        ("openai/m1", "http://h/v1", "auto", "direct"),
        ("openai/gpt-4o", "", "auto", "litellm"),
        ("anthropic/claude-sonnet-4-5", "", "auto", "direct"),
        ("gemini/gemini-2.5-flash", "", "auto", "litellm"),
        ("gpt-4o", "", "auto", "litellm"),
        ("openai/m1", "http://h/v1", "litellm", "litellm"),
        ("anthropic/claude-sonnet-4-5", "", "litellm", "litellm"),
        ("openai/gpt-4o", "", "direct", "direct"),
        ("groq/llama", "http://h/v1", "direct", "direct"),
        ("scripted/demo", "", "litellm", "demo"),
    ],
)
async def test_settings_choose_the_client_and_only_litellm_is_warmed(model, api_base, client, expected):
    clients, litellm = router()
    chosen = settings(model, api_base, client=client)
    await clients.warm([chosen])
    _, finished = await answer_of(clients, request(chosen))
    assert finished.parts == (TextPart(text=expected),)
    assert litellm.warmed == (1 if expected == "litellm" else 0)


@pytest.mark.parametrize("model", ["groq/llama", "scripted/nobody"])
async def test_a_model_without_a_way_is_rejected(model):
    clients, _ = router()
    with pytest.raises(ModelRejected):
        await answer_of(clients, request(settings(model, client="direct")))
