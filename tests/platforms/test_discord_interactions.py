"""The fake is held to what Discord documents of presses, modals and commands, by plain HTTP."""

from datetime import timedelta

import pytest

from tests.platforms.discord_content import EPHEMERAL
from tests.platforms.discord_guilds import ALICE, BOB, BOT, GENERAL, GUILD
from tests.platforms.discord_interactions import Asked

pytest_plugins = ["tests.platforms.discord_client"]

HERE = f"/channels/{GENERAL}/messages"
MODAL = {
    "custom_id": "reason:1",
    "title": "Why not?",
    "components": [
        {"type": 18, "label": "Reason", "component": {"type": 4, "custom_id": "why", "style": 2, "max_length": 20}},
        {"type": 1, "components": [{"type": 4, "custom_id": "more", "style": 1, "label": "More", "required": False}]},
    ],
}


def button(custom_id="go", label="Go", **more):
    return {"type": 2, "style": 1, "label": label, "custom_id": custom_id, **more}


def rows(*buttons):
    return [{"type": 1, "components": list(buttons)}]


async def pressed(discord, **fields):
    sent = await discord.says(GENERAL, "Run it?", components=rows(button(), button("no", "No")), **fields)
    return discord.server.presses(ALICE, GENERAL, int(sent["id"]), "go")


def callback(interaction):
    return f"/interactions/{interaction.id}/{interaction.token}/callback"


def webhook(interaction, message=""):
    return f"/webhooks/{BOT}/{interaction.token}" + (f"/messages/{message}" if message else "")


async def respond(discord, interaction, kind, data=None):
    body = {"type": kind} | ({} if data is None else {"data": data})
    return await discord.result("POST", callback(interaction), body, token=None, params={"with_response": "true"})


async def test_a_press_is_told_with_who_pressed_what_where(discord):
    async with discord.listening() as listener:
        interaction = await pressed(discord)
        (_, message), (name, shown) = await listener.events(2)

    assert (name, shown["type"], shown["token"]) == ("INTERACTION_CREATE", 3, interaction.token)
    assert (shown["data"]["custom_id"], shown["data"]["component_type"]) == ("go", 2)
    assert (shown["member"]["user"]["id"], shown["message"]["id"]) == (str(ALICE), message["id"])
    assert (shown["guild_id"], shown["channel"]["id"], shown["context"]) == (str(GUILD), str(GENERAL), 0)


async def test_a_press_in_a_direct_conversation_has_a_user_and_no_guild(discord):
    dm = discord.server.dm(ALICE)
    sent = await discord.says(dm, "Run it?", components=rows(button()))
    async with discord.listening() as listener:
        discord.server.presses(ALICE, dm, int(sent["id"]), "go")
        shown = await listener.event("INTERACTION_CREATE")

    assert (shown["user"]["id"], shown["context"]) == (str(ALICE), 1)
    assert not {"guild_id", "member"} & set(shown)


async def test_only_what_is_there_can_be_pressed(discord):
    sent = await discord.says(GENERAL, "Run it?", components=rows(button(), button("off", disabled=True)))
    for custom_id in ("off", "elsewhere"):
        with pytest.raises(AssertionError):
            discord.server.presses(ALICE, GENERAL, int(sent["id"]), custom_id)

    assert discord.server.presses(ALICE, GENERAL, int(sent["id"]), "elsewhere", stale=True).data["custom_id"] == (
        "elsewhere"
    )


async def test_a_response_shows_a_message_to_all_or_to_one(discord):
    async with discord.listening() as listener:
        loud, quiet = await pressed(discord), await pressed(discord)
        answer = await respond(discord, loud, 4, {"content": f"<@{BOB}> done", "allowed_mentions": {"parse": []}})
        await respond(discord, quiet, 4, {"content": "psst", "flags": EPHEMERAL})
        discord.server.user_says(GENERAL, ALICE, "after")
        names = [shown.get("content") for _, shown in await listener.events(6)]

    assert answer["resource"]["message"]["interaction_metadata"]["user"]["id"] == str(ALICE)
    assert answer["resource"]["message"]["mentions"] == []
    assert (loud.texts, loud.is_private) == ([f"<@{BOB}> done"], False)
    assert (quiet.texts, quiet.is_private) == (["psst"], True)
    assert [message.text for message in discord.server.visible(GENERAL)] == ["Run it?", "Run it?", f"<@{BOB}> done"]
    assert names[-2:] == [f"<@{BOB}> done", "after"]


async def test_a_response_can_change_the_message_that_was_pressed(discord):
    interaction = await pressed(discord)
    await respond(discord, interaction, 7, {"content": "Approved", "components": []})
    [message] = discord.server.visible(GENERAL)

    assert (message.text, message.buttons, interaction.texts) == ("Approved", {}, [])


