from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channels.slack.limits import STREAM_LIMIT_CHARS, TEXT_LIMIT_BYTES
from channels.slack.streams import LiveMessage, streamable
from core.contracts.errors import ChannelDown, SendLimited, SendUnknown
from tests.channels.slack.markdown_samples import DOCUMENT, MARKDOWN, MENTIONS, assert_no_mention
from tests.channels.slack.sending import CHANNEL, DIRECT, opened
from tests.platforms.slack_faults import Fault
from tests.platforms.slack_workspace import ALICE, ALICE_DM, ROOM, TEAM


def live(scene, address):
    return LiveMessage(scene.api, scene.streams, address=address, clock=scene.clock, timing=scene.timing)


def only(scene, chat=ALICE_DM):
    (message,) = scene.server.visible(chat)
    return message


def methods(scene):
    return [call.method for call in scene.server.calls if call.method.startswith("chat.")]


async def test_a_growing_text_is_streamed_piece_by_piece():
    async with opened() as scene:
        message = live(scene, scene.asked())
        ids = [await message.show(text) for text in ("one", "one", "one **two", "one **two**")]
        await message.end()
        await message.end()

        assert len(set(ids)) == 1
        assert (only(scene).text, only(scene).stream) == ("one **two**", "streamed")
        assert methods(scene) == ["chat.startStream", "chat.appendStream", "chat.appendStream", "chat.stopStream"]


async def test_in_a_channel_it_is_streamed_for_whoever_wrote_last():
    async with opened() as scene:
        await live(scene, scene.asked(CHANNEL)).show("one")
        (call,) = scene.server.calls_of("chat.startStream")

        assert (call.params["recipient_team_id"], call.params["recipient_user_id"]) == (TEAM, ALICE)


async def test_where_nobody_is_known_or_there_is_no_thread_it_is_posted_and_edited():
    async with opened() as scene:
        unknown = replace(CHANNEL, thread=scene.server.user_says(ROOM, ALICE, "question"))
        for address in (unknown, CHANNEL, DIRECT):
            message = live(scene, address)
            await message.show("one")
            await message.show("one two")

        assert methods(scene) == ["chat.postMessage", "chat.update"] * 3
        assert [m.text for m in scene.server.visible(ROOM)] == ["one two"] * 2


@pytest.mark.parametrize(
    "word", ["channel_type_not_supported", "missing_recipient_user_id", "msg_too_long", "anything"]
)
async def test_a_stream_that_is_refused_is_a_post_and_edits(word):
    async with opened() as scene:
        message = live(scene, scene.asked())
        scene.server.refuse_next("chat.startStream", word)
        await message.show("one")
        await message.show("one two")
        await message.end()

        assert methods(scene) == ["chat.startStream", "chat.postMessage", "chat.update"]
        assert only(scene).text == "one two"


async def test_while_slack_asks_to_wait_with_streams_none_is_begun_c15():
    async with opened() as scene:
        scene.server.fault("chat.startStream", Fault.FLOODED, seconds=30)
        for number in range(2):
            await live(scene, scene.asked()).show(f"text {number}")
        await scene.pass_time(31)
        await live(scene, scene.asked()).show("text 2")

        assert methods(scene) == ["chat.startStream", "chat.postMessage", "chat.postMessage", "chat.startStream"]


async def test_a_stream_is_left_before_slack_ends_it_and_the_message_goes_on_c19():
    async with opened() as scene:
        message = live(scene, scene.asked())
        await message.show("first half ")
        await scene.pass_time(241, step=10)
        await message.show("first half and more")
        await scene.pass_time(600, step=50)
        await message.show("first half and more, second half")

        assert methods(scene) == ["chat.startStream", "chat.stopStream", "chat.update", "chat.update"]
        assert (only(scene).text, only(scene).stream) == ("first half and more, second half", "streamed")


async def test_a_stream_that_slack_ended_loses_nothing_c19():
    async with opened() as scene:
        scene.server.streams.lifetime = timedelta(minutes=1)
        message = live(scene, scene.asked())
        await message.show("first half")
        await scene.pass_time(90, step=10)
        whole = "first half " + "b" * 200 + " second half"
        await message.show(whole)
        await message.end()

        assert [call.error for call in scene.server.calls_of("chat.appendStream")] == ["message_not_in_streaming_state"]
        assert (only(scene).text, only(scene).stream) == (whole, "expired")


async def test_a_stream_that_is_said_to_be_over_and_is_not_is_ended_before_the_edit_c19():
    async with opened() as scene:
        message = live(scene, scene.asked())
        await message.show("one")
        scene.server.refuse_next("chat.appendStream", "message_not_in_streaming_state")
        await message.show("one two")

        assert [call.error for call in scene.server.calls_of("chat.update")] == ["streaming_state_conflict", ""]
        assert (only(scene).text, only(scene).stream) == ("one two", "streamed")


