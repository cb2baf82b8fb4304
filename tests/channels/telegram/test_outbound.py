import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from channels.chunking import measure, split_text
from channels.contract import TextUnit
from channels.telegram.limits import CARD_CODE_LIMIT_UTF16, TEXT_LIMIT_UTF16
from channels.telegram.outbound import preview, render_message
from core.contracts.addresses import Address, Button, ButtonStyle, CardContent, OutboundItem, TextContent
from core.contracts.errors import SendRejected, TextTooLong

CHAT = Address(channel="telegram", account="900", chat="111")
TOPIC = Address(channel="telegram", account="900", chat="-1001000000001", thread="5")


def units(text):
    return measure(text, TextUnit.UTF16)


def item(content, address=CHAT, **fields):
    return OutboundItem(id="t/1", address=address, content=content, **fields)


def render(shown):
    return render_message(shown, shown.content)


def text_call(markdown, **fields):
    return render(item(TextContent(markdown=markdown), **fields))


def split(text):
    return split_text(text, TEXT_LIMIT_UTF16, TextUnit.UTF16)


def covered(call, kind):
    """Return what the entities of a kind cover."""
    raw = call.text.encode("utf-16-le")
    found = [entity for entity in call.options.get("entities", ()) if entity["type"] == kind]
    return [raw[2 * e["offset"] : 2 * (e["offset"] + e["length"])].decode("utf-16-le") for e in found]


def assert_valid(call):
    """Hold a call against what the Bot API takes: an independent reading of its rules."""
    raw = call.text.encode("utf-16-le")
    assert units(call.text) <= TEXT_LIMIT_UTF16
    assert units(call.source) <= TEXT_LIMIT_UTF16
    entities = call.options.get("entities", [])
    assert len(entities) <= 100
    opened = []
    for entity in entities:
        start, end, kind = entity["offset"], entity["offset"] + entity["length"], entity["type"]
        assert 0 <= start < end <= len(raw) // 2
        text = raw[2 * start : 2 * end].decode("utf-16-le")
        assert text == text.strip()
        opened = [(until, outer) for until, outer in opened if until > start]
        assert all(until >= end for until, _ in opened), "entities overlap"
        outer_kinds = {outer for _, outer in opened}
        assert not outer_kinds & {"pre", "code", kind}
        assert outer_kinds <= {"blockquote"} or kind not in {"pre", "code", "blockquote"}
        opened.append((end, kind))


APPROVE = ((Button(token="tok", label="Approve"),),)


def card(text="Run?", code="", rows=APPROVE, **fields):
    return CardContent(text=text, code=code, rows=rows, **fields)


def code_of(call):
    (pre,) = call.options["entities"]
    raw = call.text.encode("utf-16-le")
    return raw[pre["offset"] * 2 : (pre["offset"] + pre["length"]) * 2].decode("utf-16-le")


def test_markdown_goes_out_as_text_and_entities_without_link_previews():
    call = text_call("**a** <b> &lt; [x](y)")

    assert call.text == "a <b> < [x](y)"
    assert (call.chat_id, call.message_id) == (111, None)
    assert call.options == {
        "link_preview_options": {"is_disabled": True},
        "entities": [{"type": "bold", "offset": 0, "length": 1}],
    }


@pytest.mark.parametrize("shown", [TextContent(markdown="**a**\n```\nb\n```"), CardContent(text="**a**", code="b")])
def test_what_telegram_refuses_to_format_can_be_sent_plain(shown):
    call = render(item(shown, TOPIC, reply_to="9"))
    options = {name: value for name, value in call.options.items() if name != "entities"}

    assert call.options != options
    assert (call.plain.options, call.plain.chat_id) == (options, call.chat_id)
    assert call.plain.text == (shown.markdown if isinstance(shown, TextContent) else call.text)


def test_a_new_message_names_topic_reply_and_silence_and_an_edit_does_not():
    content = TextContent(markdown="x", silent=True)
    new = render(item(content, TOPIC, reply_to="9"))
    edit = render(item(content, TOPIC, reply_to="9", external_id="12"))

    assert new.options["message_thread_id"] == 5
    assert new.options["reply_parameters"] == {"message_id": 9, "allow_sending_without_reply": True}
    assert new.options["disable_notification"] is True
    assert edit.message_id == 12
    assert set(edit.options) == {"link_preview_options"}