async def test_a_deferred_change_is_made_later_and_by_followups(discord):
    interaction = await pressed(discord)
    await discord.result("POST", callback(interaction), {"type": 6}, token=None)
    await discord.result("PATCH", webhook(interaction, "@original"), {"content": "Approved"}, token=None)
    told = await discord.result("POST", webhook(interaction), {"content": "noted", "flags": EPHEMERAL}, token=None)

    assert discord.server.visible(GENERAL)[0].versions == ["Run it?", "Approved"]
    assert (interaction.texts, told["flags"]) == (["noted"], EPHEMERAL)
    assert len(discord.server.visible(GENERAL)) == 1


async def test_a_deferred_message_is_loading_until_it_is_filled(discord):
    edited, followed = await pressed(discord), await pressed(discord)
    answer = await respond(discord, edited, 5, {"flags": EPHEMERAL})
    await respond(discord, followed, 5)

    assert answer["interaction"]["response_message_loading"]
    assert (edited.is_loading, edited.texts, followed.is_loading) == (True, [], True)
    await discord.result("PATCH", webhook(edited, "@original"), {"content": "here"}, token=None)
    first = await discord.result("POST", webhook(followed), {"content": "first"}, token=None)
    await discord.result("POST", webhook(followed), {"content": "second"}, token=None)
    assert (edited.is_loading, edited.is_private, edited.texts) == (False, True, ["here"])
    assert (followed.texts, first["id"]) == (["first", "second"], str(followed.original.id))
    assert [message.text for message in discord.server.visible(GENERAL)][2:] == ["first", "second"]


async def test_messages_of_a_response_can_be_read_changed_and_deleted(discord):
    interaction = await pressed(discord)
    await respond(discord, interaction, 4, {"content": "one"})
    followup = (await discord.result("POST", webhook(interaction), {"content": "two"}, token=None))["id"]
    await discord.result("PATCH", webhook(interaction, followup), {"content": "2"}, token=None)
    assert (await discord.result("GET", webhook(interaction, "@original"), token=None))["content"] == "one"
    await discord.result("DELETE", webhook(interaction, "@original"), token=None)

    assert interaction.texts == ["2"]
    assert await discord.refused("GET", webhook(interaction, "@original"), token=None) == (404, 10008)
    assert [message.text for message in discord.server.visible(GENERAL)] == ["Run it?", "2"]


async def test_a_response_after_three_seconds_is_refused_and_the_person_sees_a_failure(discord):
    async with discord.listening():
        in_time, late = await pressed(discord), await pressed(discord)
        await discord.server.clock.advance(timedelta(seconds=3))
        await respond(discord, in_time, 6)
        assert not late.failed
        await discord.server.clock.advance(timedelta(milliseconds=1))

        assert await discord.refused("POST", callback(late), {"type": 6}, token=None) == (404, 10062)
        assert (in_time.failed, late.failed) == (False, True)
        assert in_time.responded_at - in_time.made_at == timedelta(seconds=3)


async def test_a_second_first_response_is_refused(discord):
    interaction = await pressed(discord)
    await respond(discord, interaction, 6)
    await discord.server.clock.advance(timedelta(seconds=9))

    assert await discord.refused("POST", callback(interaction), {"type": 6}, token=None) == (400, 40060)


async def test_a_token_lasts_fifteen_minutes_and_only_after_a_response(discord):
    interaction = await pressed(discord)
    assert await discord.refused("POST", webhook(interaction), {"content": "a"}, token=None) == (404, 10015)
    await respond(discord, interaction, 6)
    await discord.server.clock.advance(timedelta(minutes=15))
    await discord.result("POST", webhook(interaction), {"content": "a"}, token=None)
    await discord.server.clock.advance(timedelta(seconds=1))

    assert await discord.refused("POST", webhook(interaction), {"content": "a"}, token=None) == (401, 50027)
    assert await discord.refused("PATCH", webhook(interaction, "@original"), {"content": "a"}, token=None) == (
        401,
        50027,
    )
    assert await discord.refused("POST", f"/webhooks/{BOT}/wrong", {"content": "a"}, token=None) == (401, 50027)
    wrong = f"/interactions/{interaction.id}/wrong/callback"
    assert await discord.refused("POST", wrong, {"type": 6}, token=None) == (404, 10062)


async def test_a_press_while_nobody_listens_fails_for_its_person(discord):
    interaction = await pressed(discord)

    assert interaction.failed
    async with discord.listening():
        assert not (await pressed(discord)).failed


async def test_a_refused_response_leaves_the_interaction_open(discord):
    interaction = await pressed(discord)
    long = {"type": 4, "data": {"content": "a" * 2001}}

    assert await discord.wrong_field("POST", callback(interaction), long) == ("data.content", "BASE_TYPE_MAX_LENGTH")
    assert await discord.wrong_field("POST", callback(interaction), {"type": 3}) == ("type", "BASE_TYPE_CHOICES")
    await respond(discord, interaction, 4, {"content": "short"})
    assert interaction.texts == ["short"]


