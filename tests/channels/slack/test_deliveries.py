import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from channels.slack.limits import Timing
from core.contracts.addresses import Button, CardContent, FileContent, OutboundItem, ReactionContent, Removal
from core.contracts.errors import ChannelDown, SendLimited, SendRejected, SendUnknown, TextTooLong
from tests.channels.slack.sending import CHANNEL, DIRECT, OTHER, opened, text
from tests.platforms.slack_faults import Fault
from tests.platforms.slack_workspace import ALICE, ALICE_DM, BOB_DM, ROOM

ROWS = ((Button(token="allow", label="Allow"),),)


def card(content, address=DIRECT, external_id=None):
    return OutboundItem(id="turn-1/card", address=address, content=content, external_id=external_id)


def removal(external_id, address=DIRECT):
    return OutboundItem(id="turn-1/gone", address=address, content=Removal(), external_id=external_id)


def reaction(emoji, message, address=DIRECT):
    return OutboundItem(id="turn-1/r", address=address, content=ReactionContent(emoji=emoji), reply_to=message)


def texts(scene, chat=ALICE_DM):
    return [message.text for message in scene.server.visible(chat)]


async def test_a_text_goes_into_its_thread_and_is_known_by_both():
    async with opened() as scene:
        thread = scene.asked()
        external_id = await scene.deliver(text("**done**", thread))
        (message,) = scene.server.visible(ALICE_DM)

        assert (message.text, message.thread_ts) == ("*done*", thread.thread)
        assert external_id == f"{thread.thread}:{message.ts}"
        assert message.metadata == {"event_type": "lodger_item", "event_payload": {"id": "turn-1/1"}}


async def test_where_no_thread_is_named_a_text_goes_where_what_it_answers_stands():
    async with opened() as scene:
        root = scene.server.user_says(ALICE_DM, ALICE, "root")
        inner = scene.server.user_says(ALICE_DM, ALICE, "inner", root)
        in_thread = await scene.deliver(text("a", reply_to=f"{root}:{inner}"))
        at_top = await scene.deliver(text("b", reply_to=root))

        assert [message.thread_ts for message in scene.server.visible(ALICE_DM)] == [root, None]
        assert in_thread.startswith(f"{root}:")
        assert ":" not in at_top


async def test_an_edit_changes_its_message_and_may_be_made_again():
    async with opened() as scene:
        first = await scene.deliver(text("first"))
        for _ in range(2):
            assert await scene.deliver(text("second", external_id=first)) == first

        assert [message.versions for message in scene.server.visible(ALICE_DM)] == [["first", "second", "second"]]


async def test_an_edit_of_a_message_that_is_gone_is_a_new_send_in_the_same_place():
    async with opened() as scene:
        thread = scene.asked()
        gone = await scene.deliver(text("first", thread))
        scene.server.user_deletes(ALICE_DM, gone.partition(":")[2])
        for address in (thread, DIRECT):
            external_id = await scene.deliver(text("second", address, gone))
            assert external_id not in {gone, ""}

        assert [(m.text, m.thread_ts) for m in scene.server.visible(ALICE_DM)] == [("second", thread.thread)] * 2


@pytest.mark.parametrize("word", ["edit_window_closed", "cant_update_message"])
async def test_a_message_that_may_not_change_any_more_makes_room_for_a_new_one(word):
    async with opened() as scene:
        old = await scene.deliver(text("first"))
        scene.server.refuse_next("chat.update", word)
        new = await scene.deliver(text("second", external_id=old))

        assert new != old
        assert texts(scene) == ["second"]


async def test_a_workspace_that_closes_edits_still_gets_the_answer():
    async with opened() as scene:
        old = await scene.deliver(text("first"))
        scene.server.messages.edit_window = timedelta(minutes=1)
        await scene.clock.advance(timedelta(minutes=2))
        await scene.deliver(text("second", external_id=old))

        assert texts(scene) == ["second"]


@pytest.mark.parametrize("word", ["compliance_exports_prevent_deletion", "fatal_error", "missing_scope"])
async def test_where_the_old_message_cannot_go_either_both_stay(word):
    async with opened() as scene:
        old = await scene.deliver(text("first"))
        scene.server.refuse_next("chat.update", "edit_window_closed")
        scene.server.refuse_next("chat.delete", word)
        await scene.deliver(text("second", external_id=old))

        assert texts(scene) == ["first", "second"]


