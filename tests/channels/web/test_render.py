import html
import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest

from channels.web.render import PressForm, message, notice, preview, removed, said, verbatim
from core.contracts.addresses import (
    Button,
    ButtonStyle,
    CardContent,
    FileContent,
    ReactionContent,
    Removal,
    TextContent,
)

FORM = PressForm(action="/chat/main/press", csrf="proof")
NASTY = "\"><script>alert('x')</script><img src=x onerror=alert(1)>"


class Elements(HTMLParser):
    """Collects what a browser would make elements and attributes of."""

    def __init__(self):
        super().__init__()
        self.tags = set()
        self.attribute_names = set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attribute_names |= {name for name, _ in attrs}


def card(**changes):
    rows = ((Button(token="t1", label="Approve", style=ButtonStyle.GOOD), Button(token="t2", label="Deny")),)
    return CardContent(**({"text": "May I?", "code": "ls", "rows": rows} | changes))


def text_of(fragment):
    return html.unescape(re.sub(r"<[^>]*>", "", fragment))


@pytest.mark.parametrize(
    "fragment",
    [
        said(NASTY, NASTY, NASTY),
        preview(NASTY, NASTY),
        notice(NASTY),
        verbatim(NASTY),
        message(NASTY, TextContent(markdown=NASTY), FORM),
        message(NASTY, FileContent(path=NASTY, name=NASTY, media_type=NASTY, caption=NASTY), FORM),
        message(NASTY, ReactionContent(emoji=NASTY), FORM),
        removed(NASTY),
        message(
            NASTY,
            card(text=NASTY, code=NASTY, rows=((Button(token=NASTY, label=NASTY),),)),
            PressForm(action=NASTY, csrf=NASTY),
        ),
    ],
)
def test_nothing_that_is_shown_can_become_markup(fragment):
    reader = Elements()
    reader.feed(fragment)
    assert reader.tags.isdisjoint({"script", "img"})
    assert not any(name.startswith("on") for name in reader.attribute_names)


def test_what_a_person_said_is_shown_exactly_and_not_as_markdown():
    fragment = said("k1", "Ada", "**not bold**\n  <b>")
    assert 'data-id="k1"' in fragment
    assert '<div class="bubble">**not bold**\n  &lt;b&gt;</div>' in fragment


def test_a_preview_has_the_id_of_its_answer_and_is_kept_from_screen_readers():
    shown = preview("m1", "half an **ans")
    assert 'data-id="m1"' in shown
    assert 'aria-live="off"' in shown
    assert 'data-id="m1"' in message("m1", TextContent(markdown="whole"), FORM)


def test_a_card_shows_the_whole_code_and_posts_its_buttons():
    code = "echo '<b>' && " + "x" * 50_000 + "\n\ttail"
    fragment = message("card-1", card(code=code), FORM)
    assert code in text_of(fragment)
    assert '<form class="press" method="post" action="/chat/main/press">' in fragment
    assert '<input type="hidden" name="csrf" value="proof">' in fragment
    assert '<input type="hidden" name="card" value="card-1">' in fragment
    assert '<button class="good" name="token" value="t1">Approve</button>' in fragment
    assert '<button class="" name="token" value="t2">Deny</button>' in fragment


def test_no_button_opens_a_form_of_the_platforms_on_the_page():
    form = Button(token="e", label="Edit…", opens_form=True)
    fragment = message("card-1", card(rows=((*card().rows[0], form), (form,))), FORM)
    assert fragment == message("card-1", card(), FORM)
    assert "Edit…" not in fragment


def test_a_settled_card_has_no_form():
    fragment = message("card-1", card(rows=()), FORM)
    assert "<form" not in fragment
    assert "<button" not in fragment
    assert 'class="card settled"' in fragment


def test_a_silent_card_is_a_quiet_line():
    assert 'class="card quiet"' in message("card-1", card(silent=True), FORM)


@pytest.mark.parametrize("char", ["\u202e", "\u2066", "\u200b", "\u00a0", "\r", "\x1b", "\u2028", "\ufeff"])
def test_characters_that_would_hide_or_reorder_a_command_are_shown_by_number(char):
    shown = verbatim(f"rm {char}x")
    assert char not in shown
    assert f'<span class="codepoint">U+{ord(char):04X}</span>x' in shown


def test_tabs_newlines_and_letters_of_any_script_stay_as_they_are():
    code = "if x:\n\tprint('Grüße, мир, 世界 🎉')"
    assert text_of(verbatim(code)) == code


def test_a_time_is_given_for_machines_and_people():
    at = datetime(2026, 1, 1, 12, 5, tzinfo=UTC)
    assert '<time datetime="2026-01-01T12:05:00+00:00">12:05 UTC</time>' in said("k", "Ada", "hi", at=at)


def test_a_file_is_shown_by_its_name_and_caption_and_its_path_is_not():
    file = FileContent(path="/home/a/secret/x.pdf", name="x.pdf", media_type="application/pdf", caption="for you")
    drawn = message("m1", file, FORM)

    assert "x.pdf" in text_of(drawn)
    assert "for you" in text_of(drawn)
    assert "secret" not in drawn


def test_what_was_removed_replaces_its_message_by_nothing_that_shows():
    assert message("m1", Removal(), FORM) == removed("m1")
    assert text_of(removed("m1")) == ""
    assert 'data-id="m1"' in removed("m1")
