"""Commit messages: the author's words and the host's record stay apart."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from core.memory.repository import Note, compose, decompose

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r")).map(str.strip).filter(bool)


@given(words, words)
def test_whatever_the_author_says_the_trailers_are_the_hosts(message, author):
    note = Note(message=message, trailers={"Author": author, "Run": ""}, committed_at=datetime(2026, 1, 1, tzinfo=UTC))
    told, trailers = decompose(compose(note))
    assert told == message
    assert trailers == {"Author": " ".join(author.split())}


def test_a_message_made_by_another_program_has_no_trailers():
    assert decompose("by hand\n") == ("by hand", {})
    assert decompose("subject\n\nbody text\n") == ("subject\n\nbody text", {})
