import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from channels.chunking import measure
from channels.contract import TextUnit
from channels.discord.cards import card_components, card_text
from channels.discord.limits import CARD_CODE_LIMIT_UTF16, TEXT_LIMIT_UTF16
from core.contracts.addresses import Button, ButtonStyle, CardContent
from core.contracts.errors import SendRejected
from tests.channels.discord.eyes import blocks_of_code, has_broken_fence, seen

TEXTS = st.text("a`*_\\|~#> -\n1.\U0001f600\u200d", max_size=300) | st.text(max_size=60)


def shown(text, code=""):
    return card_text(CardContent(text=text, code=code))


def buttons(*labels):
    return tuple(Button(token=f"t{number}", label=label) for number, label in enumerate(labels))


def test_the_text_of_a_card_means_itself_and_its_code_is_verbatim():
    drawn = shown("Run **this** #1?\n# now", "echo `x` *\nls")

    assert seen(drawn) == "Run **this** #1?\n# now\necho `x` *\nls"
    assert blocks_of_code(drawn) == ["echo `x` *\nls"]


def test_a_card_without_code_is_its_text_and_one_without_text_its_code():
    assert shown("Done.") == "Done."
    assert shown("", "ls") == "```\nls\n```"
    assert shown("") == ""


def test_a_command_that_is_too_long_is_cut_with_a_mark_that_says_so_c26():
    drawn = shown("Run?", "x" * 6000)
    (code,) = blocks_of_code(drawn)

    assert measure(drawn, TextUnit.UTF16) <= TEXT_LIMIT_UTF16
    assert code.startswith("x" * 1000)
    assert code.endswith("… (cut: 4,630 more characters)")
    assert measure(code, TextUnit.UTF16) <= CARD_CODE_LIMIT_UTF16


def test_a_command_up_to_the_limit_is_shown_whole():
    assert blocks_of_code(shown("Run?", "x" * CARD_CODE_LIMIT_UTF16)) == ["x" * CARD_CODE_LIMIT_UTF16]


def test_a_text_that_is_too_long_leaves_room_for_the_code():
    drawn = shown("*" * 5000, "y" * 5000)

    assert measure(drawn, TextUnit.UTF16) <= TEXT_LIMIT_UTF16
    assert drawn.count("more characters)") == 2
    assert len(blocks_of_code(drawn)[0]) > 900


@settings(deadline=None)
@given(TEXTS, TEXTS, st.integers(0, 40), st.integers(0, 40))
@example("`" * 300, "`" * 300, 40, 40)
@example("\\", "```", 1, 1)
def test_every_card_fits_and_has_whole_fences(text, code, times_text, times_code):
    drawn = shown(text * times_text, code * times_code)

    assert measure(drawn, TextUnit.UTF16) <= TEXT_LIMIT_UTF16
    assert not has_broken_fence(drawn)


def test_buttons_have_their_tokens_styles_and_rows():
    run = Button(token="a", label="Run", style=ButtonStyle.GOOD)
    no = Button(token="b", label="No", style=ButtonStyle.DANGER)
    rows = ((run, no), (Button(token="c", label="Why?", opens_form=True),))

    assert card_components(rows) == [
        {
            "type": 1,
            "components": [
                {"type": 2, "style": 3, "label": "Run", "custom_id": "a"},
                {"type": 2, "style": 4, "label": "No", "custom_id": "b"},
            ],
        },
        {"type": 1, "components": [{"type": 2, "style": 2, "label": "Why?", "custom_id": "c"}]},
    ]
    assert card_components(()) == []


@pytest.mark.parametrize(
    ("label", "drawn"),
    [("x" * 81, "x" * 79 + "…"), ("x" * 80, "x" * 80), ("", "…"), ("\U0001f600" * 41, "\U0001f600" * 39 + "…")],
)
def test_labels_are_cut_to_what_discord_draws_c26(label, drawn):
    assert card_components((buttons(label),))[0]["components"][0]["label"] == drawn


def test_a_row_of_too_many_buttons_becomes_several():
    rows = card_components((buttons(*"abcdefg"),))

    assert [len(row["components"]) for row in rows] == [5, 2]


def test_what_does_not_fit_at_all_is_refused_at_once_c26():
    with pytest.raises(SendRejected, match="5 rows"):
        card_components(tuple((button,) for button in buttons(*"abcdef")))
    with pytest.raises(SendRejected, match="100 characters"):
        card_components(((Button(token="x" * 101, label="a"),),))
    with pytest.raises(SendRejected, match="100 characters"):
        card_components(((Button(token="", label="a"),),))
