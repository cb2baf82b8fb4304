import pytest

from channels.contract import Form, FormField
from channels.slack.forms import FORM, INPUT, draw_form, read_memory
from core.contracts.errors import SendRejected
from tests.platforms.slack_blocks import checked_view

FORM_OF_TWO = Form(
    token="t-1",
    title="Deny",
    fields=(
        FormField(name="reason", label="Why?", lines=3),
        FormField(name="also", label="Also", value="x", required=False),
    ),
)


def test_a_form_is_a_modal_with_an_input_for_each_field():
    view = checked_view(draw_form(FORM_OF_TWO, memory="m"), "modal")
    first, second = view["blocks"]

    assert (view["title"]["text"], view["submit"]["text"], view["callback_id"]) == ("Deny", "Send", FORM)
    assert (first["block_id"], first["label"]["text"], first["optional"]) == ("reason", "Why?", False)
    assert (first["element"]["action_id"], first["element"]["multiline"]) == (INPUT, True)
    assert "initial_value" not in first["element"]
    assert (second["element"]["initial_value"], second["element"]["multiline"], second["optional"]) == (
        "x",
        False,
        True,
    )


def test_a_modal_remembers_its_token_and_why_it_was_opened():
    view = draw_form(FORM_OF_TWO, memory='{"channel": "C0ROOM"}', callback="ask_about_this")

    assert view["callback_id"] == "ask_about_this"
    assert read_memory(view["private_metadata"]) == ("t-1", '{"channel": "C0ROOM"}')


@pytest.mark.parametrize("metadata", ["", "x", "[]", "{}", '{"token": 1, "memory": "m"}', "null"])
def test_a_modal_of_somebody_else_is_none_of_ours(metadata):
    assert read_memory(metadata) is None


def test_a_text_that_does_not_fit_is_refused_and_never_cut():
    long = Form(token="t", title="Edit", fields=(FormField(name="code", label="Code", value="x" * 3001),))
    with pytest.raises(SendRejected, match="3000"):
        draw_form(long, memory="m")
    with pytest.raises(SendRejected):
        draw_form(FORM_OF_TWO, memory="m" * 3000)


def test_titles_and_labels_are_cut():
    form = Form(token="t", title="T" * 40, send_label="S" * 40, fields=(FormField(name="f", label="L" * 3000),))
    view = checked_view(draw_form(form, memory=""), "modal")

    assert view["title"]["text"] == "T" * 23 + "…"
    assert len(view["blocks"][0]["label"]["text"]) == 2000
