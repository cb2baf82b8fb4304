import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channels.chunking import split_text
from channels.contract import TextUnit
from channels.slack.limits import RESPONSE_USES, TEXT_LIMIT_BYTES
from channels.slack.mrkdwn import encodable, is_visible
from channels.slack.outbound import preview, render_caption, render_message, render_notices
from core.contracts.addresses import Address, CardContent, FileContent, OutboundItem, TextContent
from core.contracts.errors import SendRejected, TextTooLong
from tests.channels.slack.markdown_samples import DOCUMENT, MARKDOWN, assert_safe_mrkdwn

PLACE = Address(channel="slack", account="T0TEAM", chat="C0ROOM")
THREAD = Address(channel="slack", account="T0TEAM", chat="C0ROOM", thread="1700000001.000100")


def call_of(markdown, address=PLACE, **more):
    content = TextContent(markdown=markdown)
    return render_message(OutboundItem(id="t/1", address=address, content=content, **more), content)


def bytes_of(text):
    return len(text.encode())


def split(text):
    return split_text(text, TEXT_LIMIT_BYTES, TextUnit.BYTES)


def deliver(text, limit=TEXT_LIMIT_BYTES, depth=0):
    """Return the calls for a text whose parts are halved until they fit, as the outbox does it."""
    assert depth < 20
    for part in split_text(text, limit, TextUnit.BYTES):
        try:
            yield call_of(part)
        except TextTooLong:
            yield from deliver(part, min(TEXT_LIMIT_BYTES, len(part)) // 2, depth + 1)
        except SendRejected:
            assert not is_visible(encodable(part))


def code_in(text):
    return "".join(piece[1:] for piece in text.split("```")[1::2])


def test_a_message_goes_where_its_address_says_or_where_what_it_answers_stands():
    assert call_of("a").thread is None
    assert call_of("a", THREAD).thread == "1700000001.000100"
    assert call_of("a", reply_to="1700000009.000100").thread is None
    assert call_of("a", reply_to="1700000001.000100:1700000009.000100").thread == "1700000001.000100"
    assert call_of("a").item_id == "t/1"


def test_an_edit_names_its_message_and_no_thread():
    call = call_of("a", THREAD, external_id="1700000001.000100:1700000002.000100")

    assert (call.ts, call.thread) == ("1700000002.000100", None)


@pytest.mark.parametrize("external_id", ["7", "", "file:F1", "a:1700000002.000100"])
def test_an_id_that_is_none_of_slacks_is_refused(external_id):
    with pytest.raises(SendRejected):
        call_of("a", external_id=external_id)


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [("---", "---"), ("```\n```", "\u02cb\u02cb\u02cb\n\u02cb\u02cb\u02cb"), ("#", "#"), (">", "\u200b&gt;")],
)
def test_a_text_that_would_show_nothing_is_sent_as_it_is_written(markdown, shown):
    assert call_of(markdown).text == shown


@pytest.mark.parametrize("markdown", ["", " \n", "\u200b"])
def test_a_text_of_nothing_is_refused(markdown):
    with pytest.raises(SendRejected):
        call_of(markdown)


def test_a_text_counts_as_bytes_as_it_is_shown_c14():
    assert bytes_of(call_of("a" * TEXT_LIMIT_BYTES).text) == TEXT_LIMIT_BYTES
    for longer in ("a" * 4001, "a" * (TEXT_LIMIT_BYTES + 1), "字" * 1300, "&" * 1000, "a < b " * 700):
        with pytest.raises(TextTooLong):
            call_of(longer)


@pytest.mark.parametrize(
    "text", ["a" * 4001, "\U0001f600" * 2049, "字" * 3000 + "\U0001f469\u200d\U0001f4bb", "<" * 3000, "&lt;" * 3000]
)
def test_no_part_exceeds_the_limit_or_loses_anything_c14(text):
    calls = list(deliver(text))

    shown = "".join(call.text for call in calls).replace("&lt;", "<")
    assert shown == text.replace("&lt;", "<")
    assert max(bytes_of(call.text) for call in calls) <= TEXT_LIMIT_BYTES
    assert not any("\u200d" in (call.text[0], call.text[-1]) for call in calls)


def test_every_part_of_a_cut_code_block_is_a_block_of_code_c12():
    code = "x = 'aaaaaaaaaaaaaaaaaaaa'\n" * 300
    calls = [call_of(part) for part in split(f"intro\n\n```python\n{code}```\noutro")]

    assert len(calls) > 1
    assert "".join(code_in(call.text) for call in calls) == code
    assert calls[0].text.startswith("intro\n\n```\nx = ")
    assert calls[-1].text.endswith("'\n```\n\noutro")
    for call in calls:
        assert_safe_mrkdwn(call.text)


