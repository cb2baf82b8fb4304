"""Calls to Slack's Web API, each made once and never repeated here; the one place that calls the SDK."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any, BinaryIO

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from channels.slack.answers import Answer, Json, is_after
from channels.slack.connection import Connection
from channels.slack.errors import NotInChannel, answered, refusal, unreached
from channels.slack.limits import BACKFILL_MESSAGES, PAGE_LIMIT, Timing
from channels.slack.outbound import MessageCall
from core.contracts.errors import ChannelError, SendUnknown

ITEM_EVENT = "lodger_item"
"""The `event_type` of a message's metadata; its payload's `id` is the outbox id of what was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The app as it sees itself; `scopes` are what it was given."""

    team: str
    user: str
    bot: str
    name: str
    workspace: str
    scopes: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A file that was announced: where its bytes go, and its id."""

    url: str
    file: str


class SlackApi:
    """One app's Web API in one workspace. Calls may be made concurrently.

    All methods raise `ChannelError`; see `channels.slack.errors`.
    """

    def __init__(
        self,
        token: str,
        api_base: str,
        mask: Callable[[str], str],
        timing: Timing | None = None,
        *,
        app_token: str = "",
    ) -> None:
        """Take the bot's token and, for Socket Mode, the app's; does no I/O."""
        self._mask = mask
        self._app_token = app_token.strip()
        self._connection = Connection(token, api_base, timing or Timing())

    # Who and where

    async def identity(self) -> Identity:
        """Return who the app is and what it may do."""
        answer = await self._call(self._client.auth_test())
        return Identity(
            team=answer.text("team_id"),
            user=answer.text("user_id"),
            bot=answer.text("bot_id"),
            name=answer.text("user"),
            workspace=answer.text("team"),
            scopes=answer.scopes,
        )

    async def user(self, user: str) -> Json:
        """Return a person as users.info shows them."""
        return (await self._call(self._client.users_info(user=user))).item("user")

    async def user_groups(self) -> tuple[Json, ...]:
        """Return the workspace's groups of people, each with `id`, `handle` and `users`."""
        return (await self._call(self._client.usergroups_list(include_users=True))).items("usergroups")

    async def members_of_group(self, group: str) -> tuple[str, ...]:
        """Return the ids of the people in a group of people."""
        answer = await self._call(self._client.usergroups_users_list(usergroup=group))
        return answer.texts("users")

    async def channel(self, channel: str) -> Json:
        """Return a conversation as conversations.info shows it."""
        return (await self._call(self._client.conversations_info(channel=channel))).item("channel")

    async def joined_channels(self) -> tuple[Json, ...]:
        """Return the conversations that the app is in, direct ones left out."""
        found: list[Json] = []
        cursor = ""
        while True:
            answer = await self._call(
                self._client.users_conversations(
                    types="public_channel,private_channel,mpim",
                    exclude_archived=True,
                    limit=PAGE_LIMIT,
                    cursor=cursor or None,
                )
            )
            found += answer.items("channels")
            cursor = answer.next_cursor
            if not cursor:
                return tuple(found)

    # What was said

    async def history(
        self, channel: str, oldest: str = "", *, limit: int = BACKFILL_MESSAGES, metadata: bool = False
    ) -> tuple[Json, ...]:
        """Return the newest messages of a channel itself that came after `oldest`, the oldest first.

        Replies in threads are not among them.
        """
        found: list[Json] = []
        cursor = ""
        while True:
            answer = await self._call(
                self._client.conversations_history(
                    channel=channel,
                    oldest=oldest or None,
                    limit=min(limit - len(found), PAGE_LIMIT),
                    cursor=cursor or None,
                    include_all_metadata=metadata,
                )
            )
            found += answer.items("messages")
            cursor = answer.next_cursor
            if not cursor or len(found) >= limit:
                return tuple(reversed(found[:limit]))

    async def replies(
        self, channel: str, root: str, oldest: str = "", *, limit: int = BACKFILL_MESSAGES, metadata: bool = False
    ) -> tuple[Json, ...]:
        """Return the newest messages of a thread that came after `oldest`, its root among them, the oldest first."""
        found: dict[str, Json] = {}
        cursor = ""
        while True:
            answer = await self._call(
                self._client.conversations_replies(
                    channel=channel,
                    ts=root,
                    oldest=oldest or None,
                    limit=PAGE_LIMIT,
                    cursor=cursor or None,
                    include_all_metadata=metadata,
                )
            )
            # Every page begins with the root, however old.
            found |= {str(message["ts"]): message for message in answer.items("messages") if "ts" in message}
            cursor = answer.next_cursor
            if not cursor:
                return tuple(message for ts, message in found.items() if is_after(ts, oldest))[-limit:]

    async def message(self, channel: str, root: str | None, ts: str) -> Json | None:
        """Return one message, in the thread of `root` or in the channel itself; None: it is not there."""
        if root is None:
            call = self._client.conversations_history(channel=channel, oldest=ts, latest=ts, inclusive=True, limit=1)
        else:
            call = self._client.conversations_replies(
                channel=channel, ts=root, oldest=ts, latest=ts, inclusive=True, limit=1
            )
        found = (await self._call(call)).items("messages")
        return next((message for message in found if message.get("ts") == ts), None)

    # Messages

    async def show(self, call: MessageCall) -> str:
        """Post or change a message, and return its ts."""
        metadata = {"event_type": ITEM_EVENT, "event_payload": {"id": call.item_id}} if call.item_id else None
        if call.ts is not None:
            update = self._client.chat_update(
                channel=call.channel,
                ts=call.ts,
                text=call.text,
                blocks=list(call.blocks) or None,
                metadata=metadata,
                link_names=False,
            )
            await self._call(update)
            return call.ts
        post = self._client.chat_postMessage(
            channel=call.channel,
            text=call.text,
            blocks=list(call.blocks) or None,
            thread_ts=call.thread,
            metadata=metadata,
            unfurl_links=False,
            unfurl_media=False,
            link_names=False,
        )
        return _sent(await self._call(post))

    async def delete(self, channel: str, ts: str) -> None:
        """Delete a message."""
        await self._call(self._client.chat_delete(channel=channel, ts=ts))

    async def react(self, channel: str, ts: str, name: str) -> None:
        """Add a reaction, by Slack's name of it."""
        await self._call(self._client.reactions_add(channel=channel, timestamp=ts, name=name))

    async def unreact(self, channel: str, ts: str, name: str) -> None:
        """Take a reaction of the app back."""
        await self._call(self._client.reactions_remove(channel=channel, timestamp=ts, name=name))

    async def respond(self, response_url: str, text: str) -> None:
        """Show mrkdwn to whoever pressed or commanded, and to nobody else."""
        body = {
            "text": text,
            "response_type": "ephemeral",
            "replace_original": False,
            "unfurl_links": False,
            "unfurl_media": False,
        }
        try:
            status, answer, headers = await self._connection.post(response_url, body)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise unreached(error, self._mask) from error
        if status != HTTPStatus.OK:
            raise refusal(status, _decoded(answer), headers, self._mask)

    # Streams

    async def start_stream(self, channel: str, thread: str, text: str, recipient: tuple[str, str] | None) -> str:
        """Begin a streamed message with Markdown, for a person (team, user) in a channel; return its ts."""
        team, user = recipient or (None, None)
        call = self._client.chat_startStream(
            channel=channel, thread_ts=thread, markdown_text=text, recipient_team_id=team, recipient_user_id=user
        )
        return _sent(await self._call(call))

    async def append_stream(self, channel: str, ts: str, text: str) -> None:
        """Put Markdown behind what was streamed."""
        await self._call(self._client.chat_appendStream(channel=channel, ts=ts, markdown_text=text))

    async def stop_stream(self, channel: str, ts: str) -> None:
        """End a streamed message as it is."""
        await self._call(self._client.chat_stopStream(channel=channel, ts=ts))

    # What the agent does

    async def set_status(self, channel: str, thread: str, status: str) -> None:
        """Show a line below a thread, for two minutes or until the next message; empty clears it."""
        await self._call(self._client.assistant_threads_setStatus(channel_id=channel, thread_ts=thread, status=status))

    async def set_session(self, channel: str, thread: str, status: str) -> None:
        """Let the session of a thread be `processing` or `active`."""
        await self._call(self._client.agents_sessions_setStatus(channel_id=channel, thread_ts=thread, status=status))

    async def rename_session(self, channel: str, thread: str, title: str) -> None:
        """Give the session of a thread a title."""
        await self._call(self._client.agents_sessions_rename(channel_id=channel, thread_ts=thread, title=title))

    async def suggest(self, channel: str, prompts: Sequence[tuple[str, str]], thread: str | None = None) -> None:
        """Offer prompts in a direct channel, each as (title, message)."""
        shown = [{"title": title, "message": message} for title, message in prompts]
        await self._call(
            self._client.api_call(
                "assistant.threads.setSuggestedPrompts",
                json={"channel_id": channel, "prompts": shown} | ({"thread_ts": thread} if thread else {}),
            )
        )

    # Views

    async def open_view(self, trigger_id: str, view: Json) -> None:
        """Open a modal for whoever acted."""
        await self._call(self._client.views_open(trigger_id=trigger_id, view=view))

    async def publish_view(self, user: str, view: Json) -> None:
        """Draw the home of a person."""
        await self._call(self._client.views_publish(user_id=user, view=view))

    # Files

    async def file(self, file: str) -> Json:
        """Return a file as files.info shows it."""
        return (await self._call(self._client.files_info(file=file))).item("file")

    async def begin_upload(self, name: str, size_bytes: int) -> Upload:
        """Announce a file."""
        answer = await self._call(self._client.files_getUploadURLExternal(filename=name, length=size_bytes))
        upload = Upload(url=answer.text("upload_url"), file=answer.text("file_id"))
        if not (upload.url and upload.file):
            raise SendUnknown("the answer does not say where the file goes")
        return upload

    async def send_bytes(self, upload: Upload, content: BinaryIO, size_bytes: int) -> None:
        """Send a file's bytes, read while they go; nobody sees it before `share`."""
        try:
            status = await self._connection.upload(upload.url, content, size_bytes)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise unreached(error, self._mask) from error
        if status != HTTPStatus.OK:
            raise refusal(status, {}, {}, self._mask)

    async def share(self, file: str, *, title: str, channel: str, thread: str | None, comment: str) -> None:
        """Post a file whose bytes were sent; Slack does it soon after it answers."""
        await self._call(
            self._client.files_completeUploadExternal(
                files=[{"id": file, "title": title}],
                channel_id=channel,
                thread_ts=thread,
                initial_comment=comment or None,
            )
        )

    def open_file(self, url: str) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """Open a file of Slack's; see `channels.slack.connection.Connection.open_file`."""
        return self._connection.open_file(url)

    def is_own(self, url: str) -> bool:
        """Return whether an address is one of Slack's own servers."""
        return self._connection.is_own(url)

    # Connections

    async def open_socket(self) -> str:
        """Return the address of a new socket, which holds its own secret."""
        answer = await self._call(self._client.apps_connections_open(app_token=self._app_token))
        return answer.text("url")

    async def leave(self, channel: str) -> None:
        """Leave a channel; being out of it already is no failure."""
        try:
            await self._call(self._client.conversations_leave(channel=channel))
        except NotInChannel:
            return

    async def server_time(self) -> datetime | None:
        """Return the time on Slack's clock, in whole seconds; None when it does not tell."""
        try:
            return (await self._call(self._client.auth_test())).sent_at
        except ChannelError:
            return None

    async def aclose(self) -> None:
        """Close all connections."""
        await self._connection.aclose()

    @property
    def _client(self) -> AsyncWebClient:
        return self._connection.client

    async def _call(self, call: Awaitable[AsyncSlackResponse]) -> Answer:
        try:
            response = await call
        except SlackApiError as error:
            # Not `from error`: that one's text is the whole answer, with whatever stands in it.
            raise answered(error, self._mask) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise unreached(error, self._mask) from error
        except (AttributeError, ValueError) as error:
            # The SDK stumbles over an answer that is a text, a list, packed or no text at all.
            raise SendUnknown("the answer is none of Slack's: it cannot be read") from error
        if not isinstance(response.data, dict):
            raise SendUnknown("the answer is none of Slack's: it is no object")
        return Answer(body=response.data, headers=response.headers)


def _sent(answer: Answer) -> str:
    """Return the ts of a new message."""
    if ts := answer.text("ts"):
        return ts
    raise SendUnknown("the answer does not say which message it made")


def _decoded(text: str) -> Mapping[str, Any]:
    try:
        decoded = json.loads(text)
    except ValueError:
        return {}
    return decoded if isinstance(decoded, dict) else {}
