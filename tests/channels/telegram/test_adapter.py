import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from bot.console.server import serve
from channels.chunking import split_text
from channels.telegram.adapter import WebhookSettings
from core.contracts.addresses import Address, Button, CardContent, OutboundItem
from core.contracts.errors import SendLimited, SendRejected, SendUnknown, TextTooLong
from tests.channels.telegram.conftest import ALICE
from tests.platforms.telegram_faults import Fault

SECOND = timedelta(seconds=1)


def limited(seconds):
    return {"ok": False, "error_code": 429, "description": "Too Many", "parameters": {"retry_after": seconds}}


def visible(world, chat_id=111):
    return [message.text for message in world.server.visible(chat_id)]


async def in_time(world, awaitable, seconds, step=1.0):
    """Run `awaitable` while `seconds` pass; it must be done by then."""
    task = asyncio.create_task(awaitable)
    await world.pass_time(seconds, step)
    assert task.done()
    return task.result()


async def deliver_like_an_outbox(world, item):
    """Try again whenever the channel says when."""
    while True:
        try:
            return await world.channel.deliver(item)
        except SendLimited as error:
            await world.clock.sleep(error.retry_after)


@pytest.mark.parametrize("retry_after", [25, 0.35])
async def test_a_flood_wait_skips_previews_and_the_final_arrives_in_full_once_c15(world, retry_after):
    sent = asyncio.Queue()
    async with world.channel.reply(ALICE, sent.put) as reply:
        for count in range(1, 5):
            await reply.show("part, " * count)
            await world.pass_time(2, step=0.25)
        assert [call.status for call in world.server.calls_of("editMessageText")] == [200] * 3
        world.server.fail_next("editMessageText", 429, limited(retry_after))
        world.server.flood(111, retry_after)
        limited_from = world.clock.monotonic()
        await reply.show("part, " * 5)
        await world.pass_time(3, step=0.25)
    final = "part, " * 4 + "and the rest" * 75
    await in_time(world, deliver_like_an_outbox(world, world.text(final, sent.get_nowait())), 60)

    assert visible(world) == [final]
    edits = world.server.calls_of("editMessageText", 111)
    after_limit = [call.at for call in edits if call.at > limited_from + 1.2]
    assert all(at >= limited_from + retry_after for at in after_limit)
    assert [call.status for call in edits].count(429) == 1


async def test_a_limited_final_is_not_tried_before_its_time_and_other_chats_go_on_c15(world):
    world.server.fail_next("sendMessage", 429, limited(149), chat_id=111)
    world.server.flood(111, 149)
    final = asyncio.create_task(deliver_like_an_outbox(world, world.text("the whole answer")))
    await world.until(lambda: len(world.server.calls_of("sendMessage", 111)) == 1)
    await world.channel.deliver(world.text("another chat", chat="222"))
    assert visible(world, 222) == ["another chat"]
    await world.pass_time(148, step=4)
    assert len(world.server.calls_of("sendMessage", 111)) == 1
    await world.pass_time(2)
    await final

    assert visible(world) == ["the whole answer"]


@pytest.mark.parametrize("final", ["same text", "same text  \n"])
async def test_a_final_that_changes_nothing_is_delivered_without_a_second_message_c16(world, final):
    first = await world.channel.deliver(world.text("same text"))

    assert await world.channel.deliver(world.text(final, first)) == first
    assert visible(world) == ["same text"]


async def test_an_edit_of_the_keyboard_alone_is_made_c16(world):
    rows = ((Button(token="t", label="Approve"),),)
    item = OutboundItem(id="t/1", address=ALICE, content=CardContent(text="Run?", rows=rows))
    card = await world.channel.deliver(item)
    await world.channel.deliver(replace(item, external_id=card, content=CardContent(text="Run?")))
    (message,) = world.server.visible(111)

    assert (message.text, message.buttons) == ("Run?", {})


