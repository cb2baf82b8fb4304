"""Forms that the buttons of an approval open: a denial with its reason, a call with other arguments. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bot.conversations.cards import DENY_WITH_REASON, EDIT, approval_token
from channels.chunking import measure
from channels.contract import Form, FormField, TextUnit
from core.contracts.errors import ToolError
from core.contracts.permissions import Approval
from core.tools.schema import decode_arguments

REASON = "reason"
"""The field of a denial."""
ARGUMENTS = "arguments"
"""The field that holds all arguments, as JSON."""

FIELD_LIMIT_UTF16 = 3000
"""What every platform's forms take in one text (facts/platforms.md, 4: Slack's `plain_text_input`)."""

NOTHING_DECIDED = "Nothing was decided; the call still waits."

_APPROVE_OR_DENY = "Approve or deny it."
_FIELDS_LIMIT = 5
_FIELD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,39}")
_UNFIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
"""What a field to write in does not keep; in JSON it is an escape."""
_LINE_CHARS = 60
_HIGHEST_LINES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What came back from the form of `edit_form`: all arguments as a JSON object, or why there are none."""

    arguments: str = ""
    fault: str = ""


def deny_form(approval: Approval) -> Form:
    """Return the form that asks why a call is denied."""
    return Form(
        token=approval_token(approval, DENY_WITH_REASON),
        title="Deny with a reason",
        fields=(FormField(name=REASON, label="What shall I do instead, and why?", lines=4),),
        send_label="Deny",
    )


def edit_form(approval: Approval, clean: Callable[[str], str]) -> Form | str:
    """Return the form in which the arguments of a call can be changed, or why they cannot be.

    A call of few and plain texts has a field for each, any other one field for all, in JSON. What
    `clean` takes out may not stand in a form, and without it the call would be another one.
    """
    if clean(approval.shown) != approval.shown:
        return f"There is a secret in this call, so it cannot be edited. {_APPROVE_OR_DENY}"
    texts = _texts(approval.shown)
    fields = tuple(_field(name, value) for name, value in texts.items()) or (_whole(approval.shown),)
    if any(measure(field.value, TextUnit.UTF16) > FIELD_LIMIT_UTF16 for field in fields):
        return f"This call is too long to be edited in a form. {_APPROVE_OR_DENY}"
    return Form(
        token=approval_token(approval, EDIT), title="Edit and approve", fields=fields, send_label="Approve this"
    )


def read_edit(approval: Approval, values: Mapping[str, str]) -> Written:
    """Return what was written into the form of `edit_form` of this approval, by field."""
    names = tuple(_texts(approval.shown))
    if any(name not in values for name in names or (ARGUMENTS,)):
        return Written(fault=f"The form came back incomplete. {NOTHING_DECIDED}")
    if names:
        return Written(arguments=json.dumps({name: values[name] for name in names}, ensure_ascii=False))
    text = values[ARGUMENTS]
    fault = _fault(text)
    return Written(fault=f"These are no arguments: {fault}. {NOTHING_DECIDED}") if fault else Written(arguments=text)


def _fault(text: str) -> str:
    """Return what is wrong with a text that has to be a JSON object; empty where it is one."""
    if not text.strip():
        return "the text is empty"
    try:
        decode_arguments(text)
    except ToolError:
        return _place_of_fault(text) or "a JSON object is needed"
    return ""


def _place_of_fault(text: str) -> str:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"the JSON breaks off in line {error.lineno}, column {error.colno}"
    except (ValueError, RecursionError):
        pass
    return ""


def _texts(shown: str) -> dict[str, str]:
    """Return the arguments where each can have a field of its own; otherwise none."""
    values: dict[str, Any] = json.loads(shown)
    fit = len(values) <= _FIELDS_LIMIT and all(
        isinstance(value, str) and _FIELD_NAME.fullmatch(name) and not _UNFIT.search(value)
        for name, value in values.items()
    )
    return values if fit else {}


def _field(name: str, value: str) -> FormField:
    return FormField(name=name, label=name, value=value, lines=_height(value), required=False)


def _whole(shown: str) -> FormField:
    value = json.dumps(json.loads(shown), ensure_ascii=False, indent=2)
    return FormField(name=ARGUMENTS, label="Arguments (JSON)", value=value, lines=_HIGHEST_LINES)


def _height(value: str) -> int:
    lines = sum(1 + len(line) // _LINE_CHARS for line in value.split("\n"))
    return min(lines, _HIGHEST_LINES)
