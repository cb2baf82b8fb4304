"""Text that can be stored and sent everywhere (C80)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.models.characters import SurrogateJoiner, clean_text


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("plain", "plain"),
        ("a\0b", "a\ufffdb"),
        ("bad \ud83d end", "bad \ufffd end"),
        ("\udf78", "\ufffd"),
        ("\ud83c\udf78", "\U0001f378"),
        ("\u2028\ufffe\u200f", "\u2028\ufffe\u200f"),
        ("\ud83d\ud83d", "\ufffd\ufffd"),
    ],
)
def test_only_what_cannot_be_stored_is_replaced(raw, clean):
    assert clean_text(raw) == clean


def test_a_pair_cut_between_two_pieces_becomes_one_character():
    joiner = SurrogateJoiner()
    assert joiner.feed("x\ud83c") == "x"
    assert joiner.feed("\udf78y") == "\U0001f378y"
    assert joiner.finish() == ""


def test_a_half_at_the_very_end_is_replaced():
    joiner = SurrogateJoiner()
    assert joiner.feed("x\ud83c") == "x"
    assert joiner.finish() == "\ufffd"


ANY_CHARACTER = st.characters() | st.characters(categories=["Cs"])


@given(st.lists(st.text(ANY_CHARACTER)))
def test_pieces_give_what_the_whole_text_gives(pieces):
    joiner = SurrogateJoiner()
    joined = "".join(joiner.feed(piece) for piece in pieces) + joiner.finish()
    assert joined == clean_text("".join(pieces))
    joined.encode()
