import pytest

from channels.slack.files import opened, share_of
from core.contracts.addresses import FileContent
from core.contracts.errors import SendRejected


def content(path, name="report.txt"):
    return FileContent(path=str(path), name=name, media_type="text/plain")


async def test_a_file_is_open_inside_the_block_alone(tmp_path):
    (tmp_path / "a").write_bytes(b"12345")
    async with opened(content(tmp_path / "a", "re\ud83dport.txt")) as file:
        assert (file.name, file.size_bytes, file.content.read()) == ("re\ufffdport.txt", 5, b"12345")

    assert file.content.closed


async def test_a_file_that_may_not_be_read_or_is_none_is_refused_in_words(tmp_path):
    (tmp_path / "empty").touch()
    for path, words in ((tmp_path / "gone", "not there"), (tmp_path, "no file"), (tmp_path / "empty", "is empty")):
        with pytest.raises(SendRejected, match=words):
            async with opened(content(path)):
                raise AssertionError


@pytest.mark.parametrize(
    ("shares", "found"),
    [
        ({"public": {"C1": [{"ts": "1.000002", "thread_ts": "1.000001"}]}}, ("1.000001", "1.000002")),
        ({"private": {"D1": [{"ts": "9.0"}], "C1": [{"ts": "1.000002"}]}}, (None, "1.000002")),
        ({"public": {"C2": [{"ts": "1.000002"}]}}, None),
        ({"public": {"C1": []}}, None),
        ({"public": {"C1": [{"thread_ts": "1.0"}, "x", {"ts": 5}]}}, None),
        ({"public": []}, None),
        ({}, None),
        (None, None),
        ("x", None),
    ],
)
def test_where_a_file_stands_is_read_from_whatever_slack_tells(shares, found):
    assert share_of({"id": "F1", "shares": shares}, "C1") == found
