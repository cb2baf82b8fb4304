"""Every client that reaches a provider, each with the strict server it talks to."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from core.models.direct import DirectClient
from core.models.litellm_client import LiteLLMClient
from tests.core.models.transcripts import settings
from tests.platforms import anthropic_server, openai_server
from tests.platforms.anthropic_server import AnthropicServer
from tests.platforms.model_script import Answer, Raw, Status
from tests.platforms.openai_server import OpenAIServer

KEY = "sk-" + "k" * 20
SECRET = "hunter" + "2" * 12
BOUND = 20.0


@dataclass
class Way:
    """One client and the kind of server it talks to."""

    client: type
    server: type
    model: str

    @asynccontextmanager
    async def open(self, *script, idle=timedelta(seconds=BOUND), clock=None, **options):
        async with self.server(script or (Answer(text="ok"),), key=KEY, **options) as server:
            client = self.client(
                resolve_key=lambda _: KEY, mask=lambda text: text.replace(SECRET, "[secret]"), idle=idle, clock=clock
            )
            try:
                yield client, server, settings(self.model, server.base_url)
            finally:
                await client.aclose()

    @property
    def is_openai(self) -> bool:
        return self.server is OpenAIServer

    def error(self, status, kind, message, headers=None) -> Status:
        body = {"error": {"type": kind, "message": message, "code": kind}}
        return Status(status, json.dumps(body), headers or {})

    def broken_off(self, *texts, cut=False) -> Raw:
        """A stream that stops behind some text, without a finish."""
        if self.is_openai:
            return Raw([openai_server.chunk({"content": text}) for text in texts], cut=cut)
        return Raw([anthropic_server.start(), *self._open_block(texts)], cut=cut)

    def _open_block(self, texts):
        deltas = [{"type": "text_delta", "text": text} for text in texts]
        return anthropic_server.block(0, {"type": "text", "text": ""}, deltas)[:-1]


WAYS = {
    "direct-openai": Way(DirectClient, OpenAIServer, "openai/m1"),
    "direct-anthropic": Way(DirectClient, AnthropicServer, "anthropic/claude-sonnet-4-5"),
    "litellm-openai": Way(LiteLLMClient, OpenAIServer, "openai/m1"),
    "litellm-anthropic": Way(LiteLLMClient, AnthropicServer, "anthropic/claude-sonnet-4-5"),
}