async def test_a_modal_is_filled_in_and_comes_back_as_an_interaction_of_its_own(discord):
    async with discord.listening() as listener:
        opener = await pressed(discord)
        await respond(discord, opener, 9, MODAL)
        sent = discord.server.submits_modal(opener, {"why": "too risky"})
        shown = [shown for name, shown in await listener.events(3) if name == "INTERACTION_CREATE"][1]

    assert (sent.asked, shown["type"], shown["data"]["custom_id"]) == (Asked.MODAL, 5, "reason:1")
    label, row = shown["data"]["components"]
    assert (label["component"]["custom_id"], label["component"]["value"]) == ("why", "too risky")
    assert (row["components"][0]["custom_id"], row["components"][0]["value"]) == ("more", "")
    await respond(discord, sent, 7, {"content": "Denied", "components": []})
    assert discord.server.visible(GENERAL)[0].text == "Denied"


async def test_a_modal_can_be_sent_only_as_its_client_lets_it_be(discord):
    opener = await pressed(discord)
    with pytest.raises(AssertionError):
        discord.server.submits_modal(opener, {})
    await respond(discord, opener, 9, MODAL)
    for values in ({}, {"why": "a" * 21}, {"why": "a", "other": "b"}):
        with pytest.raises(AssertionError):
            discord.server.submits_modal(opener, values)


async def test_a_modal_does_not_open_another_one(discord):
    opener = await pressed(discord)
    await respond(discord, opener, 9, MODAL)
    sent = discord.server.submits_modal(opener, {"why": "a"})
    body = {"type": 9, "data": MODAL}

    assert (await discord.wrong_field("POST", callback(sent), body))[0] == "type"


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"title": "t" * 46}, "data.title"),
        ({"title": ""}, "data.title"),
        ({"custom_id": "c" * 101}, "data.custom_id"),
        ({"components": []}, "data.components"),
        ({"components": MODAL["components"] * 3}, "data.components"),
        ({"components": [{"type": 2}]}, "data.components.0.type"),
        ({"components": [MODAL["components"][0] | {"label": "l" * 46}]}, "data.components.0.label"),
        ({"components": [MODAL["components"][0]] * 2}, "data.components"),
    ],
)
async def test_a_modal_that_is_too_much_is_refused(discord, changed, field):
    interaction = await pressed(discord)
    body = {"type": 9, "data": MODAL | changed}

    assert (await discord.wrong_field("POST", callback(interaction), body))[0] == field
    assert interaction.modal is None


@pytest.mark.parametrize(
    ("components", "field", "code"),
    [
        (rows(button()) * 6, "components", "BASE_TYPE_BAD_LENGTH"),
        (rows(*[button(str(n)) for n in range(6)]), "components.0.components", "BASE_TYPE_BAD_LENGTH"),
        (rows(button("c" * 101)), "components.0.components.0.custom_id", "BASE_TYPE_BAD_LENGTH"),
        (rows(button("")), "components.0.components.0.custom_id", "BASE_TYPE_BAD_LENGTH"),
        (rows(button(), button()), "components", "COMPONENT_CUSTOM_ID_DUPLICATED"),
        (rows(button(label="l" * 81)), "components.0.components.0.label", "BASE_TYPE_BAD_LENGTH"),
        (rows(button(label="")), "components.0.components.0", "BUTTON_COMPONENT_INVALID"),
        (rows(button(style=5)), "components.0.components.0.url", "BASE_TYPE_REQUIRED"),
        ([button()], "components.0.type", "UNION_TYPE_CHOICES"),
        (rows(button(), {"type": 3, "custom_id": "s"}), "components.0.components", "COMPONENT_LAYOUT_WIDTH_EXCEEDED"),
    ],
)
async def test_buttons_that_are_too_much_are_refused(discord, components, field, code):
    body = {"content": "a", "components": components}

    assert await discord.wrong_field("POST", HERE, body) == (field, code)


async def test_twenty_five_buttons_with_long_labels_are_taken(discord):
    full = [rows(*[button(f"{row}{number}".ljust(100, "c"), "l" * 80) for number in range(5)])[0] for row in range(5)]
    sent = await discord.says(GENERAL, "a", components=full)

    assert sum(len(row["components"]) for row in sent["components"]) == 25


async def test_components_of_version_two_stand_alone_and_have_limits_of_their_own(discord):
    flag = 1 << 15
    text = {"type": 10, "content": "a" * 4000}
    sent = await discord.result("POST", HERE, {"flags": flag, "components": [text, *rows(button())]})
    assert [part["type"] for part in sent["components"]] == [10, 1]
    refused = [
        ({"content": "a", "components": [text]}, "content"),
        ({"components": [text, {"type": 10, "content": "b"}]}, "components"),
        ({"components": [{"type": 14}] * 41}, "components"),
        ({"components": [button()]}, "components.0.type"),
    ]
    for body, field in refused:
        assert (await discord.wrong_field("POST", HERE, body | {"flags": flag}))[0] == field

    assert (await discord.wrong_field("POST", HERE, {"components": [text]}))[0] == "components.0.type"
    still = await discord.result("PATCH", f"{HERE}/{sent['id']}", {"flags": 0, "components": [text]})
    assert still["flags"] & flag
