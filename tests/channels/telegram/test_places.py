from dataclasses import replace

import pytest

from channels.telegram.places import new_message_options, number, thread_id
from core.contracts.addresses import OutboundItem, TextContent
from core.contracts.errors import SendRejected
from tests.channels.telegram.conftest import ALICE

ITEM = OutboundItem(id="t/1", address=ALICE, content=TextContent(markdown="x"))


def test_a_new_message_says_where_it_stands_and_whether_it_rings():
    item = replace(ITEM, address=replace(ALICE, thread="7"), reply_to="42")

    assert new_message_options(ITEM, silent=False) == {}
    assert new_message_options(item, silent=True) == {
        "disable_notification": True,
        "message_thread_id": 7,
        "reply_parameters": {"message_id": 42, "allow_sending_without_reply": True},
    }


def test_what_is_no_number_is_none_of_telegrams_ids():
    assert (number("-1001"), thread_id(ALICE)) == (-1001, None)
    for call in (lambda: number("C0ABC"), lambda: thread_id(replace(ALICE, thread="1.5"))):
        with pytest.raises(SendRejected):
            call()
