import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.telegram.inbound_members import changed_chats, roles_of_members
from tests.platforms.telegram_json import ALICE, BOB, BOT, DATE, GROUP, PRIVATE, in_group, membership, press
from tests.platforms.telegram_members import member

ID = "-1001000000001"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=8,
)
LIKE_A_MESSAGE = st.fixed_dictionaries(
    {},
    optional={
        name: JSON | st.fixed_dictionaries({"id": JSON})
        for name in ("chat", "left_chat_member", "new_chat_members", "migrate_to_chat_id", "migrate_from_chat_id")
    },
)
LIKE_A_MEMBER = st.fixed_dictionaries(
    {}, optional={"user": JSON | st.fixed_dictionaries({"id": JSON}), "status": JSON | st.just("creator")}
)


@pytest.mark.parametrize("status", ["administrator", "member", "restricted", "left", "kicked"])
def test_every_change_of_a_member_may_change_who_administers(status):
    assert changed_chats({"chat_member": membership("member", status)}) == (ID,)
    assert changed_chats({"my_chat_member": membership("member", status)}) == (ID,)


@pytest.mark.parametrize(
    "told",
    [
        {"left_chat_member": BOB},
        {"new_chat_members": [ALICE, BOB]},
        {"chat_owner_left": {"new_owner": BOB}},
        {"chat_owner_changed": {"new_owner": BOB}},
    ],
    ids=lambda told: next(iter(told)),
)
def test_so_may_every_service_message_about_members(told):
    assert changed_chats({"message": in_group(None, **told)}) == (ID,)


def test_a_move_changes_both_chats():
    assert changed_chats({"message": in_group(None, migrate_from_chat_id=-4001)}) == (ID, "-4001")
    assert changed_chats({"message": in_group(None, migrate_to_chat_id=-1005)}) == (ID, "-1005")


@pytest.mark.parametrize(
    "update",
    [
        {"message": in_group("hello")},
        {"message": in_group(None, new_chat_title="Team 2")},
        {"edited_message": in_group("hello", edit_date=DATE)},
        {"callback_query": press(chat=GROUP)},
    ],
    ids=["said", "renamed", "edited", "pressed"],
)
def test_nothing_else_does(update):
    assert changed_chats(update) == ()


@given(
    JSON
    | st.dictionaries(
        st.sampled_from(["message", "my_chat_member", "chat_member", "update_id"]), JSON | LIKE_A_MESSAGE, max_size=3
    )
)
def test_no_update_raises_anything(update):
    assert all(str(int(chat)) == chat for chat in changed_chats(update))


def test_an_owner_is_an_administrator_too_and_a_member_is_neither():
    members = [member(ALICE, "creator"), member(BOB, "administrator"), member(BOT, "member")]

    assert roles_of_members(members, "telegram") == {
        "telegram:111": ("telegram:owner", "telegram:administrator"),
        "telegram:222": ("telegram:administrator",),
    }


def test_identities_and_roles_begin_with_the_channels_name():
    assert roles_of_members([member(ALICE, "administrator")], "second") == {"second:111": ("second:administrator",)}


@given(st.lists(JSON | LIKE_A_MEMBER, max_size=4))
def test_what_cannot_be_read_costs_nobody_else_their_roles(odd):
    members = [*odd, member({**PRIVATE, "id": 111}, "administrator")]

    assert roles_of_members(members, "telegram")["telegram:111"] == ("telegram:administrator",)
