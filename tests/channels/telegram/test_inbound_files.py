import pytest

from channels.telegram.inbound_files import attachments, in_words, unsupported
from channels.telegram.inbound_json import MalformedUpdate
from core.contracts.addresses import Attachment

SMALL = {"file_id": "small", "width": 90, "height": 60}
LARGE = {"file_id": "large", "width": 900, "height": 600, "file_size": 5}


@pytest.mark.parametrize("sizes", [[SMALL, LARGE], [LARGE, SMALL]])
def test_a_photo_is_its_largest_size(sizes):
    assert attachments({"photo": sizes}) == (
        Attachment(handle="large", name="photo.jpg", media_type="image/jpeg", size_bytes=5),
    )


@pytest.mark.parametrize(
    ("kind", "name", "media_type", "words"),
    [
        ("document", "file", "application/octet-stream", "a file"),
        ("voice", "voice.ogg", "audio/ogg", "a voice message"),
        ("audio", "audio", "audio/mpeg", "an audio file"),
        ("video", "video.mp4", "video/mp4", "a video"),
        ("video_note", "video.mp4", "video/mp4", "a video message"),
        ("animation", "animation.mp4", "video/mp4", "an animation"),
    ],
)
def test_every_kind_of_file_has_a_name_and_a_type(kind, name, media_type, words):
    bare = {kind: {"file_id": "f"}}
    named = {kind: {"file_id": "f", "file_name": "plan.pdf", "mime_type": "application/pdf", "file_size": 9}}

    assert attachments(bare) == (Attachment(handle="f", name=name, media_type=media_type),)
    assert attachments(named) == (Attachment(handle="f", name="plan.pdf", media_type="application/pdf", size_bytes=9),)
    assert (in_words(bare), in_words(named)) == (words, f"{words}, plan.pdf")


def test_an_animation_that_comes_as_a_document_too_is_one_file():
    twice = {"animation": {"file_id": "a"}, "document": {"file_id": "a"}}

    assert [file.name for file in attachments(twice)] == ["animation.mp4"]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\tmp\\x.txt", "x.txt"),
        ("a\nb\x00.txt", "a b\ufffd.txt"),
        ("a/..", "file"),
        ("/", "file"),
        (7, "file"),
    ],
)
def test_a_files_name_is_one_line_without_folders(given, name):
    (file,) = attachments({"document": {"file_id": "d", "file_name": given}})

    assert file.name == name


def test_a_long_name_keeps_its_end():
    (file,) = attachments({"document": {"file_id": "d", "file_name": "n" * 400 + ".tar.gz"}})

    assert len(file.name) <= 128
    assert file.name.endswith(".tar.gz")


@pytest.mark.parametrize("size", [-1, "9", 9.5])
def test_a_size_that_is_none_is_not_known(size):
    (file,) = attachments({"voice": {"file_id": "v", "file_size": size}})

    assert file.size_bytes is None


def test_a_file_without_an_id_is_malformed():
    with pytest.raises(MalformedUpdate):
        attachments({"document": {}})


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("sticker", "a sticker"),
        ("poll", "a poll"),
        ("location", "a location"),
        ("contact", "a contact"),
        ("dice", "a dice roll"),
        ("story", "a story"),
        ("paid_media", "paid media"),
        ("game", "a game"),
        ("invoice", "an invoice"),
    ],
)
def test_what_cannot_be_taken_in_is_named(kind, words):
    assert unsupported({kind: {}}) == words
    assert in_words({kind: {}}) == words
    assert attachments({kind: {}}) == ()


def test_a_place_is_more_than_its_location():
    assert unsupported({"location": {}, "venue": {}}) == "a place"


def test_a_message_of_text_is_nothing_else():
    assert (unsupported({"text": "a"}), in_words({"text": "a"}), in_words({"photo": []})) == ("", "", "a photo")
