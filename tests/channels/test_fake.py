import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from channels.fake import FAKE_CAPABILITIES, FakeChannel
from core.contracts.addresses import Address, Button, CardContent, OutboundItem, PressBody, TextContent
from core.contracts.errors import ChannelDown, SendLimited, SendRejected, SendUnknown

ADDRESS = Address(channel="fake", account="bot", chat="111")


def item(text="hello", number=1, external_id=None):
    return OutboundItem(id=f"t/{number}", address=ADDRESS, content=TextContent(markdown=text), external_id=external_id)


async def test_scripted_failures_come_in_order_and_have_no_effect():
    channel = FakeChannel()
    channel.fail_next(SendLimited("slow", retry_after=timedelta(seconds=1)), SendRejected("no"))
    for error in (SendLimited, SendRejected):
        with pytest.raises(error):
            await channel.deliver(item())
    await channel.deliver(item())

    assert [message.text for message in channel.messages.values()] == ["hello"]
    assert len(channel.deliveries) == 1


async def test_a_lost_answer_can_be_found_again():
    channel = FakeChannel()
    channel.lose_next_answer()
    with pytest.raises(SendUnknown):
        await channel.deliver(item())

    assert await channel.find(item()) == next(iter(channel.messages))
    assert await channel.find(item(number=2)) is None


async def test_versions_of_a_message_tell_its_whole_history():
    channel = FakeChannel()
    sent = asyncio.Queue()
    async with channel.reply(ADDRESS, sent.put) as reply:
        await reply.set_status("thinking")
        await reply.show("a")
        await reply.show("a b")
    external_id = sent.get_nowait()
    await channel.deliver(item("a b c", external_id=external_id))

    assert [version.markdown for version in channel.messages[external_id].versions] == ["a", "a b", "a b c"]
    assert channel.previews == ["a", "a b"]
    assert channel.statuses == ["thinking"]


async def test_a_preview_with_an_unknown_outcome_is_the_last_one():
    channel = FakeChannel()
    sent = asyncio.Queue()
    channel.fail_next(SendUnknown("lost"))
    async with channel.reply(ADDRESS, sent.put) as reply:
        await reply.show("a")
        await reply.show("a b")

    assert (channel.previews, sent.empty()) == ([], True)


async def test_long_code_of_a_card_is_cut_with_a_mark():
    channel = FakeChannel()
    rows = ((Button(token="t", label="Approve"),),)
    content = CardContent(text="Run?", code="x" * 5000, rows=rows)
    external_id = await channel.deliver(replace(item(), content=content))

    assert channel.messages[external_id].text.endswith("… (cut)")
    assert channel.messages[external_id].buttons == {"Approve": "t"}


async def test_a_refused_token_fails_every_call():
    channel = FakeChannel(capabilities=FAKE_CAPABILITIES)
    channel.refuse_token()
    with pytest.raises(ChannelDown):
        await channel.deliver(item())
    with pytest.raises(ChannelDown):
        await channel.run(sink=None)


async def test_acknowledgements_are_recorded():
    channel = FakeChannel()
    press = PressBody(token="t", card="1")
    await channel.acknowledge(press, "Noted")

    assert channel.acknowledgements == [(press, "Noted")]
