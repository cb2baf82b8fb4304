"""Decoding, cleaning and cutting of text."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.tools.output import ByteDecoder, clamp, clean_text, looks_binary

anything = st.text(st.characters(codec=None, categories=None)) | st.text()
with_surrogates = st.text(st.characters() | st.characters(min_codepoint=0xD800, max_codepoint=0xDFFF))


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"W\x00s\x00l\x00", "Wsl"),
        (b"\xff\xfeh\x00i\x00", "hi"),
        (b"\xfe\xff\x00h\x00i", "hi"),
        ("a\0b", "ab"),
        (b"a\x00b\x00c", "abc"),
        (json.loads('"bad \\ud83d end"'), "bad � end"),
        ("\ud83c\udf78", "\U0001f378"),
        (json.loads('"\\ud83c\\udf78"'), "\U0001f378"),
        ("\u2028", "\u2028"),
        ("\ufffe", "\ufffe"),
        (b"\xff\xfe", "��"),
        (b"a\xff\xfeb", "a��b"),
        ("\u200fright\u202e", "\u200fright\u202e"),
        (b"\xef\xbb\xbfmark", "mark"),
        (b"\x00" * 9_000, ""),
        (b"", ""),
    ],
)
def test_text_that_databases_and_providers_refuse_is_made_acceptable_c80(raw, expected):
    assert clean_text(raw) == expected


@given(with_surrogates | anything)
def test_cleaned_text_can_be_encoded_and_holds_no_nul_c80(text):
    cleaned = clean_text(text)
    cleaned.encode()
    assert "\0" not in cleaned
    assert clean_text(cleaned) == cleaned


@given(st.binary(max_size=300))
@example(b"\xff\xfe\xd8\xd8")
@example(b"a\x00b\x00\x00\xd8")
def test_any_bytes_become_text_that_can_be_encoded_c67_c80(data):
    clean_text(data).encode()


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",))))
def test_sound_text_is_left_as_it_is(text):
    assert clean_text(text) == text


@given(st.text(st.characters(exclude_characters="\0\ufeff", exclude_categories=("Cs",))), st.data())
def test_bytes_in_pieces_decode_like_bytes_at_once(text, data):
    raw = text.encode()
    cut = data.draw(st.integers(min_value=0, max_value=len(raw)))
    decoder = ByteDecoder()
    assert decoder.feed(raw[:cut]) + decoder.feed(raw[cut:], final=True) == text


@given(st.text(max_size=500), st.integers(min_value=0, max_value=400), st.text(max_size=30))
def test_clamped_text_is_within_its_limit_and_whole_where_it_fits(text, limit, note):
    clamped = clamp(text, limit, note=note)
    assert len(clamped) <= limit
    assert (clamped == text) == (len(text) <= limit)


def test_clamped_text_keeps_both_ends_and_says_what_is_missing():
    clamped = clamp("a" * 500 + "b" * 500, 200, note="all of it is in X")
    assert clamped.startswith("aaa")
    assert clamped.endswith("bbb")
    shown = clamped.count("a" * 3) and clamped.split("\n")
    assert f"{1_000 - len(shown[0]) - len(shown[2])} of 1,000 characters left out; all of it is in X" in clamped


def test_a_megabyte_of_combining_marks_is_clamped_c80():
    assert len(clamp(clean_text("a" + "\u0301" * 1_000_000), 1_000)) <= 1_000


def test_a_picture_looks_binary_and_text_in_any_encoding_does_not():
    assert looks_binary(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(100))
    assert looks_binary(bytes(range(128, 256)) * 50)
    assert not looks_binary("Grüße aus Malmö".encode())
    assert not looks_binary("plain".encode("utf-16"))
    assert not looks_binary(b"Lives near Malm\xf6\n- second line\n")
    assert not looks_binary(b"")
