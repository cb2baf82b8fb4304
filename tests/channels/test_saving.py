"""Files on their way to the disk."""

from __future__ import annotations

import io
from datetime import timedelta

import pytest

from channels.saving import check_answer, check_whole, is_page_type, may_be_page, new_file, save
from core.contracts.addresses import Attachment
from core.contracts.clock import FakeClock
from core.contracts.errors import DownloadFailed, DownloadRefused

LIMIT = 1_000_000
PDF = Attachment(handle="f1", name="plan.pdf", media_type="application/pdf")
PAGE = Attachment(handle="f2", name="index.html", media_type="text/plain")


async def pieces(*parts: bytes):
    for part in parts:
        yield part


async def saved(*parts: bytes, attachment: Attachment = PDF, limit_bytes: int = LIMIT) -> bytes:
    file = io.BytesIO()
    size = await save(
        pieces(*parts),
        file,
        attachment,
        limit_bytes=limit_bytes,
        clock=FakeClock(),
        patience=timedelta(minutes=5),
        sign_in_page="a sign-in page",
    )
    assert size == len(file.getvalue())
    return file.getvalue()


async def test_what_comes_is_written_in_its_order():
    assert await saved(b"one ", b"two") == b"one two"


async def test_more_than_the_limit_is_refused_while_it_comes():
    with pytest.raises(DownloadRefused, match="larger than 6e-06 MB"):
        await saved(b"1234", b"5678", limit_bytes=6)


@pytest.mark.parametrize("start", [b"<!DOCTYPE html><title>Sign in", b"\xef\xbb\xbf \n<HTML>", b"<ht"])
async def test_a_web_page_in_the_place_of_a_file_is_refused_and_one_that_was_sent_is_not(start):
    rest = b"ml>" if start == b"<ht" else b""
    with pytest.raises(DownloadRefused, match="a sign-in page"):
        await saved(start, rest)
    assert await saved(start, rest, attachment=PAGE) == start + rest


async def test_what_comes_too_slowly_is_given_up():
    clock = FakeClock()

    async def slow():
        yield b"a"
        await clock.advance(timedelta(seconds=11))
        yield b"b"

    with pytest.raises(DownloadFailed, match="too slowly"):
        await save(
            slow(),
            io.BytesIO(),
            PDF,
            limit_bytes=LIMIT,
            clock=clock,
            patience=timedelta(seconds=10),
            sign_in_page="",
        )


async def test_a_file_has_its_name_when_it_is_whole_and_is_gone_when_not(tmp_path):
    async with new_file(tmp_path / "a.bin") as file:
        file.write(b"data")
        assert not (tmp_path / "a.bin").exists()
    with pytest.raises(DownloadFailed):
        async with new_file(tmp_path / "b.bin"):
            raise DownloadFailed("cut")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.bin", b"data")]


async def test_a_link_that_lies_in_the_way_is_not_followed(tmp_path):
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "a.bin.part").symlink_to(tmp_path / "precious")
    async with new_file(tmp_path / "a.bin") as file:
        file.write(b"data")
    assert (tmp_path / "precious").read_bytes() == b"precious"


@pytest.mark.parametrize(
    ("status", "headers", "error"),
    [
        (429, {}, DownloadFailed),
        (503, {}, DownloadFailed),
        (302, {}, DownloadRefused),
        (404, {}, DownloadRefused),
        (200, {"content-encoding": "gzip"}, DownloadFailed),
        (200, {"content-length": str(LIMIT + 1)}, DownloadRefused),
    ],
)
def test_an_answer_without_the_file_says_whether_to_try_again(status, headers, error):
    with pytest.raises(error):
        check_answer(status, headers, LIMIT, platform="Slack")


def test_an_answer_with_the_file_is_taken():
    check_answer(200, {"content-length": str(LIMIT)}, LIMIT, platform="Slack")
    check_answer(200, {"content-length": "unknown"}, LIMIT, platform="Slack")


def test_less_than_was_told_is_not_the_file():
    check_whole(5, 5)
    check_whole(5, None)
    with pytest.raises(DownloadFailed, match="only 4 of 5 bytes"):
        check_whole(4, 5)


def test_pages_are_known_by_type_and_by_name():
    assert is_page_type("text/HTML; charset=utf-8")
    assert not is_page_type("text/plain")
    assert may_be_page(PAGE)
    assert not may_be_page(PDF)
