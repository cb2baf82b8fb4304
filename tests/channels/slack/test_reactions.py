import pytest

from channels.slack.reactions import Reactions
from core.contracts.errors import SendRejected
from tests.channels.slack.sending import opened
from tests.platforms.slack_workspace import ALICE, BOB, ROOM

HEART = "\N{HEAVY BLACK HEART}\N{VARIATION SELECTOR-16}"


def given(scene, ts):
    return scene.server.workspace.channels[ROOM].messages[ts].reactions


@pytest.mark.parametrize("is_reply", [False, True])
async def test_a_reaction_is_put_replaced_and_taken_back_beside_those_of_people(is_reply):
    async with opened() as scene:
        root = ts = scene.server.user_says(ROOM, ALICE, "done?")
        if is_reply:
            ts = scene.server.user_says(ROOM, ALICE, "done now?", root)
        scene.server.user_reacts(ROOM, BOB, ts, "eyes")
        reactions = Reactions(scene.api)
        seen = []
        for emoji in ("\N{EYES}", "\N{EYES}", HEART, "", ""):
            await reactions.put(ROOM, f"{root}:{ts}" if is_reply else ts, emoji)
            seen.append({name: tuple(users) for name, users in given(scene, ts).items()})

    bob, both = {"eyes": (BOB,)}, {"eyes": (BOB, "U0BOT")}
    assert seen == [both, both, bob | {"heart": ("U0BOT",)}, bob, bob]


async def test_what_an_earlier_process_reacted_with_is_taken_back_too():
    async with opened() as scene:
        ts = scene.server.user_says(ROOM, ALICE, "done?")
        await Reactions(scene.api).put(ROOM, ts, "\N{EYES}")
        await Reactions(scene.api).put(ROOM, ts, HEART)

        assert given(scene, ts) == {"heart": ["U0BOT"]}


@pytest.mark.parametrize(
    ("taken", "method"), [("already_reacted", "reactions.add"), ("no_reaction", "reactions.remove")]
)
async def test_somebody_else_being_first_is_no_failure(taken, method):
    async with opened() as scene:
        ts = scene.server.user_says(ROOM, ALICE, "done?")
        reactions = Reactions(scene.api)
        await reactions.put(ROOM, ts, HEART)
        scene.server.refuse_next(method, taken)
        await reactions.put(ROOM, ts, "\N{EYES}")


async def test_what_cannot_be_a_reaction_is_refused_in_words():
    async with opened() as scene:
        ts = scene.server.user_says(ROOM, ALICE, "done?")
        reactions = Reactions(scene.api)
        with pytest.raises(SendRejected, match="no name"):
            await reactions.put(ROOM, ts, "two words")
        scene.server.refuse_next("reactions.add", "invalid_name")
        with pytest.raises(SendRejected, match="does not know this emoji"):
            await reactions.put(ROOM, ts, "\N{BRAIN}")


async def test_a_message_that_is_gone_takes_no_reaction_and_has_none_to_lose():
    async with opened() as scene:
        reactions = Reactions(scene.api)
        await reactions.put(ROOM, "1700000000.000100", "")
        with pytest.raises(SendRejected, match="not there any more"):
            await reactions.put(ROOM, "1700000000.000100", HEART)
