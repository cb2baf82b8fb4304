"""Slack's numbers, each with its page, all read on 2026-11-30, and the timing chosen by them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

TEXT_LIMIT_BYTES = 3800
"""docs.slack.dev/reference/methods/chat.update: text, 4,000; a longer one is msg_too_long.

The page says characters; bytes of UTF-8 were measured, and 200 are left for what is not known.
"""

NOTICE_LIMIT_BYTES = 3000
"""Ours: of the text that stands for a card's blocks in notifications."""

BLOCKS_LIMIT = 50
VIEW_BLOCKS_LIMIT = 100
BLOCKS_LIMIT_CHARS = 12_800
"""docs.slack.dev/reference/block-kit/blocks: 50 a message, 100 a view.

The characters of all blocks together are documented nowhere: slackapi/bolt-js#2509 measured 13,200.
"""

SECTION_LIMIT_CHARS = 3000
HEADER_LIMIT_CHARS = 150
"""docs.slack.dev/reference/block-kit/blocks/section-block and header-block."""

BUTTON_LABEL_LIMIT_CHARS = 75
BUTTON_VALUE_LIMIT_CHARS = 2000
BUTTONS_IN_ROW = 25
"""docs.slack.dev/reference/block-kit/block-elements/button-element, blocks/actions-block."""

CARD_CODE_LIMIT_BYTES = 2300
"""Ours: escaped, no character takes more than five times its bytes, so that it always fits beside a text."""

FORM_TITLE_LIMIT_CHARS = 24
FORM_LABEL_LIMIT_CHARS = 2000
FORM_TEXT_LIMIT_CHARS = 3000
FORM_MEMORY_LIMIT_CHARS = 3000
"""docs.slack.dev/reference/views/modal-views and block-elements/plain-text-input-element."""

STREAM_LIMIT_CHARS = 2800
"""Documented nowhere: msg_too_long was seen near 3,000 in a streamed message."""

SESSION_TITLE_LIMIT_CHARS = 200
"""docs.slack.dev/ai/agent-sessions."""

STATUS_LIMIT_CHARS = 100
"""Ours: a line below a thread."""

PROMPTS_LIMIT = 4
"""docs.slack.dev/reference/methods/assistant.threads.setSuggestedPrompts."""

AGENT_DESCRIPTION_LIMIT_CHARS = 300
APP_NAME_LIMIT_CHARS = 35
APP_DESCRIPTION_LIMIT_CHARS = 140
"""docs.slack.dev/reference/app-manifest."""

UPLOAD_LIMIT_BYTES = 1_000_000_000
"""docs.slack.dev/reference/methods/files.getUploadURLExternal; whether 1 GB is 10^9 is not said."""

PAGE_LIMIT = 200
"""docs.slack.dev/reference/methods/conversations.history: at most 999, 200 recommended."""

BACKFILL_AGE = timedelta(days=7)
BACKFILL_MESSAGES = 200
"""Ours: how far back, and how many messages of one place, are fetched after a time away."""

RESPONSE_USES = 5
"""docs.slack.dev/interactivity/handling-user-interaction: of a response_url, which lives for 30 minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How often and how long."""

    edit_interval: timedelta = timedelta(seconds=1.2)
    """Between two calls in a channel: chat.update has tier 3, 50 a minute; chat.postMessage one a second."""
    preview_delay: timedelta = timedelta(milliseconds=250)
    """An answer that is complete sooner is sent once, without a preview or a status."""
    stream_life: timedelta = timedelta(minutes=4)
    """Slack ends a stream 5 minutes after its start, whatever comes: slackapi/python-slack-sdk#1859."""
    status_interval: timedelta = timedelta(seconds=90)
    """docs.slack.dev/reference/methods/assistant.threads.setStatus: it is cleared after 2 minutes."""
    answer_timeout: timedelta = timedelta(seconds=15)
    """How long Slack may take to answer before its answer counts as lost; of the machine's own time."""
    upload_timeout: timedelta = timedelta(minutes=2)
    """How long the bytes of a file may stand still on their way to Slack; of the machine's own time."""
    share_patience: timedelta = timedelta(seconds=8)
    """How long a file may take to appear where it was posted; Slack looks through it first."""
    share_interval: timedelta = timedelta(seconds=1)
    lookup_patience: timedelta = timedelta(minutes=1)
    """How long an earlier send is looked for while Slack cannot be asked."""
    download_patience: timedelta = timedelta(minutes=5)
    """How long a file may take to come, however slowly."""
    press_grace: timedelta = timedelta(milliseconds=700)
    """How long an act may wait for its event to be stored; Slack gives up after 3 seconds."""
    socket_silence: timedelta = timedelta(seconds=60)
    """A socket that brings no frame for so long is deaf; Slack pings every 10 to 30 seconds."""
    reconnect_first: timedelta = timedelta(seconds=1)
    reconnect_longest: timedelta = timedelta(minutes=1)