def test_code_is_verbatim_with_offsets_in_utf16():
    call = render(item(card(text="\U0001f600 Run?", code="echo '\U0001f680' && ls <b>`x`")))

    assert code_of(call) == "echo '\U0001f680' && ls <b>`x`"
    assert call.options["entities"][0]["type"] == "pre"


def test_buttons_carry_their_tokens_and_a_settled_card_has_none():
    rows = (
        (Button(token="t1", label="Approve", style=ButtonStyle.GOOD), Button(token="t2", label="Deny")),
        (Button(token="t3", label="Never", style=ButtonStyle.DANGER),),
    )
    keyboard = render(item(card(rows=rows))).options["reply_markup"]["inline_keyboard"]

    assert [[button["callback_data"] for button in row] for row in keyboard] == [["t1", "t2"], ["t3"]]
    assert [button.get("style") for row in keyboard for button in row] == ["success", None, "danger"]
    assert "reply_markup" not in render(item(card(rows=()), external_id="5")).options


def test_no_button_opens_a_form_where_there_are_none():
    form = Button(token="r", label="Deny…", opens_form=True)
    shown = render(item(card(rows=((*APPROVE[0], form), (form,)))))

    assert [[button["text"] for button in row] for row in shown.options["reply_markup"]["inline_keyboard"]] == [
        ["Approve"]
    ]


def test_a_button_over_64_bytes_is_refused_before_it_is_sent_c26():
    render(item(card(rows=((Button(token="я" * 32, label="x"),),))))
    for token in ("я" * 33, "a" * 65, ""):
        with pytest.raises(SendRejected):
            render(item(card(rows=((Button(token=token, label="x"),),))))


@pytest.mark.parametrize("external_id", [None, "5"])
def test_a_long_command_is_cut_with_a_visible_mark_new_or_settled_c26(external_id):
    code = "cat <<EOF\n" + "\U0001f600 line\n" * 1000
    call = render(item(card(text="Run this?", code=code), external_id=external_id))

    assert units(call.text) <= TEXT_LIMIT_UTF16
    assert units(code_of(call)) <= CARD_CODE_LIMIT_UTF16
    kept, mark = code_of(call).rsplit("…", 1)
    assert code.startswith(kept)
    assert mark == f" (cut: {len(code.rstrip()) - len(kept):,} more characters)"


@given(
    text=st.text(max_size=50).map(lambda text: text * 120),
    code=st.text(max_size=50).map(lambda text: text * 120),
)
def test_every_card_fits_one_message_and_its_entity_lies_within(text, code):
    call = render(item(card(text=text, code=code)))

    assert units(call.text) <= TEXT_LIMIT_UTF16
    for entity in call.options.get("entities", ()):
        assert entity["offset"] + entity["length"] <= units(call.text)
        assert code_of(call).strip()


def test_a_preview_over_the_limit_shows_its_beginning_c14():
    text = "a" * 4094 + "\U0001f469\u200d\U0001f4bb and more"
    call = preview(CHAT, text, None)

    assert call.text == "a" * 4094 + "…"
    assert preview(CHAT, "a" * 4096, "7").text == "a" * 4096


C17 = (
    "notify @everyone and @here, <!channel>, <!here>, <!subteam^S0TEAM>, <@U0BOB>, <@&9300>, role <@&9301>;"
    " if a < b && b > c: see https://example.org/x?y=1&z=2"
)


def on_all_paths(text):
    """Return the calls that show `text` as preview, final, edit, late message, card and error."""
    yield preview(CHAT, text, None)
    yield preview(CHAT, text, "5")
    yield text_call(text)
    yield text_call(text, external_id="5")
    yield render(item(TextContent(markdown=text, silent=True), TOPIC))
    yield render(item(card(text=text)))


def test_mass_mentions_are_text_and_previews_are_off_on_every_path_c17():
    for call in on_all_paths(C17):
        assert call.text == C17
        assert "entities" not in call.options
        assert call.options["link_preview_options"] == {"is_disabled": True}


