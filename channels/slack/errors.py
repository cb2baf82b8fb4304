"""Slack's refusals, translated once into the errors that every channel raises.

Words: the "Errors" of each page below docs.slack.dev/reference/methods, read on 2026-11-30.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from core.contracts.errors import (
    ChannelDown,
    ChannelError,
    SendLimited,
    SendRejected,
    SendUnknown,
    TextTooLong,
)

RETRY_SOON = timedelta(seconds=2)
"""When to try again what did surely not take effect, or takes effect only once."""

LIMIT_WITHOUT_TIME = timedelta(seconds=30)
"""How long to wait when Slack, or what stands before it, asks for that and names no time."""

_LONGEST_LIMIT = timedelta(days=1)
_DETAIL_CHARS = 300

_NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)
"""No connection stood: the request cannot have been carried out."""


class MessageGone(SendRejected):
    """The message is not there any more."""


class NotEditable(SendRejected):
    """The message is there and stays as it is: the workspace allows no more edits of it, or it is not ours."""


class NotDeletable(SendRejected):
    """The message is there and will stay."""


class ThreadGone(SendRejected):
    """There is no thread with that root, or nobody can reply to it."""


class NotInChannel(SendRejected):
    """The app is not in the channel, or there is no such channel for it."""


class StillStreaming(SendRejected):
    """The message is being streamed and cannot be changed before that is stopped."""


class StreamOver(SendRejected):
    """The message is streamed no more."""


class ReactionStands(SendRejected):
    """The reaction is there already."""


class ReactionGone(SendRejected):
    """There is no such reaction to take back."""


class ScopeMissing(SendRejected):
    """The app was not given the scope `needed`."""

    def __init__(self, detail: str, *, needed: str) -> None:
        super().__init__(detail)
        self.needed = needed


class ActGone(SendRejected):
    """A press or a command can be answered no more: too late, or too often."""


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What one of Slack's words means; `words` say it to people."""

    error: type[ChannelError]
    words: str = ""


_SCOPE = "missing_scope"

_MEANINGS: Mapping[str, _Meaning] = {
    **dict.fromkeys(
        (
            "invalid_auth",
            "not_authed",
            "account_inactive",
            "token_revoked",
            "token_expired",
            "not_allowed_token_type",
            "org_login_required",
        ),
        _Meaning(ChannelDown, "Slack refuses the token"),
    ),
    "msg_too_long": _Meaning(TextTooLong),
    "msg_blocks_too_long": _Meaning(TextTooLong),
    "msg_blocks_too_many": _Meaning(TextTooLong),
    "message_not_found": _Meaning(MessageGone, "the message is not there any more"),
    "cant_update_message": _Meaning(NotEditable),
    "edit_window_closed": _Meaning(NotEditable),
    "cant_delete_message": _Meaning(NotDeletable),
    "compliance_exports_prevent_deletion": _Meaning(NotDeletable),
    "thread_not_found": _Meaning(ThreadGone),
    "cannot_reply_to_message": _Meaning(ThreadGone),
    "invalid_thread_ts": _Meaning(ThreadGone),
    "channel_not_found": _Meaning(NotInChannel, "there is no such channel for the app; invite it"),
    "not_in_channel": _Meaning(NotInChannel, "the app is not in the channel; invite it"),
    "is_archived": _Meaning(SendRejected, "the channel is archived"),
    "is_inactive": _Meaning(SendRejected, "the channel is archived"),
    "restricted_action": _Meaning(SendRejected, "the workspace does not let the app write there"),
    "restricted_action_read_only_channel": _Meaning(SendRejected, "the channel is read-only"),
    "restricted_action_thread_only_channel": _Meaning(SendRejected, "only replies in threads are allowed there"),
    "restricted_action_thread_locked": _Meaning(SendRejected, "the thread is locked"),
    "restricted_action_non_threadable_channel": _Meaning(SendRejected, "no threads are allowed there"),
    "messages_tab_disabled": _Meaning(SendRejected, "the app's messages tab is switched off"),
    "cannot_dm_bot": _Meaning(SendRejected, "bots take no direct messages"),
    "user_not_found": _Meaning(SendRejected, "there is no such person"),
    "user_disabled": _Meaning(SendRejected, "the person's account does not exist any more"),
    "streaming_state_conflict": _Meaning(StillStreaming),
    "message_not_in_streaming_state": _Meaning(StreamOver),
    "message_not_owned_by_app": _Meaning(NotEditable),
    "already_reacted": _Meaning(ReactionStands),
    "no_reaction": _Meaning(ReactionGone),
    "invalid_name": _Meaning(SendRejected, "Slack does not know this emoji"),
    "too_many_emoji": _Meaning(SendRejected, "the message has as many emoji as Slack allows"),
    "too_many_reactions": _Meaning(SendRejected, "the app has reacted as often as Slack allows"),
    "file_upload_size_restricted": _Meaning(SendRejected, "the file is too large for Slack"),
    "storage_limit_reached": _Meaning(SendRejected, "the workspace has no room for files left"),
    "file_uploads_disabled": _Meaning(SendRejected, "the workspace allows no files"),
    "expired_trigger_id": _Meaning(ActGone, "it took too long"),
    "exchanged_trigger_id": _Meaning(ActGone, "it was answered already"),
    "invalid_trigger_id": _Meaning(ActGone),
    "expired_url": _Meaning(ActGone, "it took too long"),
    "used_url": _Meaning(ActGone, "it was answered as often as Slack allows"),
    "not_enabled": _Meaning(SendRejected, "the app's home tab is switched off"),
    **dict.fromkeys(("ratelimited", "rate_limited", "message_limit_exceeded"), _Meaning(SendLimited)),
    # Slack says of these that nothing was looked at.
    **dict.fromkeys(("request_timeout", "team_added_to_org"), _Meaning(SendLimited)),
    # Slack says of these that some of it may have been done.
    **dict.fromkeys(("internal_error", "fatal_error", "service_unavailable"), _Meaning(SendUnknown)),
}
"""What is not named here is `SendRejected` with Slack's own word."""


