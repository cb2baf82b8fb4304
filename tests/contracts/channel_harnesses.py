"""Channels with their platforms and people, for the contract suite.

A harness owns its channel and plays the platform: `say`, `press`, `seen`, `reactions`, `delete`,
`answered`, `offer` (a file that came with a message), and what goes wrong between a channel and its
platform: `limit_next`, `reject_next` (and `refused`, when that was met), `lose_next_answer`,
`refuse_token`, `move` (a group goes on under another id). To hold another channel to the contract,
write one and add its opener to `HARNESSES`, and to `REMOTE` where something can go wrong.
"""

import asyncio
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from channels.fake import FakeChannel
from channels.feed import FeedChannel, Noticed, Previewed, Removed, Shown
from channels.telegram.adapter import TelegramChannel
from channels.telegram.limits import Timing
from core.contracts.addresses import (
    Address,
    Attachment,
    CardContent,
    FileContent,
    InboundEvent,
    MessageBody,
    PressBody,
    Privacy,
    ReactionContent,
    Sender,
)
from core.contracts.clock import SystemClock
from core.contracts.errors import ChannelDown, ChatMoved, SendLimited, SendRejected, StoreError
from tests.platforms.telegram_server import TOKEN, TelegramServer


class FastClock(SystemClock):
    """A clock on which time runs fifty times as fast, so that back-offs are short."""

    def monotonic(self):
        return super().monotonic() * 50

    async def sleep(self, duration):
        await super().sleep(duration / 50)


@dataclass
class Seen:
    """A message as people see it."""

    external_id: str
    text: str
    labels: tuple[str, ...]


def attachment(handle, data):
    return Attachment(handle=handle, name="notes.bin", media_type="application/octet-stream", size_bytes=len(data))


class FakeHarness:
    """The channel in memory, which is its own platform."""

    def __init__(self):
        self.channel = FakeChannel("fake", clock=FastClock())
        self.address = Address(channel="fake", account="bot", chat="111")
        self._count = 0

    async def close(self):
        pass

    def say(self, text):
        self._push(MessageBody(text=text))

    def press(self, seen, label):
        token = self.channel.messages[seen.external_id].buttons[label]
        self._push(PressBody(token=token, card=seen.external_id, acknowledge="q1"))

    def _push(self, body):
        self._count += 1
        self.channel.push(
            InboundEvent(
                address=self.address,
                key=f"event/{self._count}",
                sender=Sender(identity="fake:111", name="Alice"),
                body=body,
                privacy=Privacy.DIRECT,
                sent_at=datetime(2026, 1, 1, tzinfo=UTC),
            )
        )

    def seen(self):
        return [Seen(m.external_id, m.text, tuple(m.buttons)) for m in self.channel.messages.values()]

    def reactions(self, message):
        return self.channel.reactions.get(message, "")

    def delete(self, external_id):
        self.channel.delete(external_id)

    def offer(self, data):
        self.channel.files["f1"] = data
        return attachment("f1", data)

    def move(self):
        self.channel.fail_next(ChatMoved("upgraded", chat="new"))
        return self.address, "new"

    def limit_next(self, seconds):
        self.channel.fail_next(SendLimited("slow down", retry_after=timedelta(seconds=seconds)))

    def reject_next(self):
        self.channel.fail_next(SendRejected("blocked"))

    async def refused(self):
        """Return when the call of `reject_next` was made."""

    def lose_next_answer(self):
        self.channel.lose_next_answer()

    def refuse_token(self):
        self.channel.refuse_token()

    def answered(self):
        return [text for _, text in self.channel.acknowledgements]