async def test_a_thread_whose_root_is_gone_is_answered_in_its_channel():
    async with opened() as scene:
        external_id = await scene.deliver(text("answer", replace(DIRECT, thread="1700000000.000100")))

        assert texts(scene) == ["answer"]
        assert ":" not in external_id


async def test_a_text_that_is_too_long_is_the_hosts_to_split_c14():
    async with opened() as scene:
        for markdown in ("a" * 4001, "&" * 1000):
            with pytest.raises(TextTooLong):
                await scene.deliver(text(markdown))
        scene.server.refuse_next("chat.postMessage", "msg_too_long")
        with pytest.raises(TextTooLong):
            await scene.deliver(text("short"))

        assert texts(scene) == []


async def test_a_card_is_posted_pressed_and_settled_without_buttons_c26():
    async with opened() as scene:
        long = CardContent(text="Run this?" * 500, code="x" * 6000, rows=ROWS)
        shown = await scene.deliver(card(long))
        pressed = scene.server.presses(ALICE, ALICE_DM, shown, "Allow")
        await scene.deliver(card(replace(long, rows=()), external_id=shown))
        (message,) = scene.server.visible(ALICE_DM)

        assert pressed.payload["actions"][0]["value"] == "allow"
        assert message.buttons == {}
        assert {call.error for call in scene.server.calls} == {""}


async def test_a_card_that_cannot_be_sent_fails_at_once_c26():
    async with opened() as scene:
        with pytest.raises(SendRejected):
            await scene.deliver(card(CardContent(text="Run?", rows=((Button(token="t" * 2001, label="Yes"),),))))
        scene.server.refuse_next("chat.postMessage", "invalid_blocks")
        with pytest.raises(SendRejected, match="invalid_blocks"):
            await scene.deliver(card(CardContent(text="Run?", rows=ROWS)))


async def test_a_text_in_the_place_of_a_card_takes_its_buttons_away():
    async with opened() as scene:
        shown = await scene.deliver(card(CardContent(text="Run?", rows=ROWS)))
        await scene.deliver(text("never mind", external_id=shown))
        (message,) = scene.server.visible(ALICE_DM)

        assert (message.text, message.blocks) == ("never mind", [])


async def test_a_limit_holds_its_chat_as_long_as_asked_and_no_other_c15():
    async with opened() as scene:
        shown = await scene.deliver(text("preview"))
        scene.server.fault("chat.update", Fault.FLOODED, seconds=10)
        with pytest.raises(SendLimited) as raised:
            await scene.deliver(text("final", external_id=shown))
        limited_at = scene.clock.monotonic()
        final = asyncio.create_task(scene.deliveries.deliver(text("final", external_id=shown)))
        await scene.deliveries.deliver(text("another chat", OTHER))
        other_at = scene.clock.monotonic()
        await scene.in_pace(final)
        updates = scene.server.calls_of("chat.update", ALICE_DM)

        assert raised.value.retry_after == timedelta(seconds=10)
        assert other_at == limited_at
        assert updates[-1].at - updates[-2].at >= 10
        assert (texts(scene), texts(scene, BOB_DM)) == (["final"], ["another chat"])


async def test_calls_keep_the_pace_of_their_channel():
    async with opened() as scene:
        thread = scene.asked()
        items = [text(f"{number}", thread, item_id=f"t/{number}") for number in range(5)]
        deliveries = [asyncio.create_task(scene.deliveries.deliver(item)) for item in items]
        await scene.in_pace(asyncio.gather(*deliveries))
        times = [call.at for call in scene.server.calls_of("chat.postMessage")]

        assert times[-1] - times[0] >= scene.timing.edit_interval.total_seconds() * 3
        assert texts(scene) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("failures", [1, 3])
