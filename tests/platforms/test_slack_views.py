"""What a press, a command or a shortcut entitles to: one view within 3 seconds, five answers within 30 minutes."""

import pytest

from tests.platforms.slack_workspace import ALICE, ALICE_DM, BOB, ROOM

pytest_plugins = ["tests.platforms.slack_client"]


def plain(text):
    return {"type": "plain_text", "text": text}


def modal(**more):
    reason = {"type": "plain_text_input", "action_id": "reason"}
    scope = {"type": "static_select", "action_id": "scope", "options": [{"text": plain("All"), "value": "all"}]}
    blocks = [
        {"type": "input", "block_id": "why", "label": plain("Why"), "element": reason},
        {"type": "input", "block_id": "what", "label": plain("What"), "element": scope, "optional": True},
    ]
    return {"type": "modal", "title": plain("Deny"), "submit": plain("Send"), "blocks": blocks, **more}


def home(text="Memory"):
    button = {"type": "button", "text": plain("Forget"), "action_id": "forget", "value": "42"}
    return {"type": "home", "blocks": [{"type": "actions", "elements": [button]}], "private_metadata": text}


CARD = [{"type": "actions", "elements": [{"type": "button", "text": plain("Deny"), "action_id": "deny", "value": "t"}]}]


async def pressed(slack):
    ts = await slack.post("Run?", blocks=CARD)
    return slack.server.presses(ALICE, ROOM, ts, "deny").payload


async def opened(slack, **more):
    trigger = (await pressed(slack))["trigger_id"]
    return (await slack.result("views.open", trigger_id=trigger, view=modal(**more)))["view"]


async def test_a_trigger_opens_one_view_within_three_seconds(slack):
    first, second = [(await pressed(slack))["trigger_id"] for _ in range(2)]
    await slack.pass_time(3)
    view = (await slack.result("views.open", trigger_id=first, view=modal()))["view"]
    assert (view["id"], view["root_view_id"], view["state"]) == (view["id"], view["id"], {"values": {}})
    assert slack.server.views.opened(ALICE).title == "Deny"
    assert await slack.refused("views.open", trigger_id=first, view=modal()) == "exchanged_trigger_id"
    await slack.pass_time(0.1)

    assert await slack.refused("views.open", trigger_id=second, view=modal()) == "expired_trigger_id"
    assert await slack.refused("views.open", trigger_id="1.2.3", view=modal()) == "invalid_trigger_id"


@pytest.mark.parametrize(
    ("view", "told"),
    [
        (modal(title=plain("x" * 25)), "must be less than 25 characters [json-pointer:/view/title/text]"),
        (modal(submit=plain("x" * 25)), "must be less than 25"),
        (modal(close=plain("x" * 25)), "must be less than 25"),
        (modal(private_metadata="x" * 3001), "must be less than 3001"),
        (modal(callback_id="x" * 256), "must be less than 256"),
        (modal(blocks=[{"type": "divider"}] * 101), "no more than 100 items"),
        (modal(blocks=None), "missing required field: blocks"),
        ({**modal(), "submit": None} | {"title": None}, "must be an object [json-pointer:/view/title]"),
        ({name: value for name, value in modal().items() if name != "submit"}, "missing required field: submit"),
        (home(), "must be one of: modal"),
        ("[]", "must be an object"),
    ],
)
async def test_a_view_beyond_a_limit_is_refused_and_its_trigger_still_good(slack, view, told):
    trigger = (await pressed(slack))["trigger_id"]
    answer = await slack.call("views.open", trigger_id=trigger, view=view)

    assert answer["error"] == "invalid_arguments"
    assert told in answer["response_metadata"]["messages"][0]
    assert (await slack.call("views.open", trigger_id=trigger, view=modal()))["ok"]


async def test_a_view_of_more_than_250_kilobytes_is_too_large(slack):
    trigger = (await pressed(slack))["trigger_id"]
    blocks = [{"type": "section", "text": plain("x" * 2600)}] * 100

    assert await slack.refused("views.open", trigger_id=trigger, view=modal(blocks=blocks)) == "view_too_large"


async def test_a_view_is_changed_under_its_hash(slack):
    view = await opened(slack)
    changed = modal(title=plain("Really?"))
    await slack.result("views.update", view_id=view["id"], hash=view["hash"], view=changed)
    assert slack.server.views.opened(ALICE).title == "Really?"

    refused = await slack.refused("views.update", view_id=view["id"], hash=view["hash"], view=changed)
    assert refused == "hash_conflict"
    assert await slack.refused("views.update", view_id="V0NONE", view=changed) == "not_found"
    assert await slack.refused("views.update", view=changed) == "not_found"


async def test_three_modals_lie_on_each_other_at_most(slack):
    await opened(slack)
    for _ in range(2):
        trigger = (await pressed(slack))["trigger_id"]
        await slack.result("views.push", trigger_id=trigger, view=modal())
    trigger = (await pressed(slack))["trigger_id"]

    assert await slack.refused("views.push", trigger_id=trigger, view=modal()) == "push_limit_reached"


