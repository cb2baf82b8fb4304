"""The direct client: both provider forms over one pool of HTTP connections."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
from datetime import timedelta
from typing import TYPE_CHECKING

import httpx

from core.contracts.agents import ModelSettings
from core.contracts.clock import Clock, SystemClock
from core.contracts.errors import ModelError, ModelRejected, ModelUnreachable
from core.contracts.models import ModelClient, ModelEvent, ModelFacts, ModelRequest, StepFinished
from core.models.assemble import Assembler, call_ids
from core.models.characters import clean_text
from core.models.direct_anthropic import AnthropicForm
from core.models.direct_openai import OpenAIForm
from core.models.failures import Failure, body_text, retry_after, translate
from core.models.fragments import Fragment
from core.models.profiles import ANTHROPIC, OPENAI, model_facts, reasoning_form
from core.models.render import ImageSource, load_images, no_images
from core.models.sse import EventTooLong, event_data
from core.models.usage import step_usage
from core.models.wire import DEFAULT_IDLE, StreamFailure, StreamReader, WireForm, WireRequest

_CLOSING_TIMEOUT = timedelta(seconds=0.2)
"""How long a whole answer may wait for the end of its response, which is what keeps the connection."""
_CONNECT_TIMEOUT = timedelta(seconds=10)
_ERROR_BODY_BYTES = 64 * 1024
_FORMS: Mapping[str, WireForm] = {OPENAI: OpenAIForm(), ANTHROPIC: AnthropicForm()}


class DirectClient:
    """Streams from providers that speak the OpenAI chat form or the Anthropic messages form.

    Args:
        resolve_key: Returns the API key for a model, if it needs one.
        mask: Removes secrets from a provider's error text.
        images: Reads stored attachments.
        idle: How long a stream may be silent before it counts as cut.
        clock: Tells how far away an HTTP date in Retry-After is.
    """

    def __init__(
        self,
        *,
        resolve_key: Callable[[ModelSettings], str | None],
        mask: Callable[[str], str],
        images: ImageSource = no_images,
        idle: timedelta = DEFAULT_IDLE,
        clock: Clock | None = None,
    ) -> None:
        self._resolve_key = resolve_key
        self._mask = mask
        self._images = images
        self._timeout = httpx.Timeout(idle.total_seconds(), connect=_CONNECT_TIMEOUT.total_seconds())
        self._clock = clock or SystemClock()
        self._http: httpx.AsyncClient | None = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        facts = self.facts(request.settings)
        form = _FORMS[facts.form]
        images = await load_images(request, self._images) if facts.sees_images else {}
        wire = form.request(request, facts=facts, images=images, key=self._resolve_key(request.settings))
        assembler = Assembler(reasoning_form=reasoning_form(request.settings), taken=call_ids(request.messages))
        reader = form.reader()
        # With images a body has megabytes, and nobody else should wait while they are written out.
        content = await asyncio.to_thread(_encoded, wire) if images else _encoded(wire)
        async with aclosing(self._events(wire, content, form)) as events:
            async for data in events:
                for fragment in self._read(reader, data):
                    delta = assembler.add(fragment)
                    if delta is not None:
                        yield delta
        answer = assembler.finish()
        usage = step_usage(answer.reported, request=request, parts=answer.parts, facts=facts)
        yield StepFinished(parts=answer.parts, finish=answer.finish, usage=usage)

    def facts(self, settings: ModelSettings) -> ModelFacts:
        return model_facts(settings)

    async def aclose(self) -> None:
        """Close all connections; the next stream opens new ones."""
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def _events(self, wire: WireRequest, content: bytes, form: WireForm) -> AsyncGenerator[str]:
        """Yield the data of each event; every failure of the transport is translated here."""
        headers = {
            **wire.headers,
            "content-type": "application/json",
            "accept": "text/event-stream",
            "accept-encoding": "identity",
        }
        try:
            async with self._client().stream("POST", wire.url, headers=headers, content=content) as response:
                await self._refuse_other_answers(response)
                async with aclosing(event_data(response.aiter_raw())) as events:
                    async for data in events:
                        if form.is_end(data):
                            await _drain(events)
                            return
                        yield data
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise ModelRejected(self._mask(f"the address {wire.url!r} is not usable: {error}")) from error
        except httpx.TimeoutException as error:
            raise ModelUnreachable(self._mask(f"no sign of the model in time ({type(error).__name__})")) from error
        except (httpx.TransportError, EventTooLong) as error:
            raise ModelUnreachable(self._mask(str(error) or type(error).__name__)) from error

    async def _refuse_other_answers(self, response: httpx.Response) -> None:
        """Raise unless the answer is a stream of events."""
        kind = response.headers.get("content-type", "")
        if response.status_code == httpx.codes.OK and not kind.startswith("application/json"):
            return
        text = body_text(await _beginning(response))
        status = None if response.is_success else response.status_code
        wait = retry_after(response.headers, self._clock.now())
        raise translate(Failure(text=text, status=status, retry_after=wait), self._mask)

    def _read(self, reader: StreamReader, data: str) -> list[Fragment]:
        try:
            return list(reader.read(json.loads(data)))
        except StreamFailure as failure:
            raise self._translated(failure) from failure
        except (ValueError, RecursionError, AttributeError, TypeError, KeyError) as error:
            raise ModelUnreachable(self._mask(f"an event of the stream is broken: {data[:200]!r}")) from error

    def _translated(self, failure: StreamFailure) -> ModelError:
        return translate(Failure(text=failure.text, status=failure.status), self._mask)

    def _client(self) -> httpx.AsyncClient:
        if self._http is None:
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
            self._http = httpx.AsyncClient(timeout=self._timeout, limits=limits)
        return self._http


def _encoded(wire: WireRequest) -> bytes:
    return clean_text(json.dumps(wire.body, ensure_ascii=False, separators=(",", ":"))).encode()


async def _drain(events: AsyncIterator[str]) -> None:
    with suppress(TimeoutError, httpx.TransportError):
        async with asyncio.timeout(_CLOSING_TIMEOUT.total_seconds()):
            async for _ in events:
                pass


async def _beginning(response: httpx.Response) -> str:
    """Return the start of a body; an error page may be of any length."""
    body = b""
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) >= _ERROR_BODY_BYTES:
            break
    return body[:_ERROR_BODY_BYTES].decode("utf-8", "replace")


if TYPE_CHECKING:
    _conforms: type[ModelClient] = DirectClient