def test_link_and_bold_of_the_same_answer_still_render_c17():
    call = text_call(f"{C17} [docs](https://example.org/d_(1)) and **bold**")

    assert call.text == f"{C17} docs and bold"
    assert call.options["entities"] == [
        {"type": "text_link", "offset": len(C17) + 1, "length": 4, "url": "https://example.org/d_(1)"},
        {"type": "bold", "offset": len(C17) + 10, "length": 4},
    ]


@pytest.mark.parametrize(
    "text", ["\U0001f600" * 2049, "\U0001f680" * 5000, "a" * 4095 + "\U0001f469\u200d\U0001f4bb", "<" * 3000]
)
def test_no_part_exceeds_the_limit_or_loses_anything_c14(text):
    calls = [text_call(part) for part in split(text)]

    assert "".join(call.text for call in calls) == text
    for call in calls:
        assert_valid(call)
        assert "\u200d" not in (call.text[0], call.text[-1])


def test_an_escaped_character_is_one_when_it_is_shown_c14():
    calls = [text_call(part) for part in split("&lt;" * 3000)]

    assert "".join(call.text for call in calls) == "<" * 3000


def test_every_part_of_a_cut_code_block_is_shown_as_code_of_its_language_c12():
    code = "x = 'aaaaaaaaaaaaaaaaaaaa'\n" * 300
    calls = [text_call(part) for part in split(f"intro\n\n```python\n{code}```\noutro")]

    assert len(calls) > 1
    assert "".join(f"{covered(call, 'pre')[0]}\n" for call in calls) == code
    assert {entity["language"] for call in calls for entity in call.options["entities"]} == {"python"}
    assert calls[0].text.startswith("intro\n\nx = ")
    assert calls[-1].text.endswith("'\n\noutro")


@pytest.mark.parametrize("end", ["\n```", ""])
def test_one_endless_line_of_code_is_shown_as_code_in_every_part_c12(end):
    calls = [text_call(part) for part in split("```\n" + "z" * 9000 + end)]

    assert "".join(covered(call, "pre")[0] for call in calls) == "z" * 9000


@pytest.mark.parametrize("shift", [-1, 0, 1])
def test_a_fence_at_the_very_limit_is_shown_in_one_piece_c12(shift):
    calls = [text_call(part) for part in split("a" * (TEXT_LIMIT_UTF16 + shift - 1) + "\n```\ncode\n```\nend")]

    assert [covered(call, "pre") for call in calls if "code" in call.text] == [["code"]]
    assert "`" not in "".join(call.text for call in calls)


@pytest.mark.parametrize("markdown", ["---", "```\n```", "#", ">", "[a]: https://b.example"])
def test_a_text_that_would_show_nothing_is_sent_as_it_is_written(markdown):
    assert text_call(markdown).text == markdown
    assert preview(CHAT, markdown, None).text == markdown


def test_a_text_that_grows_beyond_the_limit_is_split_by_the_outbox():
    table = f"| {'h' * 30} | x |\n|---|---|\n" + "|a|b\n" * 200
    with pytest.raises(TextTooLong):
        text_call(table)
    with pytest.raises(TextTooLong):
        text_call("x" * 4097)
    with pytest.raises(TextTooLong):
        text_call("[l](https://x.example) " * 101)


