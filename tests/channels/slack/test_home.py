from hypothesis import given, settings
from hypothesis import strategies as st

from channels.contract import HomeSection
from channels.slack.home import draw_home
from core.contracts.addresses import Button, CardContent
from tests.channels.slack.markdown_samples import MARKDOWN, MENTIONS, assert_no_mention
from tests.channels.slack.sending import opened
from tests.platforms.slack_blocks import checked_view
from tests.platforms.slack_workspace import ALICE

CARD = CardContent(text="Run this?", code="ls", rows=((Button(token="allow", label="Allow"),),))


def types(view):
    return [block["type"] for block in view["blocks"]]


def test_a_section_is_a_heading_a_text_and_its_cards():
    view = draw_home(
        (HomeSection(title="Approvals", text="**One** waits.", cards=(CARD,)), HomeSection(title="Memory"))
    )

    assert types(view) == ["header", "section", "section", "section", "actions", "divider", "header"]
    assert view["blocks"][1]["text"]["text"] == "*One* waits."


def test_a_screen_of_nothing_is_one():
    assert draw_home(()) == {"type": "home", "blocks": []}
    assert types(draw_home((HomeSection(title="", cards=(CardContent(text=""),)),))) == []


def test_a_text_that_grows_when_it_is_drawn_takes_several_blocks():
    view = checked_view(draw_home((HomeSection(title="Memory", text="&" * 1900),)), "home")

    assert types(view) == ["header"] + ["section"] * 4
    assert "".join(block["text"]["text"] for block in view["blocks"][1:]) == "&amp;" * 1900


def test_what_is_too_much_is_left_out_whole_and_with_a_mark():
    view = checked_view(draw_home((HomeSection(title="Approvals", cards=(CARD,) * 60),)), "home")

    assert len(view["blocks"]) == 98
    assert types(view)[-2:] == ["actions", "context"]
    assert "more" in view["blocks"][-1]["elements"][0]["text"]


def test_exactly_as_much_as_fits_is_shown_without_a_mark():
    one_block = CardContent(text="Settled")
    view = draw_home((HomeSection(title="Done", cards=(one_block,) * 98),))

    assert types(view) == ["header"] + ["section"] * 98


def test_a_home_mentions_nobody_c17():
    assert_no_mention(draw_home((HomeSection(title=MENTIONS, text=MENTIONS, cards=(CardContent(text=MENTIONS),)),)))


@given(st.lists(st.tuples(MARKDOWN, st.integers(1, 20)), max_size=6))
@settings(max_examples=40, deadline=None)
def test_any_home_is_within_the_limits(parts):
    sections = tuple(HomeSection(title=text[:200], text=text * times, cards=(CARD,) * times) for text, times in parts)
    view = draw_home(sections)

    checked_view(view, "home")
    assert_no_mention(view)


async def test_a_home_is_drawn_for_a_person_and_its_buttons_carry_their_tokens():
    async with opened() as scene:
        await scene.api.publish_view(ALICE, draw_home((HomeSection(title="Approvals", cards=(CARD,)),)))
        pressed = scene.server.presses_in_view(ALICE, "Allow")

        assert pressed.payload["actions"][0]["value"] == "allow"
        assert scene.server.views.homes[ALICE].blocks[0]["text"]["text"] == "Approvals"