async def test_a_submission_carries_what_was_filled_in(slack):
    view = await opened(slack, private_metadata="t", callback_id="deny")
    delivery = slack.server.submits(ALICE, {"reason": "no", "what": "All"})
    sent = delivery.payload["view"]

    assert (delivery.payload["type"], sent["id"], sent["private_metadata"]) == ("view_submission", view["id"], "t")
    assert sent["state"]["values"]["why"]["reason"] == {"type": "plain_text_input", "value": "no"}
    assert sent["state"]["values"]["what"]["scope"]["selected_option"]["value"] == "all"
    with pytest.raises(AssertionError, match="has to be filled in"):
        slack.server.submits(ALICE, {})


@pytest.mark.parametrize(
    ("answer", "title", "errors", "refusal"),
    [
        ({}, None, {}, ""),
        ({"response_action": "clear"}, None, {}, ""),
        ({"response_action": "errors", "errors": {"why": "too short"}}, "Deny", {"why": "too short"}, ""),
        ({"response_action": "update", "view": modal(title=plain("New"))}, "New", {}, ""),
        ({"response_action": "push", "view": modal(title=plain("Above"))}, "Above", {}, ""),
        ({"response_action": "update", "view": home()}, "Deny", {}, "invalid_arguments"),
    ],
)
async def test_the_answer_to_a_submission_decides_what_is_seen_next(slack, answer, title, errors, refusal):
    await opened(slack)
    delivery = slack.server.submits(ALICE, {"reason": "no"})
    slack.server.deliveries.acked(delivery, answer)
    view = slack.server.views.opened(ALICE)

    assert (view and view.title, view.errors if view else {}) == (title, errors)
    assert delivery.refusal == refusal


async def test_a_closed_view_is_told_only_if_it_asked_for_it(slack):
    await opened(slack)
    assert slack.server.closes(ALICE) is None
    await opened(slack, notify_on_close=True)

    assert slack.server.closes(ALICE).payload["type"] == "view_closed"
    assert slack.server.views.opened(ALICE) is None


async def test_each_person_has_a_home_that_can_be_pressed(slack):
    await slack.result("views.publish", user_id=ALICE, view=home())
    first = slack.server.opens_home(ALICE).event
    press = slack.server.presses_in_view(ALICE, "Forget").payload
    await slack.result("views.publish", user_id=ALICE, view=home("new"), hash=first["view"]["hash"])

    assert (first["type"], first["tab"], first["channel"]) == ("app_home_opened", "home", ALICE_DM)
    assert press["container"] == {"type": "view", "view_id": first["view"]["id"]}
    assert press["actions"][0]["value"] == "42"
    assert slack.server.views.homes[ALICE].content["private_metadata"] == "new"
    stale = await slack.refused("views.publish", user_id=ALICE, view=home(), hash=first["view"]["hash"])
    assert stale == "hash_conflict"
    assert "view" not in slack.server.opens_home(BOB).event
    assert "view" not in slack.server.opens_home(ALICE, "messages").event
    assert await slack.refused("views.publish", user_id="U0NONE", view=home()) == "user_not_found"


async def test_a_response_url_is_good_for_five_answers(slack):
    url = slack.server.runs_command("/lodger", "help").payload["response_url"]
    answers = [await slack.http.post(url, json={"text": f"{n}"}) for n in range(6)]

    assert [answer.status_code for answer in answers] == [200] * 5 + [404]
    assert answers[5].json() == {"ok": False, "error": "used_url"}
    assert [message.text for message in slack.server.ephemeral(ROOM, ALICE)] == ["0", "1", "2", "3", "4"]


async def test_a_response_url_is_good_for_thirty_minutes(slack):
    url = slack.server.runs_command("/lodger").payload["response_url"]
    await slack.pass_time(1800)
    assert (await slack.http.post(url, json={"text": "a", "response_type": "in_channel"})).text == "ok"
    await slack.pass_time(1)

    assert (await slack.http.post(url, json={"text": "b"})).json()["error"] == "expired_url"
    assert [message.text for message in slack.server.visible(ROOM)] == ["a"]


async def test_a_response_url_replaces_or_deletes_what_was_pressed_also_if_one_person_alone_saw_it(slack):
    for method, seen in (("chat.postMessage", slack.server.visible), ("chat.postEphemeral", slack.server.ephemeral)):
        answer = await slack.result(method, channel=ROOM, user=ALICE, text="Run?", blocks=CARD)
        ts = answer.get("ts") or answer["message_ts"]
        url = slack.server.presses(ALICE, ROOM, ts, "deny").payload["response_url"]
        await slack.http.post(url, json={"replace_original": True, "text": "Denied"})
        assert [(message.text, message.blocks) for message in seen(ROOM)] == [("Denied", [])]
        await slack.http.post(url, json={"delete_original": True})
        assert seen(ROOM) == []


async def test_a_response_without_content_is_refused(slack):
    url = slack.server.runs_command("/lodger").payload["response_url"]
    answer = await slack.http.post(url, json={})

    assert (answer.status_code, answer.json()["error"]) == (400, "no_text")
