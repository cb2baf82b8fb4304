import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.chunking import measure
from channels.contract import TextUnit
from channels.telegram.limits import CARD_CODE_LIMIT_UTF16, TEXT_LIMIT_UTF16
from channels.telegram.outbound import preview, render
from core.contracts.addresses import Address, Button, ButtonStyle, CardContent, OutboundItem, TextContent
from core.contracts.errors import SendRejected

CHAT = Address(channel="telegram", account="900", chat="111")
TOPIC = Address(channel="telegram", account="900", chat="-1001000000001", thread="5")


def units(text):
    return measure(text, TextUnit.UTF16)


def item(content, address=CHAT, **fields):
    return OutboundItem(id="t/1", address=address, content=content, **fields)


APPROVE = ((Button(token="tok", label="Approve"),),)


def card(text="Run?", code="", rows=APPROVE, **fields):
    return CardContent(text=text, code=code, rows=rows, **fields)


def code_of(call):
    (pre,) = call.options["entities"]
    raw = call.text.encode("utf-16-le")
    return raw[pre["offset"] * 2 : (pre["offset"] + pre["length"]) * 2].decode("utf-16-le")


def test_text_goes_out_as_it_is_without_link_previews():
    call = render(item(TextContent(markdown="**a** <b> &lt; [x](y)")))

    assert call.text == "**a** <b> &lt; [x](y)"
    assert (call.chat_id, call.message_id) == (111, None)
    assert call.options == {"link_preview_options": {"is_disabled": True}}


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


def test_lone_surrogates_do_not_reach_the_wire():
    assert render(item(TextContent(markdown="a\ud800b"))).text == "a\ufffdb"
    assert render(item(TextContent(markdown="\ud83d\ude00"))).text == "\U0001f600"


def test_an_address_that_is_not_telegrams_is_refused():
    with pytest.raises(SendRejected):
        render(item(TextContent(markdown="x"), Address(channel="telegram", account="900", chat="C0ROOM")))
    with pytest.raises(SendRejected):
        render(item(TextContent(markdown="x"), external_id="1700.1"))
