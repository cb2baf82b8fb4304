import pytest

from channels.discord.handles import FileHandle, read_handle


def test_a_handle_is_read_as_it_was_written():
    handle = FileHandle(channel="1", message="2", attachment="3", url="https://cdn.example/a b?ex=1&is=2")

    assert read_handle(str(handle)) == handle


@pytest.mark.parametrize("handle", ["", "1/2 https://x", "a/2/3 https://x", "1/2/3/4 x"])
def test_what_is_none_of_ours_is_not_read(handle):
    assert read_handle(handle) is None
