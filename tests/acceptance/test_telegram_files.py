"""Files, reactions and edits on Telegram with the real host: what people see, and what the model is told."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
import pytest_asyncio

from tests.acceptance.processes import OWNER
from tests.acceptance.telegram_talk import WAIT, new_part, talking, user_texts
from tests.platforms.model_script import Answer, Call
from tests.platforms.telegram_faults import Fault

pytestmark = pytest.mark.asyncio(loop_scope="module")

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 64


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def talk(tmp_path_factory):
    async with talking(tmp_path_factory.mktemp("files"), more='direct_messages = "open"') as running:
        yield running


def sends(talk, person, data, *, caption="", extra=None, **described):
    """Send a file, described as `Files.keep` takes it, and return the message's id."""
    file = talk.telegram.files.keep(data, **described)
    chat = talk.telegram.open_chat(person)
    message = talk.telegram.chats.add(chat, text=caption, from_bot=False, file=file)
    sender = {"id": person, "is_bot": False, "first_name": f"User {person}"}
    talk.telegram.push_update({"message": talk.telegram.chats.as_json(chat, message, sender) | (extra or {})})
    return message.id


def paths_in(body):
    """Return the paths of files that the newest part of a request names."""
    return [Path(found) for found in re.findall(r"bytes\): (\S+)", new_part(body))]


async def test_a_document_is_named_to_the_model_whose_tools_read_it(talk):
    def reads(body):
        path = str(paths_in(body)[0])
        copy = Call("c2", "shell", json.dumps({"command": f"cat {path} > copy.txt"}))
        return Answer(calls=[Call("c1", "read", json.dumps({"path": path})), copy])

    talk.mind.on("see my plan", reads, Answer(text="I read it."))
    sends(talk, OWNER, b"the word is teal\n", caption="see my plan", name="../plan $(x).txt", media_type="text/plain")
    card = await talk.said("May I run")
    talk.telegram.press(OWNER, card.id, card.buttons["Approve"])
    await talk.said("I read it.")
    named, read = talk.mind.asked("see my plan")
    (path,) = paths_in(named)
    assert "the word is teal" in new_part(read)
    assert (talk.place.workspace / "copy.txt").read_bytes() == path.read_bytes() == b"the word is teal\n"
    assert path.parent.parent == talk.place.data / "attachments"
    assert not set(path.name) & set("$()/ ")


async def test_a_voice_message_without_words_is_a_file_with_a_turn(talk):
    sends(talk, 502, b"OggS" + b"\x00" * 9, kind="voice", media_type="audio/ogg")
    await talk.said("I heard: [voice.ogg]", 502)
    (body,) = talk.mind.asked("[voice.ogg]")
    assert paths_in(body)[0].read_bytes() == b"OggS" + b"\x00" * 9


async def test_an_album_is_one_turn_with_its_caption_once_and_neither_words_nor_a_late_part_join_it(talk):
    """C10 with its variants."""
    album = {"extra": {"media_group_id": "mg1"}, "kind": "photo"}
    sends(talk, 503, PNG + b"1", caption="which is sharpest?", **album)
    sends(talk, 503, PNG + b"2", **album)
    talk.telegram.user_says(503, "hurry")
    sends(talk, 503, PNG + b"3", **album)
    await talk.said("I heard: hurry", 503)
    (body,) = talk.mind.asked("photo.jpg")
    assert [path.read_bytes()[-1:] for path in paths_in(body)] == [b"1", b"2", b"3"]
    assert user_texts(body) == ["which is sharpest?", "[photo.jpg]", "[photo.jpg]"]
    (alone,) = talk.mind.asked("hurry")
    assert user_texts(alone)[-1] == "hurry"
    sends(talk, 503, PNG + b"4", **album)
    await talk.telegram.wait_for(lambda: len(talk.mind.asked("photo.jpg")) == 2, timeout=WAIT)
    late = talk.mind.asked("photo.jpg")[1]
    assert "belongs to the album before" in new_part(late)
    assert [path.read_bytes()[-1:] for path in paths_in(late)] == [b"4"]