@pytest.mark.parametrize("end", ["\n```", ""])
def test_one_endless_line_of_code_is_code_in_every_part_and_soon_c12(end):
    started = time.monotonic()
    calls = [call_of(part) for part in split("```\n" + "z" * 9000 + end)]

    assert time.monotonic() - started < 1
    assert "".join(code_in(call.text) for call in calls).replace("\n", "") == "z" * 9000


@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_a_fence_at_the_very_limit_is_in_one_piece_c12(shift):
    calls = [call_of(part) for part in split("a" * (TEXT_LIMIT_BYTES + shift - 1) + "\n```\ncode\n```\nend")]

    assert [code_in(call.text) for call in calls if "code" in call.text] == ["code\n"]
    assert "".join(call.text for call in calls).count("```") == 2


def test_a_table_that_grows_is_split_until_it_fits_and_is_one_in_every_part():
    rows = [f"|row {number}|b\n" for number in range(400)]
    calls = list(deliver(f"| {'h' * 30} | x |\n|---|---|\n{''.join(rows)}"))

    assert len(calls) > 4
    assert all(call.text.startswith("```\n" + "h" * 30 + " | x\n") for call in calls)
    assert [line for call in calls for line in call.text.splitlines() if line.startswith("row ")] == [
        f"row {number}".ljust(30) + " | b" for number in range(400)
    ]


@given(MARKDOWN, st.integers(1, 8))
@settings(max_examples=60, deadline=None)
def test_any_answer_is_delivered_within_the_limit_and_safely(text, times):
    for call in deliver((text + "\n") * times + "."):
        assert bytes_of(call.text) <= TEXT_LIMIT_BYTES
        assert_safe_mrkdwn(call.text)


@given(MARKDOWN, st.integers(1, 30), st.floats(0, 1))
@settings(max_examples=80, deadline=None)
def test_any_beginning_of_any_answer_has_a_preview_within_the_limit(text, times, share):
    whole = text * times
    call = preview(THREAD, whole[: int(len(whole) * share)], None)

    assert bytes_of(call.text) <= TEXT_LIMIT_BYTES
    assert_safe_mrkdwn(call.text)


def test_every_beginning_of_an_answer_has_a_preview():
    for end in range(1, len(DOCUMENT) + 1):
        assert preview(THREAD, DOCUMENT[:end], None).text.strip()


def test_a_preview_shows_open_code_as_code_and_an_open_bold_as_it_is():
    assert preview(PLACE, "a\n```py\nx = 1\ny", None).text == "a\n\n```\nx = 1\ny\n```"
    assert preview(PLACE, "a **bo", None).text == "a *\u200b*\u200bbo"


def test_the_preview_of_a_long_text_is_what_its_first_part_will_be():
    for words, mark in ((300, "\n…"), (650, "…")):
        text = "word " * words + "\n\n```python\n" + "x = 1\n" * 500 + "```\n"
        call = preview(PLACE, text, None)

        assert call.text == call_of(split(text)[0]).text + mark
        assert_safe_mrkdwn(call.text)


def test_a_preview_that_grows_when_it_is_drawn_shows_its_beginning():
    call = preview(PLACE, f"| {'h' * 30} | x |\n|---|---|\n" + "|a|b\n" * 300, None)

    assert call.text.endswith("```\n…")
    assert bytes_of(call.text) > TEXT_LIMIT_BYTES // 2


def test_a_caption_is_plain_and_one_that_is_too_long_becomes_a_text_of_its_own():
    def caption(text):
        return render_caption(FileContent(path="/x", name="x", media_type="text/plain", caption=text))

    assert caption("*a* <!here>") == "*\u200ba*\u200b &lt;!here&gt;"
    assert caption("") == caption(" ") == ""
    with pytest.raises(TextTooLong):
        caption("&" * 1000)


def test_a_card_is_drawn_in_blocks_beside_what_notifications_say():
    content = CardContent(text="Run <this>?", code="ls")
    call = render_message(OutboundItem(id="t/c", address=PLACE, content=content), content)

    assert call.text == "Run &lt;this&gt;?\nls"
    assert [block["type"] for block in call.blocks] == ["section", "section"]


def test_the_answer_to_a_command_takes_as_many_messages_as_slack_allows_and_says_if_there_is_more():
    assert render_notices("**a**") == ("*a*",)
    assert render_notices("") == ()
    some = render_notices("word " * 2000)
    many = render_notices("word & " * 9000)

    assert len(some) == 3
    assert len(many) == RESPONSE_USES
    assert "cut" in many[-1]
    assert all(bytes_of(text) <= TEXT_LIMIT_BYTES for text in (*some, *many))


def test_what_shows_nothing_and_is_sent_as_it_is_written_mentions_nobody_c17():
    hidden = '[a]: https://example.org "<!channel>"'

    for shown in (call_of(hidden).text, preview(PLACE, hidden, None).text, *render_notices(hidden)):
        assert "&lt;!channel&gt;" in shown
        assert_safe_mrkdwn(shown)