@pytest.mark.parametrize("failures", [1, 3])
@pytest.mark.parametrize("fault", [{"status": 503}, {"drop_before": True}, {"drop_after": True}])
async def test_a_final_edit_that_fails_for_a_while_ends_as_one_message_c16(world, failures, fault):
    first = await world.channel.deliver(world.text("the final tex"))
    world.server.fail_next("editMessageText", times=failures, **fault)
    await in_time(world, deliver_like_an_outbox(world, world.text("the final text", first)), 30)

    assert visible(world) == ["the final text"]


async def test_an_unknown_new_message_is_not_sent_again_by_the_channel_c16(world):
    world.server.fail_next("sendMessage", drop_after=True)
    with pytest.raises(SendUnknown):
        await world.channel.deliver(world.text("once"))

    assert visible(world) == ["once"]


async def test_every_part_of_a_long_emoji_answer_is_accepted_c14(world):
    capabilities = world.channel.capabilities
    for text in ("\U0001f600" * 2049, "\U0001f680" * 5000, "a" * 4095 + "\U0001f469\u200d\U0001f4bb", "&lt;" * 3000):
        world.server.chats.by_id[111].messages.clear()
        parts = split_text(text, capabilities.text_limit, capabilities.text_unit)
        for part in parts:
            await in_time(world, world.channel.deliver(world.text(part)), 3)
        assert "".join(visible(world)) == text.replace("&lt;", "<")
    assert {call.status for call in world.server.calls} == {200}


async def test_markdown_is_shown_by_entities_without_previews_of_its_links_c17(world):
    await world.channel.deliver(world.text("**bold** and [docs](https://example.org/d_(1)) for <!channel> @everyone"))
    (message,) = world.server.visible(111)

    assert message.text == "bold and docs for <!channel> @everyone"
    assert [(entity["type"], entity.get("url")) for entity in message.entities] == [
        ("bold", None),
        ("text_link", "https://example.org/d_(1)"),
    ]
    assert world.server.calls[-1].params["link_preview_options"] == {"is_disabled": True}


@pytest.mark.parametrize("path", ["final", "edit", "preview"])
async def test_a_text_whose_formatting_is_refused_arrives_as_it_was_written_once(world, path):
    shown = await world.channel.deliver(world.text("before"))
    world.server.fault("editMessageText" if path == "edit" else "sendMessage", Fault.ENTITIES_REFUSED)
    if path == "preview":
        async with world.channel.reply(ALICE, asyncio.Queue().put) as reply:
            await reply.show("**bold** words")
            await world.pass_time(5, step=0.25)
    else:
        item = world.text("**bold** words", shown if path == "edit" else None)
        await in_time(world, world.channel.deliver(item), 5)

    assert visible(world)[-1] == "**bold** words"
    assert len(visible(world)) == (1 if path == "edit" else 2)
    assert world.server.visible(111)[-1].entities == []


async def test_a_card_whose_formatting_is_refused_keeps_its_buttons(world):
    world.server.fault("sendMessage", Fault.ENTITIES_REFUSED)
    rows = ((Button(token="t", label="Approve"),),)
    content = CardContent(text="Run?", code="ls -la", rows=rows)
    await world.channel.deliver(OutboundItem(id="t/1", address=ALICE, content=content))
    (message,) = world.server.visible(111)

    assert (message.buttons, message.entities) == ({"Approve": "t"}, [])
    assert "ls -la" in message.text


async def test_a_server_that_counts_otherwise_says_so_in_time_to_split_smaller_c14(world):
    body = {"ok": False, "error_code": 400, "description": "Bad Request: message is too long"}
    world.server.fail_next("sendMessage", 400, body)
    with pytest.raises(TextTooLong):
        await world.channel.deliver(world.text("x" * 3000))


