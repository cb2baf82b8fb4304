"""What may be pressed and filled in on a fake Discord: rows and buttons, components of version 2, modals.

Limits follow Discord's component reference, as read on 2026-11-30.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.platforms.discord_refusals import bad_length, invalid_form, required

ROWS_LIMIT = 5
BUTTONS_LIMIT = 5
CUSTOM_ID_LIMIT_CHARS = 100
LABEL_LIMIT_CHARS = 80
V2_LIMIT = 40
V2_TEXT_LIMIT_CHARS = 4000
MODAL_TITLE_LIMIT_CHARS = 45
MODAL_LABEL_LIMIT_CHARS = 45
MODAL_FIELDS_LIMIT = 5
PLACEHOLDER_LIMIT_CHARS = 100
TEXT_INPUT_LIMIT_CHARS = 4000

ROW = 1
BUTTON = 2
TEXT_INPUT = 4
SECTION = 9
TEXT_DISPLAY = 10
CONTAINER = 17
LABEL = 18
LINK_STYLE = 5

_SELECTS = frozenset({3, 5, 6, 7, 8})
_V2_KINDS = frozenset({ROW, SECTION, TEXT_DISPLAY, 12, 13, 14, CONTAINER})

Component = dict[str, Any]


def walk(components: list[Component]) -> Iterator[Component]:
    """Yield components and what is inside them, in the order in which they are drawn."""
    for component in components:
        yield component
        inner = [*component.get("components", ())]
        inner += [component[name] for name in ("accessory", "component") if name in component]
        yield from walk(inner)


def numbered(components: list[Component]) -> list[Component]:
    """Return a copy in which each component has its `id`, as the platform gives them."""
    copied = [_copied(component) for component in components]
    for number, component in enumerate(walk(copied), start=1):
        component.setdefault("id", number)
    return copied


def check_components(components: Any, *, is_v2: bool, path: str = "components") -> None:
    """Refuse what a message cannot carry."""
    if not isinstance(components, list):
        raise invalid_form(path, "LIST_TYPE_CONVERT", "Only iterables may be used in a ListType")
    if is_v2:
        _check_v2(components, path)
    else:
        _check_rows(components, path)
    _check_custom_ids(components, path)


def check_modal(modal: dict[str, Any]) -> None:
    """Refuse what a modal cannot be."""
    if not 1 <= len(str(modal.get("title") or "")) <= MODAL_TITLE_LIMIT_CHARS:
        raise bad_length("data.title", 1, MODAL_TITLE_LIMIT_CHARS)
    if not 1 <= len(str(modal.get("custom_id") or "")) <= CUSTOM_ID_LIMIT_CHARS:
        raise bad_length("data.custom_id", 1, CUSTOM_ID_LIMIT_CHARS)
    components = modal.get("components") or []
    if not 1 <= len(components) <= MODAL_FIELDS_LIMIT:
        raise bad_length("data.components", 1, MODAL_FIELDS_LIMIT)
    for number, component in enumerate(components):
        path = f"data.components.{number}"
        if component.get("type") not in {ROW, LABEL, TEXT_DISPLAY}:
            raise invalid_form(f"{path}.type", "UNION_TYPE_CHOICES", "Value of field must be one of (1, 10, 18).")
        if component["type"] == LABEL:
            _check_length(component, "label", MODAL_LABEL_LIMIT_CHARS, path)
    for field in text_inputs(modal):
        _check_text_input(field)
    _check_custom_ids(components, "data.components")


def text_inputs(modal: dict[str, Any]) -> list[Component]:
    """Return the texts of a modal, each with what a person can see of it."""
    return [component for component in walk(modal["components"]) if component.get("type") == TEXT_INPUT]


def _check_rows(components: list[Component], path: str) -> None:
    if len(components) > ROWS_LIMIT:
        raise bad_length(path, 1, ROWS_LIMIT)
    for number, row in enumerate(components):
        if row.get("type") != ROW:
            raise invalid_form(f"{path}.{number}.type", "UNION_TYPE_CHOICES", "Value of field must be one of (1,).")
        _check_row(row, f"{path}.{number}")


def _check_row(row: Component, path: str) -> None:
    inner = row.get("components") or []
    if not 1 <= len(inner) <= BUTTONS_LIMIT:
        raise bad_length(f"{path}.components", 1, BUTTONS_LIMIT)
    for number, component in enumerate(inner):
        _check_pressable(component, f"{path}.components.{number}")
    if any(component["type"] in _SELECTS for component in inner) and len(inner) > 1:
        raise invalid_form(f"{path}.components", "COMPONENT_LAYOUT_WIDTH_EXCEEDED", "The specified layout is too wide")


def _check_pressable(component: Component, path: str) -> None:
    kind = component.get("type")
    if kind != BUTTON and kind not in _SELECTS:
        raise invalid_form(f"{path}.type", "UNION_TYPE_CHOICES", "Value of field must be one of (2, 3, 5, 6, 7, 8).")
    if component.get("style") == LINK_STYLE:
        if not component.get("url"):
            raise required(f"{path}.url")
    elif not 1 <= len(component.get("custom_id") or "") <= CUSTOM_ID_LIMIT_CHARS:
        raise bad_length(f"{path}.custom_id", 1, CUSTOM_ID_LIMIT_CHARS)
    if kind == BUTTON:
        if not component.get("label") and not component.get("emoji"):
            raise invalid_form(path, "BUTTON_COMPONENT_INVALID", "A button requires a label or an emoji")
        _check_length(component, "label", LABEL_LIMIT_CHARS, path, least=0)


def _check_v2(components: list[Component], path: str) -> None:
    inside = list(walk(components))
    if len(inside) > V2_LIMIT:
        raise invalid_form(path, "COMPONENT_MAX_TOTAL_COMPONENTS_EXCEEDED", f"At most {V2_LIMIT} components")
    if sum(len(str(part.get("content", ""))) for part in inside if part.get("type") == TEXT_DISPLAY) > (
        V2_TEXT_LIMIT_CHARS
    ):
        raise invalid_form(path, "COMPONENT_MAX_TOTAL_TEXT_EXCEEDED", f"At most {V2_TEXT_LIMIT_CHARS} characters")
    for number, component in enumerate(components):
        if component.get("type") not in _V2_KINDS:
            raise invalid_form(f"{path}.{number}.type", "UNION_TYPE_CHOICES", "Value of field is not allowed there.")
    for row in inside:
        if row.get("type") == ROW:
            _check_row(row, path)


def _check_custom_ids(components: list[Component], path: str) -> None:
    seen: set[str] = set()
    for component in walk(components):
        custom_id = component.get("custom_id")
        if custom_id in seen:
            message = "Component custom id cannot be duplicated"
            raise invalid_form(path, "COMPONENT_CUSTOM_ID_DUPLICATED", message)
        if custom_id is not None:
            seen.add(custom_id)


def _check_text_input(field: Component) -> None:
    path = f"data.components.{field.get('custom_id')}"
    _check_length(field, "custom_id", CUSTOM_ID_LIMIT_CHARS, path)
    _check_length(field, "label", MODAL_LABEL_LIMIT_CHARS, path, least=0)
    _check_length(field, "placeholder", PLACEHOLDER_LIMIT_CHARS, path, least=0)
    _check_length(field, "value", TEXT_INPUT_LIMIT_CHARS, path, least=0)
    if not 1 <= int(field.get("max_length") or TEXT_INPUT_LIMIT_CHARS) <= TEXT_INPUT_LIMIT_CHARS:
        raise invalid_form(f"{path}.max_length", "NUMBER_TYPE_MAX", f"At most {TEXT_INPUT_LIMIT_CHARS}.")


def _check_length(component: Component, name: str, most: int, path: str, *, least: int = 1) -> None:
    if not least <= len(str(component.get(name) or "")) <= most:
        raise bad_length(f"{path}.{name}", least, most)


def _copied(component: Component) -> Component:
    copied = dict(component)
    if "components" in copied:
        copied["components"] = [_copied(inner) for inner in copied["components"]]
    for name in ("accessory", "component"):
        if name in copied:
            copied[name] = _copied(copied[name])
    return copied