class TelegramHarness:
    """The real adapter and SDK against the fake Bot API."""

    def __init__(self, server):
        moment = timedelta(milliseconds=1)
        self.server = server
        self.channel = TelegramChannel(
            token=TOKEN,
            api_base=server.api_base,
            clock=FastClock(),
            mask=lambda text: text,
            timing=Timing(private_interval=moment, preview_delay=moment, press_grace=timedelta(seconds=30)),
        )
        self.address = Address(channel="telegram", account="123456789", chat="111")
        server.open_chat(111)

    @classmethod
    async def open(cls):
        server = TelegramServer(TOKEN)
        await server.start()
        return cls(server)

    async def close(self):
        await self.channel.__aexit__(None, None, None)
        await self.server.stop()

    def say(self, text):
        self.server.user_says(111, text)

    def press(self, seen, label):
        message_id = int(seen.external_id)
        data = self.server.chats.by_id[111].messages[message_id].buttons[label]
        self.server.press(111, message_id, data)

    def seen(self):
        return [Seen(str(m.id), _told(m), tuple(m.buttons)) for m in self.server.visible(111)]

    def reactions(self, message):
        return "".join(self.server.chats.by_id[111].messages[int(message)].reactions)

    def delete(self, external_id):
        self.server.delete(111, int(external_id))

    def offer(self, data):
        return attachment(self.server.files.keep(data).id, data)

    def move(self):
        self.server.open_chat(-4001)
        self.server.migrate(-4001, -1001000000002, told=False)
        return replace(self.address, chat="-4001"), "-1001000000002"

    def limit_next(self, seconds):
        body = {"ok": False, "error_code": 429, "description": "Too Many", "parameters": {"retry_after": seconds}}
        self.server.fail_next("sendMessage", 429, body)

    def reject_next(self):
        body = {"ok": False, "error_code": 403, "description": "Forbidden: bot was blocked by the user"}
        self.server.fail_next("sendMessage", 403, body)

    async def refused(self):
        await self.server.wait_for(lambda: any(call.status == 403 for call in self.server.calls))

    def lose_next_answer(self):
        self.server.fail_next("sendMessage", drop_after=True)

    def refuse_token(self):
        self.server.revoked = True
        self.server.updates.end_poll("revoked")

    def answered(self):
        return list(self.server.answers.values())


def _told(message):
    """Return what can be read of a message: its file's name, and its text."""
    parts = [message.file.name] if message.file is not None else []
    return "\n\n".join(parts + ([message.text] if message.text else []))


class FeedHarness:
    """The channel of this machine with one viewer, whose client repeats what was not stored."""

    def __init__(self):
        self.channel = FeedChannel("local", FastClock())
        self.address = self.channel.address("main")
        self._sender = Sender(identity="local:owner", name="Alice")
        self._typed = asyncio.Queue()
        self._view = {}
        self._tokens = {}
        self._reactions = {}
        self._notices = []
        self._stack = AsyncExitStack()

    @classmethod
    async def open(cls):
        harness = cls()
        harness._feed = await harness._stack.enter_async_context(harness.channel.subscribe("main"))
        harness._client = asyncio.create_task(harness._send_what_is_typed())
        return harness

    async def close(self):
        self._client.cancel()
        await asyncio.wait({self._client})
        await self._stack.aclose()

    async def _send_what_is_typed(self):
        count = 0
        while True:
            send = await self._typed.get()
            count += 1
            while not await self._is_stored(send, f"typed-{count}"):
                await asyncio.sleep(0.001)

    async def _is_stored(self, send, key):
        try:
            await send(key)
        except (StoreError, ChannelDown):
            return False
        return True

    def say(self, text):
        self._typed.put_nowait(lambda key: self.channel.say("main", self._sender, text, key=key))

    def press(self, seen, label):
        token = self._tokens[seen.external_id][label]
        self._typed.put_nowait(lambda _key: self.channel.press("main", self._sender, token, seen.external_id))

    def seen(self):
        while not self._feed.empty():
            self._draw(self._feed.get_nowait())
        return list(self._view.values())

    def _draw(self, event):
        match event:
            case Previewed(external_id=message, text=text):
                self._view[message] = Seen(message, text, ())
            case Shown(external_id=message, content=CardContent(text=text, code=code, rows=rows)):
                self._tokens[message] = {button.label: button.token for row in rows for button in row}
                self._view[message] = Seen(message, f"{text}\n{code}", tuple(self._tokens[message]))
            case Shown(external_id=message, content=FileContent(name=name, caption=caption)):
                self._view[message] = Seen(message, f"{name}\n\n{caption}", ())
            case Shown(external_id=message, content=ReactionContent(emoji=emoji)):
                self._reactions[message] = emoji
            case Shown(external_id=message, content=content):
                self._view[message] = Seen(message, content.markdown, ())
            case Removed(external_id=message):
                self._view.pop(message, None)
                self._reactions.pop(message, None)
            case Noticed(text=text):
                self._notices.append(text)

    def reactions(self, message):
        self.seen()
        return self._reactions.get(f"reaction/{message}", "")

    def delete(self, external_id):
        self.seen()
        del self._view[external_id]

    def offer(self, data):
        folder = self._stack.enter_context(tempfile.TemporaryDirectory())
        path = Path(folder, "notes.bin")
        path.write_bytes(data)
        return attachment(str(path), data)

    def answered(self):
        self.seen()
        return self._notices


async def _fake():
    return FakeHarness()


REMOTE = {"fake": _fake, "telegram": TelegramHarness.open}
"""Channels with a network between them and their platform, where sends and tokens can be refused."""

HARNESSES = {**REMOTE, "feed": FeedHarness.open}