async def test_a_card_with_a_huge_command_is_sent_pressed_and_settled_c26(world):
    rows = ((Button(token="k" * 40, label="Approve"), Button(token="d" * 40, label="Deny")),)
    content = CardContent(text="Run this?", code="cat > заметки/планы-на-неделю.md <<EOF\n" + "x" * 6000, rows=rows)
    item = OutboundItem(id="t/card", address=ALICE, content=content)
    card = await world.channel.deliver(item)
    world.run()
    world.server.press(111, int(card), "k" * 40)
    await world.until(lambda: world.sink.events)
    await in_time(world, world.channel.deliver(replace(item, external_id=card, content=replace(content, rows=()))), 3)
    (message,) = world.server.visible(111)

    assert world.sink.events[0].body.token == "k" * 40
    assert message.buttons == {}
    assert "(cut: " in message.text


async def test_a_card_that_cannot_be_sent_fails_at_once_c26(world):
    rows = ((Button(token="я" * 33, label="Approve"),),)
    with pytest.raises(SendRejected):
        await world.channel.deliver(OutboundItem(id="t", address=ALICE, content=CardContent(text="?", rows=rows)))


async def test_a_topic_that_was_deleted_falls_back_to_its_chat(world):
    world.server.open_chat(-1001000000001, topics=(5,))
    topic = Address(channel="telegram", account="123456789", chat="-1001000000001", thread="5")
    await world.channel.deliver(replace(world.text("in the topic"), address=topic))
    world.server.chats.by_id[-1001000000001].topics.clear()
    await in_time(world, world.channel.deliver(replace(world.text("still said"), address=topic)), 5)

    assert [(m.text, m.thread) for m in world.server.visible(-1001000000001)] == [
        ("in the topic", 5),
        ("still said", None),
    ]


async def test_a_deleted_preview_gives_way_to_a_new_final(world):
    sent = asyncio.Queue()
    async with world.channel.reply(ALICE, sent.put) as reply:
        await reply.show("draft")
        await world.pass_time(2, step=0.25)
        world.server.delete(111, int(sent.get_nowait()))
        await reply.show("draft two")
        await world.pass_time(2, step=0.25)
    await in_time(world, world.channel.deliver(world.text("final", "1")), 3)

    assert visible(world) == ["final"]


async def test_typing_is_shown_in_the_chat_of_the_reply(world):
    async with world.channel.reply(ALICE, asyncio.Queue().put):
        await world.pass_time(6, step=0.25)

    actions = world.server.calls_of("sendChatAction", 111)
    assert [call.params["action"] for call in actions] == ["typing", "typing"]


async def test_finals_keep_the_chats_pace_but_for_one_call(world):
    for number in range(6):
        await in_time(world, world.channel.deliver(world.text(f"notice {number}")), 3, step=0.1)
    times = [call.at for call in world.server.calls_of("sendMessage")]

    assert times[-1] - times[0] >= 1.1 * 4 - 0.01


async def test_it_can_deliver_after_it_stopped_listening(world):
    task = world.run()
    await world.polls()
    await world.stop(task)
    await world.channel.deliver(world.text("goodbye"))

    assert visible(world) == ["goodbye"]


async def test_with_a_webhook_updates_are_posted_and_nothing_is_polled(world):
    settings = WebhookSettings(url="https://bot.example/hook", secret="s3cret-" + "S" * 20)
    async with world.channel_with(webhook=settings) as channel, serve(channel.webhook, listen="127.0.0.1:0") as bound:
        world.server.webhook.proxies["https://bot.example"] = f"http://{bound.removeprefix('http://')}"
        task = world.run(channel)
        world.server.user_says(111, "hello")
        async with asyncio.timeout(60):
            while not (world.sink.texts and (await channel.probe()).healthy):
                await asyncio.sleep(0)
        findings = {finding.name: finding.ok for finding in await channel.diagnose()}
        await world.stop(task)

    assert world.server.calls_of("getUpdates") == []
    assert (findings["webhook"], findings["receiving"]) == (True, True)
    assert settings.secret not in repr(settings)


async def test_a_channel_that_polls_answers_no_calls(world):
    assert world.channel.webhook is None
