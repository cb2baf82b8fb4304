"""What blocks and views may consist of on a fake Slack.

Limits follow docs.slack.dev/reference/block-kit as read on 2026-11-30; `TOTAL_LIMIT_CHARS` is what
slackapi/bolt-js#2509 measured.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.platforms.slack_refusals import Refusal, invalid_arguments, invalid_blocks

Json = dict[str, Any]
Blocks = list[Json]

MESSAGE_BLOCKS, VIEW_BLOCKS = 50, 100
TOTAL_LIMIT_CHARS = 13_200
MARKDOWN_LIMIT_CHARS = 12_000
SECTION_LIMIT_CHARS, FIELD_LIMIT_CHARS, FIELDS = 3000, 2000, 10
HEADER_LIMIT_CHARS = 150
CONTEXT_ELEMENTS, ACTIONS_ELEMENTS, CONTEXT_ACTIONS_ELEMENTS = 10, 25, 5
BUTTON_TEXT_LIMIT_CHARS, BUTTON_VALUE_LIMIT_CHARS, URL_LIMIT_CHARS = 75, 2000, 3000
ID_LIMIT_CHARS = 255
CONFIRM_TITLE_CHARS, CONFIRM_TEXT_CHARS, CONFIRM_BUTTON_CHARS = 100, 300, 30
OPTION_TEXT_CHARS, OPTION_VALUE_CHARS, OPTIONS, OVERFLOW_OPTIONS = 75, 150, 100, 5
INPUT_LIMIT_CHARS, LABEL_LIMIT_CHARS, PLACEHOLDER_CHARS = 3000, 2000, 150
VIEW_TITLE_CHARS, VIEW_METADATA_CHARS, VIEW_LIMIT_BYTES = 24, 3000, 250_000
TABLE_ROWS, TABLE_COLUMNS, TABLE_CHARS = 100, 20, 10_000

_UNCHECKED = {
    "call", "card", "carousel", "data_table", "divider", "file", "image", "plan", "rich_text", "task_card", "video",
}  # fmt: skip


class Misfit(Exception):
    """Something in blocks or a view that Slack does not take; `pointer` says where, as a JSON pointer."""

    def __init__(self, problem: str, pointer: str) -> None:
        self.problem = problem
        self.pointer = pointer
        super().__init__(f"{problem} [json-pointer:{pointer}]")


def message_blocks(given: Any) -> Blocks:
    """Return the blocks of a message, each with a `block_id`.

    Raises:
        Refusal: `invalid_blocks_format`, `invalid_blocks` or `msg_blocks_too_long`.
    """
    if not given:
        return []
    blocks = decoded(given)
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise Refusal("invalid_blocks_format")
    try:
        _check_blocks(blocks, MESSAGE_BLOCKS, "/blocks")
    except Misfit as misfit:
        raise invalid_blocks(misfit.problem, misfit.pointer) from None
    if sum(map(len, texts(blocks))) > TOTAL_LIMIT_CHARS:
        raise Refusal("msg_blocks_too_long")
    return named(blocks)


def checked_view(given: Any, *kinds: str) -> Json:
    """Return a view of one of the kinds, its blocks named.

    Raises:
        Refusal: `invalid_arguments` or `view_too_large`.
    """
    view = decoded(given)
    if not isinstance(view, dict):
        raise invalid_arguments("must be an object [json-pointer:/view]")
    if len(json.dumps(view).encode()) > VIEW_LIMIT_BYTES:
        raise Refusal("view_too_large")
    try:
        _check_view(view, kinds)
    except Misfit as misfit:
        raise invalid_arguments(str(misfit)) from None
    return view | {"blocks": named(view["blocks"])}


def decoded(value: Any) -> Any:
    """Return what a parameter says that may come as JSON text.

    Raises:
        Refusal: `invalid_arguments`, it is no JSON.
    """
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise invalid_arguments("must be valid JSON") from None


def named(blocks: Blocks) -> Blocks:
    """Return the blocks, each with a `block_id`, as Slack gives one to those that have none."""
    return [{"block_id": f"b{number}", **block} for number, block in enumerate(blocks)]


def texts(node: Any) -> Iterator[str]:
    """Yield every text in blocks."""
    match node:
        case list():
            for item in node:
                yield from texts(item)
        case dict():
            for name, value in node.items():
                if name == "text" and isinstance(value, str):
                    yield value
                else:
                    yield from texts(value)


def elements(blocks: Blocks) -> Iterator[tuple[Json, Json]]:
    """Yield every interactive element with its block."""
    for block in blocks:
        inner = [*block.get("elements", []), block.get("accessory"), block.get("element")]
        for element in inner:
            if isinstance(element, dict) and "action_id" in element:
                yield block, element


def _check_view(view: Json, kinds: tuple[str, ...]) -> None:
    kind = view.get("type")
    if kind not in kinds:
        raise Misfit(f"must be one of: {', '.join(kinds)}", "/view/type")
    if kind == "modal":
        _check_text(view.get("title"), VIEW_TITLE_CHARS, "/view/title", plain=True)
        for name in ("submit", "close"):
            if view.get(name) is not None:
                _check_text(view[name], VIEW_TITLE_CHARS, f"/view/{name}", plain=True)
    _check_length(view.get("private_metadata", ""), VIEW_METADATA_CHARS, "/view/private_metadata", least=0)
    _check_length(view.get("callback_id", ""), ID_LIMIT_CHARS, "/view/callback_id", least=0)
    if not isinstance(view.get("blocks"), list):
        raise Misfit("missing required field: blocks", "/view")
    _check_blocks(view["blocks"], VIEW_BLOCKS, "/view/blocks")
    if kind == "modal" and "submit" not in view and any(block["type"] == "input" for block in view["blocks"]):
        raise Misfit("missing required field: submit", "/view")


def _check_blocks(blocks: Blocks, limit: int, pointer: str) -> None:
    _check_count(blocks, limit, pointer)
    named_ids: set[str] = set()
    for number, block in enumerate(blocks):
        here = f"{pointer}/{number}"
        check = _CHECKS.get(block.get("type", ""))
        if check is not None:
            check(block, here)
        elif block.get("type") not in _UNCHECKED:
            raise Misfit(f"unsupported type: {block.get('type')}", f"{here}/type")
        block_id = block.get("block_id")
        if block_id is not None:
            _check_length(block_id, ID_LIMIT_CHARS, f"{here}/block_id")
            if block_id in named_ids:
                raise Misfit(f'`block_id` "{block_id}" already exists', f"{here}/block_id")
            named_ids.add(block_id)
    written = sum(len(block.get("text", "")) for block in blocks if block["type"] == "markdown")
    if written > MARKDOWN_LIMIT_CHARS:
        raise Misfit(f"must be less than {MARKDOWN_LIMIT_CHARS + 1} characters", pointer)


def _check_section(block: Json, here: str) -> None:
    if "text" not in block and not block.get("fields"):
        raise Misfit("missing required field: text", here)
    if "text" in block:
        _check_text(block["text"], SECTION_LIMIT_CHARS, f"{here}/text")
    _check_count(block.get("fields", []), FIELDS, f"{here}/fields")
    for number, field in enumerate(block.get("fields", [])):
        _check_text(field, FIELD_LIMIT_CHARS, f"{here}/fields/{number}")
    if "accessory" in block:
        _check_element(block["accessory"], f"{here}/accessory")


def _check_header(block: Json, here: str) -> None:
    _check_text(block.get("text"), HEADER_LIMIT_CHARS, f"{here}/text", plain=True)


def _check_context(block: Json, here: str) -> None:
    _check_some(block.get("elements", []), CONTEXT_ELEMENTS, f"{here}/elements")
    for number, element in enumerate(block["elements"]):
        if element.get("type") != "image":
            _check_text(element, SECTION_LIMIT_CHARS, f"{here}/elements/{number}")


def _check_actions(block: Json, here: str) -> None:
    limit = ACTIONS_ELEMENTS if block["type"] == "actions" else CONTEXT_ACTIONS_ELEMENTS
    _check_some(block.get("elements", []), limit, f"{here}/elements")
    ids: set[str] = set()
    for number, element in enumerate(block["elements"]):
        _check_element(element, f"{here}/elements/{number}")
        action_id = element.get("action_id")
        if action_id is not None and action_id in ids:
            raise Misfit(f'`action_id` "{action_id}" already exists', f"{here}/elements/{number}/action_id")
        ids.add(action_id)


def _check_input(block: Json, here: str) -> None:
    _check_text(block.get("label"), LABEL_LIMIT_CHARS, f"{here}/label", plain=True)
    if not isinstance(block.get("element"), dict):
        raise Misfit("missing required field: element", here)
    _check_element(block["element"], f"{here}/element")


def _check_markdown(block: Json, here: str) -> None:
    _check_length(block.get("text", ""), MARKDOWN_LIMIT_CHARS, f"{here}/text")


def _check_table(block: Json, here: str) -> None:
    _check_some(block.get("rows", []), TABLE_ROWS, f"{here}/rows")
    for number, row in enumerate(block["rows"]):
        _check_count(row, TABLE_COLUMNS, f"{here}/rows/{number}")
    if sum(map(len, texts(block["rows"]))) > TABLE_CHARS:
        raise Misfit(f"must be less than {TABLE_CHARS + 1} characters", f"{here}/rows")


_CHECKS: dict[str, Callable[[Json, str], None]] = {
    "section": _check_section,
    "header": _check_header,
    "context": _check_context,
    "actions": _check_actions,
    "context_actions": _check_actions,
    "input": _check_input,
    "markdown": _check_markdown,
    "table": _check_table,
}


def _check_element(element: Json, here: str) -> None:
    if "action_id" in element:
        _check_length(element["action_id"], ID_LIMIT_CHARS, f"{here}/action_id")
    if "confirm" in element:
        _check_confirm(element["confirm"], f"{here}/confirm")
    match element.get("type"):
        case "button":
            _check_text(element.get("text"), BUTTON_TEXT_LIMIT_CHARS, f"{here}/text", plain=True)
            _check_length(element.get("value", ""), BUTTON_VALUE_LIMIT_CHARS, f"{here}/value", least=0)
            _check_length(element.get("url", ""), URL_LIMIT_CHARS, f"{here}/url", least=0)
            if element.get("style", "primary") not in {"primary", "danger"}:
                raise Misfit("must be one of: primary, danger", f"{here}/style")
        case "plain_text_input":
            _check_length(element.get("initial_value", ""), INPUT_LIMIT_CHARS, f"{here}/initial_value", least=0)
            if not 0 < element.get("max_length", 1) <= INPUT_LIMIT_CHARS:
                raise Misfit(f"must be less than {INPUT_LIMIT_CHARS + 1}", f"{here}/max_length")
        case "overflow":
            _check_options(element, OVERFLOW_OPTIONS, here)
        case "static_select" | "multi_static_select" | "radio_buttons" | "checkboxes":
            _check_options(element, OPTIONS, here)
        case None:
            raise Misfit("missing required field: type", here)
    if "placeholder" in element:
        _check_text(element["placeholder"], PLACEHOLDER_CHARS, f"{here}/placeholder", plain=True)


def _check_options(element: Json, limit: int, here: str) -> None:
    options = element.get("options", [])
    _check_count(options, limit, f"{here}/options")
    if not options and not element.get("option_groups"):
        raise Misfit("missing required field: options", here)
    for number, option in enumerate(options):
        _check_text(option.get("text"), OPTION_TEXT_CHARS, f"{here}/options/{number}/text")
        _check_length(option.get("value", ""), OPTION_VALUE_CHARS, f"{here}/options/{number}/value")


def _check_confirm(confirm: Json, here: str) -> None:
    _check_text(confirm.get("title"), CONFIRM_TITLE_CHARS, f"{here}/title", plain=True)
    _check_text(confirm.get("text"), CONFIRM_TEXT_CHARS, f"{here}/text")
    for name in ("confirm", "deny"):
        _check_text(confirm.get(name), CONFIRM_BUTTON_CHARS, f"{here}/{name}", plain=True)


def _check_text(text: Any, limit: int, here: str, *, plain: bool = False) -> None:
    if not isinstance(text, dict):
        raise Misfit("must be an object", here)
    if text.get("type") not in ({"plain_text"} if plain else {"plain_text", "mrkdwn"}):
        raise Misfit("must be a plain_text object" if plain else "must be a text object", f"{here}/type")
    _check_length(text.get("text", ""), limit, f"{here}/text")


def _check_length(text: Any, limit: int, here: str, *, least: int = 1) -> None:
    if not isinstance(text, str):
        raise Misfit("must be a string", here)
    if len(text) > limit:
        raise Misfit(f"must be less than {limit + 1} characters", here)
    if len(text) < least:
        raise Misfit("must be more than 0 characters", here)


def _check_some(items: Any, limit: int, here: str) -> None:
    if not items:
        raise Misfit("must be more than 0 items", here)
    _check_count(items, limit, here)


def _check_count(items: Any, limit: int, here: str) -> None:
    if not isinstance(items, list):
        raise Misfit("must be an array", here)
    if len(items) > limit:
        raise Misfit(f"no more than {limit} items allowed", here)
