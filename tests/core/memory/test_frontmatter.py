"""What is written reads back equal; what somebody placed by hand never breaks a reader."""

import os
import sys

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from core.memory.frontmatter import clean, parse, parse_text, render, too_large

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(description=TEXTS, body=TEXTS)
@example(description='Use when X. Steps: a, b - "quoted" #tag', body="")
@example(description="yes", body="---\nnot: a header\n---\n")
@example(description="2026-01-01", body="\ufeffbody")
@example(description="- item", body="a\r\nb\r\n")
@example(description="a\nb", body="\n\n")
@example(description="", body="\u2028\x85")
@example(description="x" * 5_000, body="")
@example(description="\U0001f600 emoji", body="\U0001f468\u200d\U0001f469")
@example(description="null", body="0x1f")
@example(description="a\n---\nb", body="c")
@example(description="ends in a blank ", body=" ")
def test_every_string_that_is_written_reads_back_equal(description, body):
    """C44."""
    document = parse(render({"description": description, "name": "n"}, body).encode())
    assert (document.word("description"), document.body, document.raw) == (description, body, body)
    assert document.fault == "" or body.startswith("\ufeff")


@given(TEXTS)
def test_other_yaml_readers_take_a_written_description_for_the_same_string(description):
    """C44: skills and memory are read by other programs too."""
    header = render({"description": description}, "").removeprefix("---\n").removesuffix("---\n")
    assert yaml.safe_load(header) == {"description": description}


@given(st.from_regex(r"([a-z]{1,8}: {1,3}[A-Za-z0-9][A-Za-z0-9 ,.;!?()/':-]{0,20}\n){1,4}", fullmatch=True))
def test_the_fast_path_for_plain_headers_agrees_with_the_yaml_parser(header):
    document = parse_text(f"---\n{header}---\n")
    try:
        expected = yaml.load(header, yaml.BaseLoader)
    except yaml.YAMLError:
        assert document.fault
    else:
        assert document.fields == expected


@given(st.binary(max_size=300))
@example(b"---\n" + b"[" * 5_000 + b"\n---\n")
@example(b"---\na: &a [x]\nb: *a\n---\n")
@example(b"\xff\xfeodd")
def test_no_bytes_break_the_reader_and_what_it_shows_is_valid_text(data):
    """C45."""
    document = parse(data)
    document.body.encode()
    assert "\0" not in document.body


@given(st.binary(max_size=300).filter(lambda data: not data.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf"))))
def test_the_text_of_a_file_is_its_bytes(data):
    """C45: an edit elsewhere writes bytes that are no UTF-8 back as they were."""
    assert parse(data).text.encode("utf-8", "surrogateescape") == data


@pytest.mark.parametrize(
    ("data", "body", "description", "fault"),
    [
        (b"---\ndescription: a: b\n---\nbody", "body", "a: b", "line 2"),
        (b"---\nno end", "---\nno end", "", "line 1"),
        (b"\xef\xbb\xbf---\nx: 1\n---\nbody", "body", "", ""),
        (b"---\r\ndescription: crlf\r\n---\r\nbody", "body", "crlf", ""),
        (b"---\n- list\n---\nbody", "body", "", "line 2"),
        (b"---\nx: 1\ndescription: 'open\n---\nbody", "body", "open", "line"),
        (b"---\n---\nbody", "body", "", ""),
        (b"---\ndescription: [a, b]\n---\nbody", "body", "", ""),
    ],
)
def test_a_bad_header_keeps_the_body_and_names_the_line(data, body, description, fault):
    """C44: hand-made files."""
    document = parse(data)
    assert (document.body, document.word("description")) == (body, description)
    assert document.fault.startswith(fault)
    assert bool(document.fault) == bool(fault)


def test_a_tag_in_a_header_constructs_nothing(tmp_path):
    """C44: nothing is executed."""
    target = tmp_path / "made"
    document = parse(f"---\nx: !!python/object/apply:os.mkdir ['{target}']\n---\nbody".encode())
    assert document.fields == {"x": [str(target)]}
    assert not target.exists()
    assert os.mkdir.__module__ in sys.modules


@pytest.mark.parametrize("line", ["audience: person:alice", "  audience : person:alice", '"audience": "person:alice"'])
@pytest.mark.parametrize("broken", ["description: a: b", "- list", "x: 'open"])
def test_an_unreadable_header_still_says_who_may_see_the_file(broken, line):
    document = parse(f"---\n{broken}\n{line}\n---\nsecret".encode())
    assert document.fault
    assert document.word("audience") == "person:alice"


@pytest.mark.parametrize(
    ("data", "readable", "fault"),
    [
        (b"Lives near Malm\xf6\n- second line\n", "- second line", "line 1: not UTF-8"),
        ("Malm\u00f6\n- second line\n".encode("utf-16"), "- second line", "line 1: UTF-16, not UTF-8"),
        (b"first line of several words\nsecond\0line\n", "first line", "line 2: NUL bytes"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4, "[binary file of 1,032 bytes]", "line 1"),
        (b"", "", ""),
    ],
)
def test_the_readable_part_of_odd_bytes_is_shown(data, readable, fault):
    """C45."""
    document = parse(data)
    assert readable in document.body
    assert document.fault.startswith(fault)


def test_a_huge_file_is_described_instead_of_loaded():
    """C48."""
    document = too_large(200_000_000)
    assert "200,000,000 bytes" in document.body
    assert not document.editable


def test_numbers_and_flags_are_read_from_words():
    document = parse(b"---\nlimit: 4_000\nread_only: Yes\nhidden: no\n---\n")
    assert (document.number("limit"), document.flag("read_only"), document.flag("hidden")) == (4_000, True, False)
    assert parse(b"---\nlimit: many\n---\n").number("limit") is None


@given(st.text())
def test_cleaned_text_is_utf8_without_nul(text):
    assert "\0" not in clean(text)
    clean(text).encode()
