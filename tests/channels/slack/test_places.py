import pytest

from channels.slack.places import CHAT, HOME, THREAD, Places
from core.contracts.addresses import Address

ROOM, DM = "C0ROOM", "D0ALICE"
FIRST, REPLY, NEXT = "1700000000.000100", "1700000001.000100", "1700000002.000100"


def places(direct=THREAD, rooms=THREAD, name="slack"):
    return Places(name=name, team="T0TEAM", direct=direct, rooms=rooms)


@pytest.mark.parametrize(
    ("direct", "rooms", "in_direct", "in_room"),
    [
        (THREAD, THREAD, [FIRST, FIRST, NEXT], [FIRST, FIRST, NEXT]),
        (CHAT, THREAD, [None, None, None], [FIRST, FIRST, NEXT]),
        (THREAD, CHAT, [FIRST, FIRST, NEXT], [None, None, None]),
        (CHAT, CHAT, [None, None, None], [None, None, None]),
    ],
)
def test_each_mode_says_what_one_conversation_is_held_in(direct, rooms, in_direct, in_room):
    """A message, a reply to it, and the next message beside it: in one conversation, or in two."""
    said = [(FIRST, None), (REPLY, FIRST), (NEXT, None)]
    of_team = places(direct, rooms)

    assert [of_team.address(DM, ts, root, is_direct=True).thread for ts, root in said] == in_direct
    assert [of_team.address(ROOM, ts, root, is_direct=False).thread for ts, root in said] == in_room


def test_threads_are_what_conversations_are_held_in_unless_it_is_said_otherwise():
    assert Places(name="slack", team="T0TEAM") == places(THREAD, THREAD)


def test_a_place_names_the_workspace_and_the_adapter():
    address = places(name="work").address(ROOM, REPLY, FIRST, is_direct=False)

    assert address == Address(channel="work", account="T0TEAM", chat=ROOM, thread=FIRST)
    assert address.space == "T0TEAM"
    assert address.key == f"work/T0TEAM/{ROOM}/{FIRST}"


def test_a_channel_is_one_place_and_a_thread_in_it_another():
    assert places().channel(ROOM).key == f"slack/T0TEAM/{ROOM}"
    assert places().channel(ROOM, FIRST) == places().address(ROOM, FIRST, None, is_direct=False)


def test_a_home_screen_is_a_place_of_its_person_in_every_mode():
    for mode in (THREAD, CHAT):
        home = places(mode, mode).home("U0ALICE")
        assert (home.chat, home.thread, home.space) == ("home:U0ALICE", None, "T0TEAM")
        assert home.chat.startswith(HOME)
    assert places().home("U0ALICE") != places().home("U0BOB")