async def test_a_sticker_is_refused_in_words(talk):
    chat = talk.telegram.open_chat(504)
    message = talk.telegram.chats.add(chat, text="", from_bot=False)
    shown = talk.telegram.chats.as_json(chat, message, {"id": 504, "is_bot": False, "first_name": "User"})
    del shown["text"]
    sticker = {"file_id": "s1", "file_unique_id": "us1", "width": 9, "height": 9, "type": "regular"}
    talk.telegram.push_update({"message": shown | {"sticker": sticker}})
    await talk.said("I cannot take a sticker.", 504)
    assert talk.mind.asked("sticker") == []


@pytest.mark.parametrize(
    ("person", "size", "why"), [(505, 30_000_000, "it is larger than 20 MB"), (506, None, "a web page came")]
)
async def test_a_file_that_cannot_be_taken_is_refused_to_its_sender_and_told_to_the_model(talk, person, size, why):
    """C07: a sign-in page is not taken for the file."""
    if size is None:
        talk.telegram.fault("download", Fault.SIGN_IN_PAGE)
    sends(talk, person, PNG, caption=f"look {person}", name="big.png", media_type="image/png", size=size)
    refusal = await talk.said("I could not take:", person)
    assert why in refusal.text
    await talk.said(f"I heard: look {person}", person)
    (body,) = talk.mind.asked(f"look {person}")
    assert "which was not taken" in new_part(body)
    assert why in new_part(body)
    assert "Sign in" not in str(body["messages"])


async def test_the_agent_sends_a_file_and_reacts_and_hears_of_a_reaction(talk):
    (talk.place.workspace / "made.txt").write_text("made by the agent")
    send = Call("c1", "send_file", '{"path": "made.txt", "caption": "here"}')
    talk.mind.on("make one", Answer(calls=[send, Call("c2", "react", '{"emoji": "👍"}')]), Answer(text="Sent."))
    asked = talk.telegram.user_says(507, "make one")
    answer = await talk.said("Sent.", 507)
    sent = await talk.said("here", 507)
    assert (sent.file.name, sent.file.data) == ("made.txt", b"made by the agent")
    message = talk.telegram.chats.by_id[507].messages[asked]
    await talk.telegram.wait_for(lambda: message.reactions == ["👍"], timeout=WAIT)
    reaction = {"message_id": answer.id, "user": {"id": 507, "is_bot": False, "first_name": "User 507"}, "date": 1}
    change = {"old_reaction": [], "new_reaction": [{"type": "emoji", "emoji": "🔥"}]}
    talk.telegram.push_update({"message_reaction": {"chat": {"id": 507, "type": "private"}, **reaction, **change}})
    talk.telegram.user_says(507, "did you see?")
    await talk.said("I heard: did you see?", 507)
    told = new_part(talk.mind.asked("did you see?")[0])
    assert "reacted with 🔥 to your message:\n> Sent." in told


async def test_an_edit_replaces_what_waits_and_answers_nothing_twice(talk):
    """C05 B on Telegram: what was answered stays so; the next turn is told of the change."""
    release = asyncio.Event()
    talk.mind.on("work a while", Answer(text=["", "Done."], gates={1: release}))
    first = talk.telegram.user_says(508, "work a while")
    await talk.telegram.wait_for(lambda: talk.mind.asked("work a while"), timeout=WAIT)
    waits = talk.telegram.user_says(508, "wrong words")
    talk.telegram.user_edits(508, waits, "right words")
    talk.telegram.user_says(508, "/status")
    assert "1 queued" in (await talk.said("queued", 508)).text
    release.set()
    await talk.said("I heard: right words", 508)
    talk.telegram.user_edits(508, first, "work for ever")
    talk.telegram.user_says(508, "and now?")
    await talk.said("I heard: and now?", 508)
    assert talk.mind.asked("wrong words") == talk.mind.asked("work for ever") == []
    told = new_part(talk.mind.asked("and now?")[0])
    assert "It was:\n> work a while\nIt is now:\n> work for ever" in told
    assert len(talk.telegram.visible(508)) == 4
