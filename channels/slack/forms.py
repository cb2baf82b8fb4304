"""Forms as modals, and what a modal remembers of why it was opened; pure."""

from __future__ import annotations

import json
from typing import Any

from channels.contract import Form, FormField
from channels.slack.cards import plain
from channels.slack.limits import (
    FORM_LABEL_LIMIT_CHARS,
    FORM_MEMORY_LIMIT_CHARS,
    FORM_TEXT_LIMIT_CHARS,
    FORM_TITLE_LIMIT_CHARS,
)
from channels.slack.mrkdwn import encodable
from core.contracts.errors import SendRejected

Json = dict[str, Any]

FORM = "lodger_form"
"""The callback id of modals that `open_form` opens."""

INPUT = "text"
"""The action id of every input; its block id is the name of the field."""


def draw_form(form: Form, *, memory: str, callback: str = FORM) -> Json:
    """Return the modal that asks for a form's texts.

    Args:
        form: The form.
        memory: What `read_memory` gives back, beside the form's token, when the modal is sent.
        callback: What the modal is told apart by.

    Raises:
        SendRejected: A text that stands there at first, or what is to be remembered, is longer than
            Slack takes: cut, it would say something else.
    """
    remembered = json.dumps({"token": form.token, "memory": memory})
    if len(remembered) > FORM_MEMORY_LIMIT_CHARS:
        raise SendRejected("the form has to remember more than Slack takes")
    return {
        "type": "modal",
        "callback_id": callback,
        "private_metadata": remembered,
        "title": plain(form.title, FORM_TITLE_LIMIT_CHARS),
        "submit": plain(form.send_label, FORM_TITLE_LIMIT_CHARS),
        "blocks": [_input(field) for field in form.fields],
    }


def read_memory(private_metadata: str) -> tuple[str, str] | None:
    """Return the token of a form that was sent, and what was to be remembered; None: it is no form of ours."""
    try:
        remembered = json.loads(private_metadata)
        token, memory = remembered["token"], remembered["memory"]
    except (ValueError, KeyError, TypeError):
        return None
    return (token, memory) if isinstance(token, str) and isinstance(memory, str) else None


def _input(field: FormField) -> Json:
    value = encodable(field.value)
    if len(value) > FORM_TEXT_LIMIT_CHARS:
        raise SendRejected(
            f"{field.label} is longer than the {FORM_TEXT_LIMIT_CHARS} characters that Slack's forms take"
        )
    element: Json = {
        "type": "plain_text_input",
        "action_id": INPUT,
        "multiline": field.lines > 1,
        "max_length": FORM_TEXT_LIMIT_CHARS,
    }
    if value:
        element["initial_value"] = value
    return {
        "type": "input",
        "block_id": field.name,
        "label": plain(field.label, FORM_LABEL_LIMIT_CHARS),
        "optional": not field.required,
        "element": element,
    }
