"""Telegram's numbers, each with its page, all read on 2026-11-30, and the timing chosen by them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

TEXT_LIMIT_UTF16 = 4096
"""core.telegram.org/bots/api#sendmessage: 1-4096 characters after entities parsing.

The page says characters; UTF-16 units are the safe reading, as entities count them.
"""

CARD_CODE_LIMIT_UTF16 = 3000
"""Ours: leaves a card's text at least 1,000 units beside the longest code."""

CALLBACK_DATA_LIMIT_BYTES = 64
"""core.telegram.org/bots/api#inlinekeyboardbutton: callback_data, 1-64 bytes."""

CALLBACK_ANSWER_LIMIT_CHARS = 200
"""core.telegram.org/bots/api#answercallbackquery: text, 0-200 characters."""

CAPTION_LIMIT_UTF16 = 1024
"""core.telegram.org/bots/api#senddocument: 0-1024 characters after entities parsing."""

UPLOAD_LIMIT_BYTES = 50_000_000
"""core.telegram.org/bots/api#sending-files: 50 MB for files; whether that is 10^6 is not said."""

PHOTO_LIMIT_BYTES = 10_000_000
"""core.telegram.org/bots/api#sendphoto: at most 10 MB in size."""

DOWNLOAD_LIMIT_BYTES = 20_000_000
"""core.telegram.org/bots/api#getfile: bots can download files of up to 20 MB in size."""

COMMAND_NAME_LIMIT_CHARS = 32
COMMAND_HELP_LIMIT_CHARS = 256
COMMANDS_LIMIT = 100
"""core.telegram.org/bots/api#botcommand and #setmycommands: 1-32 of a-z, 0-9, _; 1-256; at most 100."""

UPDATE_BATCH_LIMIT = 100
"""core.telegram.org/bots/api#getupdates: limit, 1-100."""

GENERAL_TOPIC = 1
"""The forum topic that cannot be named when sending: leave the thread out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How often and how long.

    The intervals keep below "one message per second" in a chat and "20 messages per minute" in a
    group (core.telegram.org/bots/faq, "My bot is hitting limits"); edits count like messages.
    """

    private_interval: timedelta = timedelta(seconds=1.1)
    group_interval: timedelta = timedelta(seconds=3.1)
    preview_delay: timedelta = timedelta(milliseconds=250)
    """An answer that is complete sooner is sent once, without a preview or a typing action."""
    typing_interval: timedelta = timedelta(seconds=4.5)
    """core.telegram.org/bots/api#sendchataction: the status is set for 5 seconds or less."""
    answer_timeout: timedelta = timedelta(seconds=15)
    """How long Telegram may take to answer before its answer counts as lost; of the machine's own time."""
    upload_timeout: timedelta = timedelta(seconds=60)
    """The same for a file, which Telegram works on first."""
    download_patience: timedelta = timedelta(minutes=5)
    """How long a file may take to come, however slowly."""
    menu_retry_first: timedelta = timedelta(seconds=5)
    menu_retry_longest: timedelta = timedelta(hours=1)
    second_poller_watch: timedelta = timedelta(seconds=16)
    """How long a diagnosis looks out for another program that polls: another host tries again within 15 s."""
    poll_timeout: timedelta = timedelta(seconds=25)
    press_grace: timedelta = timedelta(milliseconds=500)
    """How long the host may take to answer a press with a text before the adapter answers without."""
    roles_kept: timedelta = timedelta(minutes=5)
    """How long a group's administrators count as known. Ours: where the bot is no administrator, nothing else
    tells that somebody was dismissed."""
    roles_patience: timedelta = timedelta(seconds=2)
    """How long the events of a group may wait for its administrators before they go on without roles."""
    roles_retry: timedelta = timedelta(minutes=1)
    """The time between a failure to learn a group's administrators and the next attempt."""
    roles_interval: timedelta = timedelta(seconds=1)
    """The time between two questions for a group's administrators, however often its members change."""

    def interval(self, chat: str) -> timedelta:
        """Return the time between two calls in a chat; ids of groups are negative."""
        return self.group_interval if chat.startswith("-") else self.private_interval