def deliver(text, limit=TEXT_LIMIT_UTF16, depth=0):
    """Return the calls for a text whose parts are halved until they fit, as the outbox does it."""
    assert depth < 20
    for part in split_text(text, limit, TextUnit.UTF16):
        try:
            yield text_call(part)
        except TextTooLong:
            yield from deliver(part, min(TEXT_LIMIT_UTF16, len(part)) // 2, depth + 1)


def test_a_table_that_is_split_until_it_fits_is_a_table_in_every_part():
    rows = [f"|row {number}|b\n" for number in range(400)]
    calls = list(deliver(f"| {'h' * 30} | x |\n|---|---|\n{''.join(rows)}"))

    assert len(calls) > 4
    assert all(covered(call, "pre")[0].startswith("h" * 30 + " | x\n") for call in calls)
    assert [line for call in calls for line in call.text.splitlines() if line.startswith("row ")] == [
        f"row {number}".ljust(30) + " | b" for number in range(400)
    ]


DOCUMENT = """# Plan for **today**

Some *text* with `code`, a [link](https://example.org/a_(b)) and ~~old~~ words: 2*3*4, **open.

1. First
   ```python
   def f(x):
       return "\U0001f600"
   ```
2. Second
   - inner **bold `x`**
   > quoted

| a | b |
|--:|---|
| 1 | [t](https://example.org/t) |

---
![image](https://example.org/i.png) <https://example.org> é 👩‍💻
```
never closed"""


def test_every_beginning_of_an_answer_has_a_preview():
    for end in range(1, len(DOCUMENT) + 1):
        call = preview(CHAT, DOCUMENT[:end], None)
        assert call.text.strip()
        assert_valid(call)


def test_a_preview_shows_open_code_as_code_and_an_open_bold_as_it_is():
    assert covered(preview(CHAT, "a\n```py\nx = 1\ny", None), "pre") == ["x = 1\ny"]
    assert preview(CHAT, "a **bo", None).text == "a **bo"


def test_the_preview_of_a_long_text_is_what_its_first_part_will_be():
    text = "word " * 700 + "\n\n```python\n" + "x = 1\n" * 500 + "```\n"
    call = preview(CHAT, text, None)

    assert call.text == text_call(split(text)[0]).text + "…"
    assert call.text.startswith(call.plain.text[:3000])
    assert_valid(call)


def test_a_preview_that_grows_beyond_the_limit_shows_its_beginning():
    call = preview(CHAT, f"| {'h' * 30} | x |\n|---|---|\n" + "|a|b\n" * 200, None)

    assert call.text.endswith("…")
    assert_valid(call)


PIECES = st.sampled_from(
    ["a", "b c ", " ", "\n", "\n\n", "**", "*", "_", "~~", "`", "```\n", "```py\n", "# ", "> ", "- ", "1. ", "    ",
     "|", "|a|b|\n|-|:-:|\n", "|x|y|\n", "[l](https://x.yz/z)", "![i](https://q.r)", "[", "](", "<b>", "&amp;", "---\n",
     "https://bare.x/y_z", "<https://au.to>", "\\*", "\t", "\U0001f600", "\ud800", "\x00", "\u2028", "\r", "x" * 60]
)  # fmt: skip
MARKDOWN = st.lists(PIECES | st.text(max_size=5), max_size=30).map("".join)


@given(MARKDOWN, st.sampled_from([1, 20, 120]), st.floats(0, 1))
@settings(max_examples=120, deadline=None)
def test_any_text_is_shown_within_the_limits_and_so_is_any_beginning_of_it(markdown, times, share):
    text = markdown * times
    for call in deliver(text):
        assert_valid(call)
        assert call.text.strip() or not call.source.strip()
    assert_valid(preview(CHAT, text[: int(len(text) * share)], "7"))


CELLS = f"|{'w' * 32}|{'w' * 32}|{'w' * 32}|\n|-|-|-|\n" + "|||a\n" * 17


@given(MARKDOWN)
@example(CELLS)
@example("- " * 20 + "a\n" * 80)
@example("999999998. a\n1. b\n" * 10)
@example("```\n" + "\t" * 190 + "x")
@settings(max_examples=60, deadline=None)
def test_a_short_text_always_fits_so_that_splitting_ends(markdown):
    short = markdown[:100] if units(markdown) > 200 else markdown

    assert units(text_call(short).text) <= TEXT_LIMIT_UTF16


def test_lone_surrogates_do_not_reach_the_wire():
    assert render(item(TextContent(markdown="a\ud800b"))).text == "a\ufffdb"
    assert render(item(TextContent(markdown="\ud83d\ude00"))).text == "\U0001f600"


def test_an_address_that_is_not_telegrams_is_refused():
    with pytest.raises(SendRejected):
        render(item(TextContent(markdown="x"), Address(channel="telegram", account="900", chat="C0ROOM")))
    with pytest.raises(SendRejected):
        render(item(TextContent(markdown="x"), external_id="1700.1"))