async def test_a_piece_that_slack_does_not_take_ends_the_stream():
    async with opened() as scene:
        message = live(scene, scene.asked())
        await message.show("one")
        scene.server.refuse_next("chat.appendStream", "msg_too_long")
        await message.show("one two")

        assert methods(scene) == ["chat.startStream", "chat.appendStream", "chat.stopStream", "chat.update"]
        assert (only(scene).text, only(scene).stream) == ("one two", "streamed")


async def test_a_text_that_fills_a_stream_goes_on_as_edits_of_the_same_message():
    async with opened() as scene:
        scene.server.streams.limit_chars = STREAM_LIMIT_CHARS
        message = live(scene, scene.asked())
        ids = {await message.show("word " * count) for count in range(1, 1500, 100)}
        await message.show("word " * 1500)

        assert len(ids) == 1
        assert only(scene).text.endswith("…")
        assert 3000 < len(only(scene).text.encode()) <= TEXT_LIMIT_BYTES
        assert {call.error for call in scene.server.calls} == {""}


async def test_a_text_that_is_long_at_once_is_no_stream():
    async with opened() as scene:
        await live(scene, scene.asked()).show("a" * (STREAM_LIMIT_CHARS + 1))

        assert methods(scene) == ["chat.postMessage"]


async def test_a_text_that_changes_is_edited():
    async with opened() as scene:
        message = live(scene, scene.asked())
        await message.show("one two")
        await message.show("one three")

        assert methods(scene) == ["chat.startStream", "chat.stopStream", "chat.update"]
        assert only(scene).text == "one three"


async def test_a_limit_of_a_stream_changes_nothing_and_the_whole_text_follows_c15():
    async with opened() as scene:
        message = live(scene, scene.asked())
        await message.show("one")
        scene.server.fault("chat.appendStream", Fault.FLOODED, seconds=5)
        with pytest.raises(SendLimited):
            await message.show("one two")
        await message.show("one two three")

        assert only(scene).text == "one two three"


@pytest.mark.parametrize("fault", [Fault.LOST_REQUEST, Fault.LOST_RESPONSE])
async def test_a_lost_piece_stands_once_in_the_end(fault):
    async with opened() as scene:
        message = live(scene, scene.asked())
        await message.show("one")
        scene.server.fault("chat.appendStream", fault)
        with pytest.raises(SendUnknown):
            await message.show("one two")
        await message.show("one two three")

        assert (only(scene).text, only(scene).stream) == ("one two three", "streamed")


async def test_a_first_post_that_was_lost_on_its_way_is_told_and_not_repeated():
    async with opened() as scene:
        scene.server.fault("chat.startStream", Fault.LOST_REQUEST)
        with pytest.raises(SendUnknown):
            await live(scene, scene.asked()).show("one")

        assert methods(scene).count("chat.startStream") == 1


async def test_a_refused_token_is_no_reason_to_post():
    async with opened() as scene:
        thread = scene.asked()
        scene.server.revoke()
        with pytest.raises(ChannelDown):
            await live(scene, thread).show("one")

        assert methods(scene) == ["chat.startStream"]


async def test_no_piece_and_no_sum_of_pieces_is_a_mention_c17():
    async with opened() as scene:
        message = live(scene, scene.asked())
        for end in range(1, len(MENTIONS) + 1):
            await message.show(MENTIONS[:end])
        pieces = [call.params["markdown_text"] for call in scene.server.calls if "markdown_text" in call.params]

    for told in (*pieces, "".join(pieces)):
        assert_no_mention(told)
        assert not {"@everyone", "@here", "@channel"} & set(told.replace(",", "").split())


async def test_only_so_many_writers_are_remembered():
    async with opened() as scene:
        first = scene.asked(CHANNEL)
        for number in range(1000):
            scene.streams.note_writer(
                type(first)(channel="slack", account=TEAM, chat=ROOM, thread=f"{number}.0"), TEAM, ALICE
            )

        assert scene.streams.recipient(first) is None


def test_every_beginning_of_an_answer_is_the_beginning_of_what_is_streamed():
    whole = streamable(DOCUMENT)
    for end in range(len(DOCUMENT) + 1):
        assert whole.startswith(streamable(DOCUMENT[:end]))
        assert_no_mention(streamable(DOCUMENT[:end]))


@given(MARKDOWN)
@settings(max_examples=200, deadline=None)
def test_any_text_is_streamed_without_mentions(text):
    assert_no_mention(streamable(text))
    assert_no_mention(streamable(text) + "!channel>")


@given(MARKDOWN, st.floats(0, 1))
@settings(max_examples=200, deadline=None)
def test_any_beginning_of_any_text_is_the_beginning_of_what_is_streamed(text, share):
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    assert streamable(whole).startswith(streamable(whole[: int(len(whole) * share)]))


def test_what_is_no_mention_stays_as_it_is():
    text = "a <https://example.org/x> <b> a@b.example &lt; # @"

    assert streamable(text).replace("\u200b", "") == text
    assert streamable("a <https://example.org/x> <b> a@b.example") == "a <https://example.org/x> <b> a@b.example"
