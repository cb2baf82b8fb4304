import asyncio
from dataclasses import replace

import pytest

from channels.slack.lookups import Lookups
from channels.slack.uploads import Uploads
from core.contracts.addresses import CardContent, FileContent, OutboundItem, ReactionContent, Removal
from core.contracts.errors import SendUnknown
from tests.channels.slack.sending import CHANNEL, DIRECT, opened, text
from tests.platforms.slack_faults import Fault
from tests.platforms.slack_workspace import ALICE, ALICE_DM, BOB, ROOM


def restarted(scene):
    """Return what looks for items in a process that knows nothing of earlier ones."""
    return Lookups(scene.api, Uploads(scene.api, scene.clock, scene.timing), scene.clock, scene.timing)


def file_item(tmp_path, address, reply_to=None, name="a.txt", content="content"):
    (tmp_path / name).write_text(content)
    sent = FileContent(path=str(tmp_path / name), name=name, media_type="text/plain")
    return OutboundItem(id=f"t/{name}", address=address, content=sent, reply_to=reply_to)


@pytest.mark.parametrize("fault", [Fault.LOST_RESPONSE, Fault.LOST_REQUEST, Fault.ANSWERED])
@pytest.mark.parametrize("where", ["thread", "channel", "thread of the answered"])
async def test_a_send_whose_answer_is_lost_is_found_if_it_took_effect(fault, where):
    async with opened() as scene:
        thread = scene.asked(CHANNEL)
        inner = scene.server.user_says(ROOM, BOB, "and?", thread.thread)
        item = {
            "thread": text("answer", thread, reply_to=thread.thread),
            "channel": text("answer", CHANNEL),
            "thread of the answered": text("answer", CHANNEL, reply_to=f"{thread.thread}:{inner}"),
        }[where]
        scene.server.fault("chat.postMessage", fault)
        with pytest.raises(SendUnknown):
            await scene.deliver(item)
        found = await restarted(scene).find(item)
        shown = [message.ts for message in scene.server.visible(ROOM)]

    if fault is Fault.LOST_RESPONSE:
        (ts,) = shown
        assert found == (ts if where == "channel" else f"{thread.thread}:{ts}")
    else:
        assert (found, shown) == (None, [])


async def test_a_message_of_another_item_or_another_app_is_not_it():
    async with opened() as scene:
        thread = scene.asked()
        await scene.deliver(text("answer", thread, item_id="turn-1/1"))
        other = {"event_type": "something", "event_payload": {"id": "turn-1/2"}}
        await scene.api._client.chat_postMessage(channel=ALICE_DM, thread_ts=thread.thread, text="x", metadata=other)

        assert await scene.lookups.find(text("answer", thread, item_id="turn-1/2")) is None
        assert await scene.lookups.find(text("anything", thread, item_id="turn-1/1")) is not None


async def test_a_card_is_found_like_a_text():
    async with opened() as scene:
        card = OutboundItem(id="t/card", address=DIRECT, content=CardContent(text="Run?"))
        shown = await scene.deliver(card)

        assert await restarted(scene).find(card) == shown


async def test_what_went_to_the_channel_for_want_of_a_thread_is_found_there():
    async with opened() as scene:
        item = text("answer", replace(DIRECT, thread="1700000000.000100"))
        shown = await scene.deliver(item)

        assert await restarted(scene).find(item) == shown


async def test_it_is_found_behind_many_later_messages():
    async with opened() as scene:
        thread = scene.asked(CHANNEL)
        item = text("answer", thread, reply_to=thread.thread)
        shown = await scene.deliver(item)
        for number in range(150):
            scene.server.user_says(ROOM, BOB, f"talk {number}", thread.thread)

        assert await restarted(scene).find(item) == shown


async def test_while_slack_cannot_be_asked_it_is_tried_again():
    async with opened() as scene:
        item = text("answer", CHANNEL)
        shown = await scene.deliver(item)
        scene.server.fail_next("conversations.history", 503, times=2)
        scene.server.fault("conversations.history", Fault.FLOODED, seconds=20)

        assert await scene.in_pace(scene.lookups.find(item)) == shown
        assert len(scene.server.calls_of("conversations.history")) == 4


async def test_what_cannot_be_known_is_told_as_not_there(caplog):
    async with opened() as scene:
        item = text("answer", CHANNEL)
        await scene.deliver(item)
        scene.server.fail_next("conversations.history", 503, times=5)
        assert await scene.in_pace(scene.lookups.find(item)) is None
        assert scene.clock.monotonic() <= scene.timing.lookup_patience.total_seconds()
        await scene.server.stop()
        looking = asyncio.create_task(scene.lookups.find(item))
        assert await scene.in_pace(looking) is None
        await scene.server.start()
        scene.server.take_scope("channels:history")
        assert await scene.lookups.find(item) is None

    assert caplog.text.count("slack_lookup_given_up") == 2
    assert "slack_lookup_refused" in caplog.text


@pytest.mark.parametrize("content", [ReactionContent(emoji="x"), Removal()])
async def test_reactions_and_removals_leave_nothing_to_find(content):
    async with opened() as scene:
        assert await scene.lookups.find(OutboundItem(id="t", address=DIRECT, content=content, reply_to="1.2")) is None
        assert scene.server.calls == []


async def test_a_file_is_found_by_slacks_id_of_it(tmp_path):
    async with opened() as scene:
        thread = scene.asked()
        item = file_item(tmp_path, thread)
        shown = await scene.deliver(item)

        assert await scene.lookups.find(item) == shown


async def test_after_a_restart_a_file_is_found_by_what_it_is_behind_what_it_answers(tmp_path):
    async with opened() as scene:
        earlier = await scene.deliver(file_item(tmp_path, DIRECT))
        thread = scene.asked()
        item = file_item(tmp_path, thread, reply_to=thread.thread)
        before = await restarted(scene).find(item)
        shown = await scene.deliver(item)

        assert before is None
        assert await restarted(scene).find(item) == shown != earlier
        assert await restarted(scene).find(replace(item, reply_to=None)) is None
        assert await restarted(scene).find(file_item(tmp_path, thread, thread.thread, name="b.txt")) is None
        assert await restarted(scene).find(file_item(tmp_path, thread, thread.thread, content="other content")) is None


async def test_what_it_answers_may_be_no_message_and_its_file_may_be_gone(tmp_path):
    async with opened() as scene:
        thread = scene.asked()
        item = text("answer", thread, reply_to="of another platform")
        shown = await scene.deliver(item)
        file = file_item(tmp_path, thread, reply_to=thread.thread)
        (tmp_path / "a.txt").unlink()

        assert await restarted(scene).find(item) == shown
        assert await restarted(scene).find(file) is None


async def test_a_file_of_a_person_is_not_it(tmp_path):
    async with opened() as scene:
        thread = scene.asked()
        item = file_item(tmp_path, thread, reply_to=thread.thread)
        theirs = scene.server.files.keep(b"content", name="a.txt", user=ALICE)
        scene.server.user_says(ALICE_DM, ALICE, "here", thread.thread, files=(theirs,))

        assert await restarted(scene).find(item) is None
