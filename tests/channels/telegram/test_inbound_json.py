import json

import pytest

from channels.telegram.inbound_json import MalformedUpdate, clean, field, id_of, instant, label, part, parts


def test_text_that_is_no_valid_unicode_is_made_valid():
    raw = json.loads(r'"a\ud800b\u0000c"')

    assert clean(raw) == "a\ufffdb\ufffdc"
    assert clean(raw).encode()


def test_a_label_is_one_short_line():
    assert label(" two\n lines\x00 ") == "two lines\ufffd"
    assert len(label("n" * 500)) == 128
    assert label(5) == ""


def test_what_has_to_be_there_is_demanded_and_trimmings_are_not():
    source = {"chat": {"id": 1}, "from": "Alice", "photo": [{"file_id": "p"}, 5]}

    assert field(source, "chat", dict) == {"id": 1}
    assert part(source, "from") == {}
    assert part(source, "quote") == {}
    assert parts(source, "photo") == ({"file_id": "p"},)
    assert parts(source, "chat") == ()
    with pytest.raises(MalformedUpdate):
        field(source, "from", dict)


@pytest.mark.parametrize("value", [None, "7", 7.0, True, 1 << 63, -(1 << 63) - 1])
def test_an_id_is_a_number_that_every_store_can_hold(value):
    with pytest.raises(MalformedUpdate):
        id_of({"id": value}, "id")
    assert id_of({"id": -(1 << 63)}, "id") == -(1 << 63)


@pytest.mark.parametrize("value", [None, "soon", 10**18])
def test_a_time_that_is_none_is_malformed(value):
    with pytest.raises(MalformedUpdate):
        instant({"date": value})
