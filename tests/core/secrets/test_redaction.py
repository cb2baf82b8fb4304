import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.contracts.errors import InvalidInput
from core.secrets.redaction import ValueRedactor

TOKEN = "123456789:" + "D" * 35


def test_every_occurrence_is_replaced_by_the_name():
    redactor = ValueRedactor([("telegram", TOKEN)])
    text = f"GET https://api.telegram.org/bot{TOKEN}/getUpdates and {TOKEN}"
    assert redactor.mask(text) == ("GET https://api.telegram.org/bot[secret telegram]/getUpdates and [secret telegram]")


@pytest.mark.parametrize("form", ["pa%22ss%2Fw%20rd", "pa%22ss/w%20rd", 'pa\\"ss/w rd', "pa%22ss%2fw+rd"])
def test_encoded_forms_are_replaced_too(form):
    assert ValueRedactor([("x", 'pa"ss/w rd')]).mask(f"<{form}>") == "<[secret x]>"


def test_the_longer_of_two_values_wins_and_an_overlap_leaves_nothing():
    redactor = ValueRedactor([("short", "abcdefgh"), ("long", "abcdefgh-ijkl"), ("next", "ijkl-mnop")])
    assert redactor.mask("<abcdefgh-ijkl>") == "<[secret long]>"
    assert redactor.mask("<abcdefgh-ijkl-mnop>") == "<[secret long]>"
    assert redactor.mask("<abcdefgh>") == "<[secret short]>"


def test_a_value_that_repeats_itself_leaves_no_rest():
    assert ValueRedactor([("x", "abcabcabc")]).mask("abcabcabcabc!") == "[secret x]!"


@pytest.mark.parametrize("value", ["", "brief", "7 chars"])
def test_a_short_value_is_refused_without_being_shown(value):
    with pytest.raises(InvalidInput) as caught:
        ValueRedactor().add("x", value)
    assert not value or value not in str(caught.value)


def test_a_text_without_secrets_is_returned_as_it_is():
    redactor = ValueRedactor([("x", TOKEN)])
    assert redactor.mask("nothing [secret x] $1 \\1 here") == "nothing [secret x] $1 \\1 here"
    assert ValueRedactor().mask(TOKEN) == TOKEN


def test_a_known_value_keeps_its_first_name():
    redactor = ValueRedactor([("first", TOKEN)])
    redactor.add("second", TOKEN)
    assert redactor.mask(TOKEN) == "[secret first]"


def test_a_stream_holds_back_only_a_tail_that_may_begin_a_secret():
    stream = ValueRedactor([("x", "secret-value")]).stream()
    assert stream.feed("all of this goes out at once") == "all of this goes out at once"
    assert stream.feed("... sec") == "... "
    assert stream.feed("ond") == "second"
    assert stream.feed("secret-val") == ""
    assert stream.feed("ue!") == "[secret x]!"
    assert stream.feed("se") == ""
    assert stream.finish() == "se"
    assert stream.finish() == ""


def test_a_value_added_while_a_stream_is_open_is_masked_in_it():
    redactor = ValueRedactor()
    stream = redactor.stream()
    assert stream.feed("secret") == "secret"
    redactor.add("x", "other-value")
    assert stream.feed(" other-value ") == " [secret x] "


_VALUES = st.lists(st.text(alphabet='ab%"/', min_size=8, max_size=12), min_size=1, max_size=4)
_FILLER = st.text(alphabet='ab%"/ \n', max_size=12)


@given(values=_VALUES, data=st.data())
def test_any_split_of_a_text_gives_what_masking_the_whole_gives(values, data):
    redactor = ValueRedactor([(f"n{number}", value) for number, value in enumerate(values)])
    pieces = data.draw(st.lists(st.one_of(_FILLER, st.sampled_from(values)), max_size=8))
    text = "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    stream = redactor.stream()
    shown = [stream.feed(text[start:end]) for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    shown.append(stream.finish())
    assert "".join(shown) == redactor.mask(text)
    assert not any(value in "".join(shown) for value in values)


def test_a_large_text_with_many_secrets_is_masked_whole():
    values = [(f"n{number}", f"key-{number:03d}-" + "x" * 40) for number in range(50)]
    redactor = ValueRedactor(values)
    filler = "key-0 and key-00 begin like one, " * 600
    masked = redactor.mask("".join(f"{filler}{value}" for _, value in values))
    assert len(filler) * 50 > 900_000
    assert masked == "".join(f"{filler}[secret {name}]" for name, _ in values)


def test_threads_may_add_while_others_mask():
    redactor = ValueRedactor([("first", TOKEN)])
    failures = []

    def mask_many():
        failures.extend(1 for _ in range(300) if redactor.mask(TOKEN) != "[secret first]")

    def add_many(worker):
        for number in range(50):
            redactor.add(f"{worker}-{number}", f"value-{worker}-{number}")

    threads = [threading.Thread(target=mask_many)] + [threading.Thread(target=add_many, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert failures == []
    added = [f"value-{worker}-{number}" for worker in range(3) for number in range(50)]
    assert not any(value in redactor.mask(value) for value in added)
