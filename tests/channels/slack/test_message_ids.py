import pytest

from channels.slack.message_ids import message_id, root_and_ts, thread_of, unseen_file, unseen_file_id
from core.contracts.addresses import Address, OutboundItem, Removal
from core.contracts.errors import SendRejected

ROOT, TS = "1700000001.000100", "1700000002.000200"


def item(thread=None, reply_to=None):
    address = Address(channel="slack", account="T", chat="C", thread=thread)
    return OutboundItem(id="t", address=address, content=Removal(), reply_to=reply_to)


def test_an_id_tells_the_thread_that_a_message_stands_in():
    assert message_id(None, TS) == message_id(TS, TS) == TS
    assert message_id(ROOT, TS) == f"{ROOT}:{TS}"
    assert root_and_ts(TS) == (None, TS)
    assert root_and_ts(f"{ROOT}:{TS}") == (ROOT, TS)


@pytest.mark.parametrize("text", ["", "1", f":{TS}", f"{ROOT}:", f"a:{TS}", "reaction/1.2", f"{TS}\n", "file:F1"])
def test_what_is_no_id_is_refused(text):
    with pytest.raises(SendRejected):
        root_and_ts(text)


def test_an_item_belongs_in_its_address_thread_else_in_that_of_what_it_answers():
    assert thread_of(item()) is None
    assert thread_of(item(thread=ROOT, reply_to=f"{TS}:1700000003.000000")) == ROOT
    assert thread_of(item(reply_to=TS)) is None
    assert thread_of(item(reply_to=f"{ROOT}:{TS}")) == ROOT


def test_a_file_whose_message_nobody_has_seen_has_an_id_of_its_own():
    assert unseen_file(unseen_file_id("F1")) == "F1"
    assert unseen_file(TS) is None
