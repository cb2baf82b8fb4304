import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from channels.fake import FAKE_CAPABILITIES, FakeChannel
from core.contracts.addresses import (
    Address,
    Attachment,
    Button,
    CardContent,
    FileContent,
    OutboundItem,
    PressBody,
    ReactionContent,
    Removal,
    TextContent,
)
from core.contracts.errors import (
    ChannelDown,
    ChatMoved,
    DownloadFailed,
    SendLimited,
    SendRejected,
    SendUnknown,
)

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


async def test_a_file_keeps_what_it_held_when_it_was_sent(tmp_path):
    channel = FakeChannel()
    path = tmp_path / "a.txt"
    path.write_bytes(b"as sent")
    content = FileContent(path=str(path), name="a.txt", media_type="text/plain", caption="here")
    external_id = await channel.deliver(replace(item(), content=content))
    path.write_bytes(b"changed")
    message = channel.messages[external_id]

    assert (message.text, message.data, message.buttons) == ("a.txt\n\nhere", b"as sent", {})


@pytest.mark.parametrize("content", [TextContent(markdown="x"), ReactionContent(emoji="x"), Removal()])
async def test_every_delivery_can_be_made_to_fail(content):
    channel = FakeChannel()
    channel.fail_next(ChatMoved("upgraded", chat="222"))
    with pytest.raises(ChatMoved) as raised:
        await channel.deliver(replace(item(), content=content, reply_to="1", external_id="1"))

    assert raised.value.chat == "222"
    assert (channel.messages, channel.reactions, channel.deliveries) == ({}, {}, [])


async def test_downloads_and_leaving_can_be_made_to_fail_once(tmp_path):
    channel = FakeChannel()
    channel.files["f1"] = b"content"
    attachment = Attachment(handle="f1", name="a", media_type="text/plain")
    channel.fail_next_download(DownloadFailed("not now"))
    channel.fail_next_leave(SendRejected("not allowed"))
    with pytest.raises(DownloadFailed):
        await channel.download(attachment, tmp_path / "a", limit_bytes=99)
    with pytest.raises(SendRejected):
        await channel.leave(ADDRESS)
    await channel.download(attachment, tmp_path / "a", limit_bytes=99)
    await channel.leave(ADDRESS)

    assert (tmp_path / "a").read_bytes() == b"content"
    assert channel.left == [ADDRESS]
