"""How a fake Slack tells of what somebody pressed or filled in: actions of blocks, values of inputs."""

from __future__ import annotations

from typing import Any

from tests.platforms.slack_blocks import Blocks, elements

Json = dict[str, Any]

_SHOWN = ("type", "action_id", "value", "text", "style", "url", "confirm")


def pressed(blocks: Blocks, action: str, option: str, ts: str, *, stale: bool = False) -> Json:
    """Return the action of a press on what has that action id, value or label.

    Args:
        option: The value or the text of what is chosen, for a menu.
        ts: When it is pressed.
        stale: It need not be there any more.
    """
    for block, element in elements(blocks):
        label = (element.get("text") or {}).get("text")
        if action in {element["action_id"], element.get("value"), label}:
            return _as_action(block, element, option, ts)
    assert stale, f"nothing with the action id, value or label {action!r}"
    text = {"type": "plain_text", "text": "Gone"}
    gone = {"type": "button", "action_id": action, "value": action, "text": text}
    return _as_action({"block_id": "gone"}, gone, option, ts)


def filled_in(blocks: Blocks, values: dict[str, str]) -> Json:
    """Return the state of a view whose inputs hold `values`, by action id or block id.

    An input that is not named keeps what stood there at first.
    """
    state: Json = {}
    for block in blocks:
        if block["type"] != "input":
            continue
        element = block["element"]
        action_id = element.get("action_id", "input")
        given = values.get(action_id, values.get(block["block_id"]))
        shown = _as_value(element, given)
        assert block.get("optional") or any(shown.values()), f"{action_id!r} has to be filled in"
        state.setdefault(block["block_id"], {})[action_id] = {"type": element["type"], **shown}
    return {"values": state}


def _as_action(block: Json, element: Json, option: str, ts: str) -> Json:
    shown = {name: element[name] for name in _SHOWN if name in element}
    chosen = {"selected_option": _option(element, option)} if option else {}
    return shown | chosen | {"block_id": block["block_id"], "action_ts": ts}


def _as_value(element: Json, given: str | None) -> Json:
    if element["type"] == "plain_text_input":
        text = given if given is not None else element.get("initial_value")
        assert text is None or len(text) <= element.get("max_length", 3000), "too long to be typed"
        return {"value": text or None}
    return {"selected_option": _option(element, given) if given else element.get("initial_option")}


def _option(element: Json, option: str) -> Json:
    known: list[Json] = [o for o in element.get("options", []) if option in {o["value"], o["text"]["text"]}]
    assert known, f"no option {option!r}"
    return known[0]
