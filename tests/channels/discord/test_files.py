import os

import pytest

from channels.discord.files import opened as opened_file
from channels.discord.files import upload_name
from channels.discord.limits import UPLOAD_LIMIT_BYTES
from core.contracts.addresses import FileContent
from core.contracts.errors import SendRejected, TextTooLong
from tests.channels.discord.sending import file, opened
from tests.platforms.discord_guilds import GENERAL


@pytest.fixture
async def world():
    async with opened() as opened_world:
        yield opened_world


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "report.txt"
    path.write_bytes(b"content")
    return path


async def test_a_file_is_sent_with_its_name_type_and_caption(world, path):
    await world.deliver(file(path, caption="see *this*", name="Bericht für Zoë.txt"))
    (message,) = world.server.visible(GENERAL)
    (attachment,) = message.attachments

    assert (attachment.data, attachment.media_type) == (b"content", "text/plain")
    assert world.server.calls[0].files[0].name == "Bericht für Zoë.txt"
    assert message.text == "see \\*this\\*"


async def test_a_file_that_is_too_large_is_refused_with_the_limit_and_costs_no_request(world, path):
    os.truncate(path, UPLOAD_LIMIT_BYTES + 1)
    with pytest.raises(SendRejected, match=r"report.txt has 10.0 MiB; Discord takes 10 MiB at most"):
        await world.deliver(file(path))

    assert world.server.calls == []
    os.truncate(path, UPLOAD_LIMIT_BYTES)
    await world.deliver(file(path))
    assert world.server.visible(GENERAL)[0].attachments[0].size == UPLOAD_LIMIT_BYTES


async def test_what_discord_finds_too_large_is_refused_in_words(world, path):
    world.server.fail_next("create_message", 413, {"code": 40005, "message": "Request entity too large"})
    with pytest.raises(SendRejected, match="too large for Discord"):
        await world.deliver(file(path))


async def test_what_is_no_file_is_refused(world, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    empty = tmp_path / "empty"
    empty.touch()
    for strange, words in (
        (tmp_path / "gone", "not there"),
        (tmp_path, "no file"),
        (pipe, "no file"),
        (empty, "empty"),
    ):
        with pytest.raises(SendRejected, match=words):
            await world.deliver(file(strange, name="x"))
    with pytest.raises(SendRejected, match="cannot be read"):
        await world.deliver(file("a\0b", name="x"))

    assert world.server.calls == []


async def test_a_caption_that_is_too_long_is_told_as_text_that_is(world, path):
    with pytest.raises(TextTooLong):
        await world.deliver(file(path, caption="a" * 2001))


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("a.txt", "a.txt"),
        ("/etc/passwd", "passwd"),
        ("two\nlines .txt", "two lines .txt"),
        ("", "file"),
        ("x" * 300 + ".tar.gz", "x" * 117 + ".gz"),
        ("a\ud800b", "a\ufffdb"),
    ],
)
def test_a_name_goes_out_as_one_that_every_disk_takes(name, sent):
    assert upload_name(name) == sent


@pytest.mark.parametrize("media_type", ["", "text", "text/plain\r\nX-Evil: 1", "tëxt/plain"])
async def test_a_type_that_is_none_goes_out_as_mere_bytes(path, media_type):
    content = FileContent(path=str(path), name="a", media_type=media_type)
    async with opened_file(content) as upload:
        assert upload.media_type == "application/octet-stream"
    assert upload.content.closed
