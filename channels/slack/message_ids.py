"""What names a message of Slack's: `<ts>` in a channel itself, `<root's ts>:<ts>` in a thread; pure."""

from __future__ import annotations

import re

from core.contracts.addresses import OutboundItem
from core.contracts.errors import SendRejected

_TS = re.compile(r"\d{1,12}\.\d{1,6}")
_BETWEEN = ":"
_FILE = "file:"


def message_id(root: str | None, ts: str) -> str:
    """Return the external id of a message in the thread of `root`, or in the channel itself."""
    return ts if root is None or root == ts else f"{root}{_BETWEEN}{ts}"


def root_and_ts(external_id: str) -> tuple[str | None, str]:
    """Return the root of the thread that a message stands in, if it does, and its ts.

    Raises:
        SendRejected: It is no id of a message on Slack.
    """
    root, between, ts = external_id.rpartition(_BETWEEN)
    if not _TS.fullmatch(ts) or (between and not _TS.fullmatch(root)):
        raise SendRejected(f"{external_id!r} is no message of Slack")
    return (root or None), ts


def thread_of(item: OutboundItem) -> str | None:
    """Return the root of the thread where an item belongs: its address's, else that of what it answers.

    Raises:
        SendRejected: What it answers is no message on Slack.
    """
    if item.address.thread is not None or item.reply_to is None:
        return item.address.thread
    root, _ = root_and_ts(item.reply_to)
    return root


def unseen_file_id(file: str) -> str:
    """Return the external id of a file that was posted, and whose message nobody has seen yet."""
    return f"{_FILE}{file}"


def unseen_file(external_id: str) -> str | None:
    """Return the file that such an id names; None for a message's."""
    return external_id.removeprefix(_FILE) if external_id.startswith(_FILE) else None
