import pytest

from channels.contract import Form, FormField
from channels.discord.forms import modal, token_of, values_of
from core.contracts.errors import SendRejected
from tests.platforms.discord_components import check_modal

REASON = FormField(name="reason", label="Why not?", lines=4, required=False)


def test_a_form_becomes_a_modal_that_discord_takes():
    form = Form(token="t" * 40, title="Deny", fields=(REASON, FormField(name="who", label="Who", value="me")))
    answer = modal(form)

    check_modal(answer["data"])
    assert answer["type"] == 9
    assert answer["data"]["custom_id"] == "f:" + "t" * 40
    reason, who = (part["component"] for part in answer["data"]["components"])
    assert (reason["style"], reason["required"], "value" in reason) == (2, False, False)
    assert (who["style"], who["required"], who["value"]) == (1, True, "me")


def test_what_is_too_long_is_cut_to_what_discord_takes():
    field = FormField(name="a", label="l" * 60, value="v\n" * 3000)
    data = modal(Form(token="t", title="T" * 60, fields=(field,)))["data"]

    check_modal(data)
    assert data["title"] == "T" * 44 + "…"
    assert data["components"][0]["label"] == "l" * 44 + "…"
    assert data["components"][0]["component"]["style"] == 2
    assert len(data["components"][0]["component"]["value"]) == 4000


@pytest.mark.parametrize(
    "form",
    [
        Form(token="t", title="a", fields=()),
        Form(token="t", title="a", fields=(REASON,) * 6),
        Form(token="t" * 99, title="a", fields=(REASON,)),
        Form(token="t", title="a", fields=(FormField(name="", label="a"),)),
    ],
)
def test_what_discord_would_not_take_is_refused(form):
    with pytest.raises(SendRejected):
        modal(form)


def test_what_was_written_comes_back_by_field_from_rows_and_labels():
    under_label = {"type": 18, "id": 1, "component": {"type": 4, "custom_id": "reason", "value": "too risky\n"}}
    in_row = {"type": 1, "components": [{"type": 4, "custom_id": "who", "value": None}]}

    assert values_of({"custom_id": "f:t", "components": [under_label, in_row]}) == (
        ("reason", "too risky\n"),
        ("who", ""),
    )


@pytest.mark.parametrize(
    "data", [{}, {"components": None}, {"components": [None, 3, {"type": 4}, {"components": "x"}]}]
)
def test_what_holds_no_texts_has_no_values(data):
    assert values_of(data) == ()


def test_a_form_is_known_by_its_mark():
    assert token_of("f:abc") == "abc"
    assert token_of("abc") is None
