"""Discord's numbers, each with its page, all read on 2026-11-30, and the timing chosen by them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

TEXT_LIMIT_UTF16 = 2000
"""docs.discord.com/developers/resources/message#create-message: content, up to 2000 characters.

The page says characters; UTF-16 units are the safe reading.
"""

CARD_CODE_LIMIT_UTF16 = 1400
"""Ours: leaves a card's text about 580 units beside the longest code."""

NONCE_LIMIT_CHARS = 25
"""docs.discord.com/developers/resources/message#create-message: nonce, up to 25 characters."""

NONCE_LIFE = timedelta(minutes=2)
"""How long the same nonce is trusted to give the first message again.

The page says "the past few minutes"; how many is not said, so this is less.
"""

PAGE_LIMIT = 100
"""docs.discord.com/developers/resources/message#get-channel-messages: limit, 1-100."""

BUTTON_LABEL_LIMIT_CHARS = 80
BUTTONS_IN_ROW = 5
BUTTON_ROWS = 5
CUSTOM_ID_LIMIT_CHARS = 100
"""docs.discord.com/developers/components/reference: labels, rows, and what a button may carry."""

FORM_TITLE_LIMIT_CHARS = 45
FORM_LABEL_LIMIT_CHARS = 45
FORM_TEXT_LIMIT_CHARS = 4000
FORM_FIELDS = 5
"""docs.discord.com/developers/components/reference: modals and their text inputs."""

THREAD_NAME_LIMIT_CHARS = 80
"""Ours; docs.discord.com/developers/resources/channel#start-thread-from-message allows 100."""

THREAD_ARCHIVE_MINUTES = 1440
"""docs.discord.com/developers/resources/channel#thread-metadata-object: 60, 1440, 4320 or 10080."""

UPLOAD_LIMIT_BYTES = 10 * 1024 * 1024
"""docs.discord.com/developers/reference#uploading-files: 10 MiB for each file; some guilds allow more."""

FILE_NAME_LIMIT_CHARS = 120
"""Ours: what a download's name on most disks has room for."""

COMMANDS_LIMIT = 100
COMMAND_NAME_LIMIT_CHARS = 32
COMMAND_HELP_LIMIT_CHARS = 100
"""docs.discord.com/developers/interactions/application-commands: of global commands, and of each."""

BACKFILL_AGE = timedelta(days=7)
"""Ours: how far back messages are fetched after a time away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How often and how long."""

    edit_interval: timedelta = timedelta(seconds=1.25)
    """Between two calls in a chat, one of which may run ahead.

    5 in 5 seconds were seen as the budget of a channel; it is not documented.
    """
    preview_delay: timedelta = timedelta(milliseconds=250)
    """An answer that is complete sooner is sent once, without a preview or a typing mark."""
    typing_interval: timedelta = timedelta(seconds=8)
    """docs.discord.com/developers/resources/channel#trigger-typing-indicator: it expires after 10 seconds."""
    answer_timeout: timedelta = timedelta(seconds=15)
    """How long Discord may take to answer before its answer counts as lost; of the machine's own time."""
    upload_timeout: timedelta = timedelta(seconds=60)
    """The same for a file."""
    download_patience: timedelta = timedelta(minutes=5)
    """How long a file may take to come, however slowly."""
    press_grace: timedelta = timedelta(milliseconds=700)
    """How long the host may take over an interaction; Discord gives up after 3 seconds."""
    gateway_silence: timedelta = timedelta(seconds=60)
    """Without a word on it for so long the gateway's connection counts as broken; of the machine's own time."""
    command_retry_first: timedelta = timedelta(seconds=5)
    command_retry_longest: timedelta = timedelta(hours=1)
    reconnect_first: timedelta = timedelta(seconds=1)
    reconnect_longest: timedelta = timedelta(minutes=1)