def answered(error: SlackApiError, mask: Callable[[str], str]) -> ChannelError:
    """Return what an answer means that is no success; an outcome counts as known only where it surely is.

    5xx and an answer that is none of Slack's are `SendUnknown`.
    """
    response = error.response
    if isinstance(response, AsyncSlackResponse):
        body = response.data if isinstance(response.data, dict) else {}
        return refusal(response.status_code, body, response.headers, mask)
    return SendUnknown("the answer is none of Slack's: it cannot be read")


def refusal(
    status: int, body: Mapping[str, Any], headers: Mapping[str, str], mask: Callable[[str], str]
) -> ChannelError:
    """Return what an answer of that status means, which says no or nothing of Slack's."""
    # conversations.leave says it in a field of its own.
    word = "not_in_channel" if body.get("not_in_channel") is True else body.get("error")
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return SendLimited(f"Slack asks to wait ({word or status})", retry_after=_named_wait(headers))
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return SendUnknown(f"Slack answered {status}")
    if isinstance(word, str):
        return _meaning(word, body, headers, mask)
    if status >= HTTPStatus.BAD_REQUEST:
        # What stands between here and Slack let nothing through.
        return SendLimited(f"refused on the way to Slack ({status})", retry_after=_named_wait(headers))
    return SendUnknown(f"the answer is none of Slack's ({status})")


def unreached(error: Exception, mask: Callable[[str], str]) -> ChannelError:
    """Return what a request means that got no answer; `SendLimited` where it surely had no effect."""
    detail = _short(mask(f"{type(error).__name__}: {error}"))
    if isinstance(error, _NEVER_SENT):
        return SendLimited(f"Slack cannot be reached: {detail}", retry_after=RETRY_SOON)
    return SendUnknown(f"the answer was lost: {detail}")


def _meaning(
    word: str, body: Mapping[str, Any], headers: Mapping[str, str], mask: Callable[[str], str]
) -> ChannelError:
    detail = _short(mask(_wording(word, body)))
    if word == _SCOPE:
        needed = str(body.get("needed", "")) or "another scope"
        told = f"the app lacks the scope {needed}: add it under OAuth & Permissions and install the app again"
        return ScopeMissing(f"{told} ({detail})", needed=needed)
    meaning = _MEANINGS.get(word, _Meaning(SendRejected))
    told = f"{meaning.words} ({detail})" if meaning.words else detail
    if meaning.error is SendLimited:
        return SendLimited(told, retry_after=_named_wait(headers))
    return meaning.error(told)


def _wording(word: str, body: Mapping[str, Any]) -> str:
    """Return Slack's word, with what it says beside it."""
    metadata = body.get("response_metadata")
    messages = metadata.get("messages") if isinstance(metadata, dict) else None
    return "; ".join([word, *map(str, messages if isinstance(messages, list) else ())])


def _named_wait(headers: Mapping[str, str]) -> timedelta:
    """Return how long a Retry-After asks to wait."""
    named = next((value for name, value in headers.items() if name.lower() == "retry-after"), "")
    try:
        seconds = float(named)
    except ValueError:
        return LIMIT_WITHOUT_TIME
    if not math.isfinite(seconds) or seconds < 0:
        return LIMIT_WITHOUT_TIME
    return timedelta(seconds=min(seconds, _LONGEST_LIMIT.total_seconds()))


def _short(detail: str) -> str:
    return detail if len(detail) <= _DETAIL_CHARS else detail[: _DETAIL_CHARS - 1] + "…"
