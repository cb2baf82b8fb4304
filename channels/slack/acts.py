"""From what people press, choose, send and command on Slack to what it means; pure."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from itertools import accumulate

from channels.slack.forms import FORM, INPUT, read_memory
from channels.slack.message_ids import message_id
from channels.slack.payload import Json, item, items, text

ASK = "ask_about_this"
"""The callback id of the shortcut on a message, and of the form that it opens."""
QUESTION = "question"
"""The one field of that form."""
_QUOTED_CHARS = 800
_QUOTED_ROOM_CHARS = 2_700
"""How much of a message its form remembers, and what that may take of a form's 3,000 characters, escaped twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What an act entitles the app to: to answer by `url`, and to open a form by `trigger`; and where it was."""

    url: str = ""
    trigger: str = ""
    channel: str = ""
    ts: str = ""
    root: str | None = None

    def packed(self) -> str:
        """Return it as an `acknowledge`."""
        return json.dumps(asdict(self))


def unpacked(acknowledge: str | None) -> Reply:
    """Return what an act entitled the app to; nothing where that cannot be read."""
    try:
        return Reply(**json.loads(acknowledge or ""))
    except (ValueError, TypeError):
        return Reply()


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """Something that somebody did with what the app showed, or with a message.

    `channel` is empty on a home screen. `values` are the texts of a form that was sent, `quote` the
    message that a question is about, with its author's id.
    """

    key: str
    user: str
    team: str
    name: str
    reply: Reply
    token: str = ""
    channel: str = ""
    ts: str = ""
    root: str | None = None
    values: tuple[tuple[str, str], ...] = ()
    quote: tuple[str, str] | None = None

    @property
    def card(self) -> str:
        """The external id of the message that was acted on; empty on a home screen."""
        return message_id(self.root, self.ts) if self.ts else ""


def remembered(reply: Reply) -> str:
    """Return what a form has to remember of the act that opened it."""
    return json.dumps([reply.channel, reply.ts, reply.root, reply.url])


def parse_press(payload: Json) -> Act | None:
    """Return the press of one of the app's own buttons; None for any other act."""
    if text(payload, "type") != "block_actions":
        return None
    action = next(iter(items(payload, "actions")), {})
    container = item(payload, "container")
    token, trigger = text(action, "value"), text(payload, "trigger_id")
    act = _act(payload, f"p/{trigger}")
    on_home = text(item(payload, "view"), "type") == "home"
    if act is None or not token or not trigger or not (on_home or text(container, "message_ts")):
        return None
    url = text(payload, "response_url")
    if on_home:
        return replace(act, token=token, reply=Reply(url=url, trigger=trigger))
    ts, thread = text(container, "message_ts"), text(container, "thread_ts")
    root = thread if thread and thread != ts else None
    channel = text(container, "channel_id") or text(item(payload, "channel"), "id")
    if not channel:
        return None
    reply = Reply(url=url, trigger=trigger, channel=channel, ts=ts, root=root)
    return replace(act, token=token, channel=channel, ts=ts, root=root, reply=reply)


def parse_form(payload: Json) -> tuple[str, Act] | None:
    """Return which form was sent, `FORM` or `ASK`, and what it says; None for what is no form of the app."""
    view = item(payload, "view")
    callback = text(view, "callback_id")
    if text(payload, "type") != "view_submission" or callback not in {FORM, ASK}:
        return None
    remembered = read_memory(text(view, "private_metadata"))
    act = _act(payload, f"v/{text(view, 'id')}")
    if remembered is None or act is None or not text(view, "id"):
        return None
    token, memory = remembered
    known = _recalled(memory)
    if known is None:
        return None
    channel, ts, root, more, author = known
    state = item(item(view, "state"), "values")
    values = tuple((name, text(item(item(state, name), INPUT), "value")) for name in state)
    act = replace(act, token=token, channel=channel, ts=ts, root=root, values=values)
    if callback == ASK:
        return callback, replace(act, quote=(more, author))
    return callback, replace(act, reply=Reply(url=more))


def parse_shortcut(payload: Json) -> tuple[str, str] | None:
    """Return the trigger of "Ask about this", and what its form has to remember; None for any other act."""
    message = item(payload, "message")
    ts, channel = text(message, "ts"), text(item(payload, "channel"), "id")
    if text(payload, "type") != "message_action" or text(payload, "callback_id") != ASK or not (ts and channel):
        return None
    root = text(message, "thread_ts")
    said = _quoted(text(message, "text"))
    memory = json.dumps([channel, ts, root if root and root != ts else None, said, text(message, "user")])
    return text(payload, "trigger_id"), memory


def parse_command(payload: Json) -> tuple[Act, str] | None:
    """Return a slash command as (who and where, what it says: `/status`); None for what is none."""
    if not text(payload, "command"):
        return None
    trigger = text(payload, "trigger_id")
    channel, user = text(payload, "channel_id"), text(payload, "user_id")
    if not (channel and user and trigger):
        return None
    act = Act(
        key=f"c/{trigger}",
        user=user,
        team=text(payload, "team_id"),
        name=text(payload, "user_name"),
        reply=Reply(url=text(payload, "response_url"), trigger=trigger),
        channel=channel,
    )
    words = text(payload, "text").strip().removeprefix("/")
    return act, f"/{words or 'help'}"


def _quoted(said: str) -> str:
    """Return as much of a message as its form can remember, which writes it as JSON inside JSON."""
    begun = said[:_QUOTED_CHARS]
    empty = len(json.dumps(json.dumps("")))
    taken = accumulate(len(json.dumps(json.dumps(char))) - empty for char in begun)
    return begun[: sum(1 for total in taken if total <= _QUOTED_ROOM_CHARS)]


def _recalled(memory: str) -> tuple[str, str, str | None, str, str] | None:
    """Return channel, ts, root, what else a form remembers and whose words that are; None where it is no memory."""
    try:
        known = json.loads(memory)
    except ValueError:
        return None
    match known:
        case [str(channel), str(ts), (str() | None) as root, str(more)]:
            return channel, ts, root, more, ""
        case [str(channel), str(ts), (str() | None) as root, str(more), str(author)]:
            return channel, ts, root, more, author
        case _:
            return None


def _act(payload: Json, key: str) -> Act | None:
    user = item(payload, "user")
    if not text(user, "id"):
        return None
    return Act(
        key=key,
        user=text(user, "id"),
        team=text(user, "team_id") or text(item(payload, "team"), "id"),
        name=text(user, "name") or text(user, "username"),
        reply=Reply(),
    )
