"""What Block Kit allows, at its limits and one beyond."""

import pytest

from tests.platforms.slack_workspace import ROOM

pytest_plugins = ["tests.platforms.slack_client"]


def plain(text):
    return {"type": "plain_text", "text": text}


def section(text="a", **more):
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}, **more}


def button(**more):
    return {"type": "button", "text": plain("Go"), "action_id": "go", **more}


def actions(*elements):
    return {"type": "actions", "elements": list(elements)}


def context(*texts):
    return {"type": "context", "elements": [plain(text) for text in texts]}


def menu(kind, count, **more):
    options = [{"text": plain(f"{n}"), "value": f"{n}"} for n in range(count)]
    return {"type": kind, "action_id": "menu", "options": options, **more}


CONFIRM = {"title": plain("t"), "text": plain("x"), "confirm": plain("y"), "deny": plain("n")}
TABLE_ROW = [{"type": "raw_text", "text": "a"}]

FIT = [
    [{"type": "divider"}] * 50,
    [section("x" * 3000)],
    [section(fields=[plain("x" * 2000)] * 5)],
    [{"type": "header", "text": plain("x" * 150)}],
    [context(*["a"] * 10)],
    [actions(*(button(action_id=f"{n}") for n in range(25)))],
    [actions(button(text=plain("x" * 75), value="x" * 2000, action_id="x" * 255, style="danger", confirm=CONFIRM))],
    [section(accessory=menu("overflow", 5))],
    [actions(menu("static_select", 100))],
    [{"type": "markdown", "text": "x" * 12_000}],
    [section("x" * 3000)] * 4 + [section("x" * 1200)],
    [{"type": "table", "rows": [TABLE_ROW * 20] * 100}],
    [{"type": "input", "label": plain("l"), "element": {"type": "plain_text_input", "max_length": 3000}}],
]

MISFITS = [
    ([{"type": "divider"}] * 51, "no more than 50 items allowed [json-pointer:/blocks]"),
    ([section("x" * 3001)], "must be less than 3001 characters [json-pointer:/blocks/0/text/text]"),
    ([section("")], "must be more than 0 characters [json-pointer:/blocks/0/text/text]"),
    ([{"type": "section"}], "missing required field: text"),
    ([section(fields=[plain("a")] * 11)], "no more than 10 items"),
    ([section(fields=[plain("x" * 2001)])], "must be less than 2001"),
    ([{"type": "header", "text": plain("x" * 151)}], "must be less than 151"),
    ([{"type": "header", "text": {"type": "mrkdwn", "text": "a"}}], "must be a plain_text object"),
    ([context(*["a"] * 11)], "no more than 10 items"),
    ([context()], "must be more than 0 items"),
    ([actions(*(button(action_id=f"{n}") for n in range(26)))], "no more than 25 items"),
    ([actions(button(), button())], "already exists"),
    ([actions(button(text=plain("x" * 76)))], "must be less than 76"),
    ([actions(button(value="x" * 2001))], "must be less than 2001"),
    ([actions(button(action_id="x" * 256))], "must be less than 256"),
    ([actions(button(url="x" * 3001))], "must be less than 3001"),
    ([actions(button(style="green"))], "must be one of: primary, danger"),
    ([actions(button(confirm=CONFIRM | {"text": plain("x" * 301)}))], "must be less than 301"),
    ([actions({"action_id": "a"})], "missing required field: type"),
    ([section(accessory=menu("overflow", 6))], "no more than 5 items"),
    ([actions(menu("static_select", 101))], "no more than 100 items"),
    ([actions(menu("static_select", 0))], "missing required field: options"),
    ([actions(menu("static_select", 1, placeholder=plain("x" * 151)))], "must be less than 151"),
    ([section(block_id="x" * 256)], "must be less than 256"),
    ([section(block_id="a"), section(block_id="a")], "already exists"),
    ([{"type": "markdown", "text": "x" * 6001}] * 2, "must be less than 12001"),
    ([{"type": "table", "rows": [TABLE_ROW] * 101}], "no more than 100 items"),
    ([{"type": "table", "rows": [TABLE_ROW * 21]}], "no more than 20 items"),
    ([{"type": "table", "rows": [[{"type": "raw_text", "text": "x" * 10_001}]]}], "must be less than 10001"),
    ([{"type": "marquee"}], "unsupported type: marquee"),
    ([{"type": "input", "label": plain("l")}], "missing required field: element"),
    ([{"type": "input", "label": plain("l"), "element": {"type": "plain_text_input", "max_length": 0}}], "max_length"),
]


@pytest.mark.parametrize("blocks", FIT)
async def test_blocks_at_their_limit_are_taken(slack, blocks):
    assert await slack.post("a", blocks=blocks)


@pytest.mark.parametrize(("blocks", "told"), MISFITS)
async def test_blocks_beyond_a_limit_are_refused_and_told_where(slack, blocks, told):
    answer = await slack.call("chat.postMessage", channel=ROOM, text="a", blocks=blocks)

    assert answer["error"] == "invalid_blocks"
    assert told in answer["errors"][0]
    assert answer["response_metadata"]["messages"] == [f"[ERROR] {answer['errors'][0]}"]


async def test_all_blocks_together_have_a_limit_of_their_own(slack):
    blocks = [section("x" * 3000)] * 4 + [section("x" * 1201)]

    assert await slack.refused("chat.postMessage", channel=ROOM, text="a", blocks=blocks) == "msg_blocks_too_long"


@pytest.mark.parametrize("blocks", ['{"type": "divider"}', ["divider"]])
async def test_what_is_no_list_of_blocks_is_refused(slack, blocks):
    assert await slack.refused("chat.postMessage", channel=ROOM, text="a", blocks=blocks) == "invalid_blocks_format"
