"""Invariant 10: a secret's value leaves the host nowhere."""

from __future__ import annotations

import json

from bot.trace import Tracer
from core.contracts.addresses import Attachment, MessageBody, Quote
from core.models.scripted import asks, says, tool_call
from tests.bot.conversations.hosting import SECRET, hosting


async def test_what_a_person_writes_quotes_and_names_is_masked_before_it_is_stored_or_sent(tmp_path):
    body = MessageBody(
        text=f"my word is {SECRET}",
        quote=Quote(text=f"he said {SECRET}", author=f"Bob {SECRET}"),
        forwarded_from=SECRET,
        unsupported=f"a sticker of {SECRET}",
    )
    async with hosting(tmp_path, says("I see.")) as host:
        await host.arrives(body)
        await host.settle()
        (request,) = host.model.requests
        assert "my word is" in repr(request)
        assert SECRET not in repr(request)
        assert SECRET not in repr(await host.transcript())
        assert SECRET not in repr(await host.stores.delivery.inbox_of("telegram/bot/111"))


async def test_the_name_of_a_file_that_came_in_is_masked(tmp_path):
    file = Attachment(handle="f1", name=f"{SECRET}.txt", media_type="text/plain")
    async with hosting(tmp_path, says("I see.")) as host:
        host.channel.files["f1"] = b"text"
        await host.arrives(MessageBody(text="look", attachments=(file,)))
        await host.settle()
        assert len(host.model.requests) == 1
        assert SECRET not in repr(host.model.requests)


async def test_what_an_agent_posts_by_a_tool_is_masked(tmp_path):
    arguments = json.dumps({"text": f"the word is {SECRET}"})
    async with hosting(tmp_path, asks(tool_call("c1", "send_message", arguments)), says("Done.")) as host:
        await host.says("tell me")
        assert any("the word is" in text for text in host.texts())
        assert not any(SECRET in text for text in host.texts())


async def test_a_trace_is_masked(tmp_path):
    async with hosting(tmp_path, says(f"The word is {SECRET}.")) as host:
        await host.says("hello")
        stores = host.stores
        tracer = Tracer(
            transcripts=stores.transcripts, ledger=stores.ledger, delivery=stores.delivery, mask=host.app.redactor.mask
        )
        trace = json.dumps(await tracer.trace((await host.latest_turn()).id))
        assert "The word is" in trace
        assert SECRET not in trace