async def test_a_final_edit_that_fails_is_made_again_and_stands_once_c16(failures):
    async with opened() as scene:
        shown = await scene.deliver(text("the whole answer"))
        scene.server.fail_next("chat.update", 503, times=failures)
        final = text("the whole answer", external_id=shown)
        for _ in range(failures):
            with pytest.raises(SendLimited):
                await scene.deliver(final)

        assert await scene.deliver(final) == shown
        assert texts(scene) == ["the whole answer"]


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_RESPONSE, Fault.ANSWERED, Fault.HALF_OPEN])
async def test_a_send_whose_answer_is_lost_leaves_the_outcome_open_and_other_chats_free(fault):
    async with opened(Timing(answer_timeout=timedelta(milliseconds=100))) as scene:
        scene.server.fault("chat.postMessage", fault, channel=ALICE_DM)
        send = asyncio.create_task(scene.deliver(text("hello")))
        await scene.deliver(text("another chat", OTHER))
        with pytest.raises(SendUnknown):
            await send

        assert texts(scene) == (["hello"] if fault is Fault.LOST_RESPONSE else [])


async def test_a_message_that_is_still_streamed_after_a_restart_ends_with_its_text_c19():
    async with opened() as scene:
        thread = scene.asked()
        ts = await scene.api.start_stream(ALICE_DM, thread.thread, "first half", None)
        external_id = f"{thread.thread}:{ts}"

        assert await scene.deliver(text("first half, second half", thread, external_id)) == external_id
        (message,) = scene.server.visible(ALICE_DM)
        assert (message.text, message.stream) == ("first half, second half", "streamed")


async def test_a_revoked_token_is_told_as_such():
    async with opened() as scene:
        scene.server.revoke()
        with pytest.raises(ChannelDown):
            await scene.deliver(text("hello"))


async def test_a_channel_that_the_app_is_not_in_says_so_in_words():
    async with opened() as scene:
        scene.server.removes_bot(ROOM)
        with pytest.raises(SendRejected, match="invite it"):
            await scene.deliver(text("hello", CHANNEL))


async def test_a_removal_takes_a_message_away_once_and_for_all():
    async with opened() as scene:
        shown = await scene.deliver(text("progress"))
        for _ in range(2):
            assert await scene.deliver(removal(shown)) == shown

        assert texts(scene) == []


async def test_a_message_that_slack_keeps_stays_and_is_no_failure(caplog):
    caplog.set_level("INFO")
    async with opened() as scene:
        shown = await scene.deliver(text("progress"))
        scene.server.refuse_next("chat.delete", "cant_delete_message")

        assert await scene.deliver(removal(shown)) == shown
    assert "slack_message_stays" in caplog.text


async def test_a_removal_of_nothing_is_refused():
    async with opened() as scene:
        with pytest.raises(SendRejected):
            await scene.deliver(removal(None))


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_RESPONSE])
async def test_what_has_one_effect_however_often_it_is_made_is_tried_again(fault):
    async with opened() as scene:
        asked = scene.server.user_says(ALICE_DM, ALICE, "done?")
        shown = await scene.deliver(text("progress"))
        scene.server.fault("reactions.add", fault)
        scene.server.fault("chat.delete", fault)
        for again in (reaction("\N{EYES}", asked), removal(shown)):
            with pytest.raises(SendLimited):
                await scene.deliver(again)
            await scene.deliver(again)

        assert texts(scene) == []
        assert scene.server.workspace.channels[ALICE_DM].messages[asked].reactions == {"eyes": ["U0BOT"]}


async def test_a_reaction_stands_on_a_message_and_its_id_says_so():
    async with opened() as scene:
        asked = scene.server.user_says(ALICE_DM, ALICE, "done?")

        assert await scene.deliver(reaction("\N{EYES}", asked)) == f"reaction/{asked}"
        with pytest.raises(SendRejected):
            await scene.deliver(reaction("\N{EYES}", None))


async def test_a_file_takes_the_place_of_a_message(tmp_path):
    (tmp_path / "a.txt").write_text("content")
    async with opened() as scene:
        shown = await scene.deliver(text("progress"))
        content = FileContent(path=str(tmp_path / "a.txt"), name="a.txt", media_type="text/plain", caption="Here")
        await scene.deliver(OutboundItem(id="t/f", address=DIRECT, content=content, external_id=shown))

        assert texts(scene) == ["Here"]
