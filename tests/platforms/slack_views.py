"""The views of a fake Slack: modals that are opened by a trigger, and a home of each person.

After docs.slack.dev/surfaces/modals and docs.slack.dev/reference/methods/views.open as read on 2026-11-30.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from tests.platforms.slack_blocks import checked_view
from tests.platforms.slack_deliveries import Deliveries, Delivery
from tests.platforms.slack_interactions import Interactions
from tests.platforms.slack_presses import filled_in, pressed
from tests.platforms.slack_refusals import Refusal, required
from tests.platforms.slack_workspace import APP, BOT, TEAM, Json, Workspace

STACK_LIMIT = 3


@dataclass
class View:
    """One view as its person sees it. `errors` are what the last submission was refused with, by block."""

    id: str
    user: str
    content: Json
    hash: str
    root: str
    previous: str | None = None
    is_open: bool = True
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        text: str = (self.content.get("title") or {}).get("text", "")
        return text

    @property
    def blocks(self) -> list[Json]:
        blocks: list[Json] = self.content["blocks"]
        return blocks

    def as_json(self, state: Json | None = None) -> Json:
        base = {name: self.content.get(name) for name in ("title", "submit", "close")}
        return base | {
            "id": self.id,
            "team_id": TEAM,
            "type": self.content["type"],
            "blocks": self.blocks,
            "private_metadata": self.content.get("private_metadata", ""),
            "callback_id": self.content.get("callback_id", ""),
            "external_id": self.content.get("external_id", ""),
            "state": state or {"values": {}},
            "hash": self.hash,
            "clear_on_close": bool(self.content.get("clear_on_close")),
            "notify_on_close": bool(self.content.get("notify_on_close")),
            "root_view_id": self.root,
            "previous_view_id": self.previous,
            "app_id": APP,
            "app_installed_team_id": TEAM,
            "bot_id": BOT,
        }


class Views:
    """Every view there was, and what people do in them."""

    def __init__(self, workspace: Workspace, deliveries: Deliveries, interactions: Interactions) -> None:
        self.by_id: dict[str, View] = {}
        self.homes: dict[str, View] = {}
        self._workspace = workspace
        self._deliveries = deliveries
        self._interactions = interactions
        self._ids = itertools.count(1)

    def opened(self, user: str) -> View | None:
        """Return the modal that lies on top for somebody; None: there is none."""
        shown = [view for view in self.by_id.values() if view.user == user and view.is_open]
        return shown[-1] if shown else None

    # What the app does

    def open(self, params: Json) -> Json:
        """Carry out views.open."""
        content = checked_view(params.get("view"), "modal")
        return {"view": self._add(self._interactions.exchange(params).user, content).as_json()}

    def push(self, params: Json) -> Json:
        """Carry out views.push; three modals lie on each other at most."""
        content = checked_view(params.get("view"), "modal")
        user = self._interactions.exchange(params).user
        below = self.opened(user)
        if below is not None and self._depth(below) >= STACK_LIMIT:
            raise Refusal("push_limit_reached")
        return {"view": self._add(user, content, below).as_json()}

    def update(self, params: Json) -> Json:
        """Carry out views.update, of a `view_id` or an `external_id`."""
        content = checked_view(params.get("view"), "modal", "home")
        view_id, external_id = params.get("view_id"), params.get("external_id")
        known = [*self.by_id.values(), *self.homes.values()]
        found = (v for v in known if v.id == view_id or (external_id and v.content.get("external_id") == external_id))
        view = next((v for v in found if v.is_open), None)
        if view is None:
            raise Refusal("not_found")
        self._change(view, content, params)
        return {"view": view.as_json()}

    def publish(self, params: Json) -> Json:
        """Carry out views.publish: the home of one person."""
        content = checked_view(params.get("view"), "home")
        user = self._workspace.person(required(params, "user_id")).id
        view = self.homes.get(user)
        if view is None:
            view_id = f"VHOME{next(self._ids)}"
            self.homes[user] = view = View(view_id, user, content, self._workspace.next_ts(), root=view_id)
        else:
            self._change(view, content, params)
        return {"view": view.as_json()}

    # What people do

    def submits(self, user: str, values: dict[str, str], view_id: str = "") -> Delivery:
        """Send the modal on top, or that one; `values` by action id or block id."""
        view = self.by_id[view_id] if view_id else self.opened(user)
        assert view is not None, f"no view is open for {user}"
        assert view.is_open, "that view is closed"
        payload = self._interactions.act("view_submission", user) | {
            "trigger_id": self._interactions.trigger(user),
            "view": view.as_json(filled_in(view.blocks, values)),
            "response_urls": [],
        }
        return self._deliveries.tell("interactive", payload, lambda answer: self._answered(view, answer))

    def closes(self, user: str, view_id: str = "") -> Delivery | None:
        """Close the modal on top, or that one; the app is told if the view asked for it."""
        view = self.by_id[view_id] if view_id else self.opened(user)
        assert view is not None, f"no view is open for {user}"
        view.is_open = False
        if not view.content.get("notify_on_close"):
            return None
        closed = {"view": view.as_json(), "is_cleared": False}
        return self._deliveries.tell("interactive", self._interactions.act("view_closed", user) | closed)

    def presses(self, user: str, action: str, option: str = "") -> Delivery:
        """Press what has that action id, value or label: in the modal on top, or else in the home."""
        view = self.opened(user) or self.homes.get(user)
        assert view is not None, f"{user} sees no view"
        payload = self._interactions.act("block_actions", user) | {
            "container": {"type": "view", "view_id": view.id},
            "trigger_id": self._interactions.trigger(user),
            "view": view.as_json(),
            "actions": [pressed(view.blocks, action, option, self._workspace.next_ts())],
        }
        return self._deliveries.tell("interactive", payload)

    def opens_home(self, user: str, tab: str) -> Delivery:
        """Look at the app's home or, with the tab `messages`, at the direct channel."""
        event: Json = {"type": "app_home_opened", "user": user, "channel": self._workspace.direct(user).id, "tab": tab}
        if tab == "home" and user in self.homes:
            event["view"] = self.homes[user].as_json()
        return self._deliveries.event(event)

    # Parts

    def _add(self, user: str, content: Json, below: View | None = None) -> View:
        view_id = f"V{next(self._ids):06d}"
        previous, root = (None, view_id) if below is None else (below.id, below.root)
        view = View(view_id, user, content, self._workspace.next_ts(), root, previous)
        self.by_id[view_id] = view
        return view

    def _change(self, view: View, content: Json, params: Json) -> None:
        if params.get("hash") not in {None, "", view.hash}:
            raise Refusal("hash_conflict")
        view.content, view.hash, view.errors = content, self._workspace.next_ts(), {}

    def _depth(self, view: View) -> int:
        return sum(1 for other in self.by_id.values() if other.root == view.root and other.is_open)

    def _answered(self, view: View, answer: Json) -> None:
        """Do what came with the acknowledgement of a submission; nothing closes the view."""
        match answer.get("response_action"):
            case "errors":
                view.errors = answer.get("errors", {})
                unknown = set(view.errors) - {block["block_id"] for block in view.blocks}
                assert not unknown, f"errors for blocks that are not there: {unknown}"
            case "update":
                self._change(view, checked_view(answer.get("view"), "modal"), {})
            case "push":
                self._add(view.user, checked_view(answer.get("view"), "modal"), view)
            case "clear":
                for other in self.by_id.values():
                    other.is_open = other.is_open and other.root != view.root
            case _:
                view.is_open = False
