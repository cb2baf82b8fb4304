"""What proofs by kill -9 on Slack share: a person in her direct messages, over the lives of several hosts."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.acceptance.kill_kit import RULES, WAIT, Lives, Model, require_transcript, serving_host
from tests.acceptance.processes import Place, make_place, openai_model
from tests.acceptance.wired_slack import ALICE_IDENTITY
from tests.platforms.slack_deliveries import Delivery
from tests.platforms.slack_message import Message
from tests.platforms.slack_server import SlackServer
from tests.platforms.slack_workspace import ALICE, ALICE_DM


@dataclass(frozen=True)
class SlackScene(Lives):
    """A direct conversation on Slack; `said` is what Alice said, all of it in one thread."""

    place: Place
    slack: SlackServer
    model: Model
    said: list[str] = field(default_factory=list)
    roots: list[str] = field(default_factory=list)

    @property
    def server(self) -> SlackServer:
        return self.slack

    def says(self, word: str) -> Delivery:
        """Let Alice say one word, which is said once only; return how the host is told of it."""
        ts = self.slack.user_says(ALICE_DM, ALICE, word, thread_ts=next(iter(self.roots), None))
        self.said.append(word)
        self.roots.append(ts)
        return next(d for d in self.slack.deliveries.all if d.event.get("ts") == ts)

    def visible(self) -> list[Message]:
        return self.slack.visible(ALICE_DM)

    def shown(self) -> list[str]:
        return [message.text for message in self.visible()]

    def cards(self) -> list[Message]:
        """Return the questions that nobody has decided, as they look."""
        return [message for message in self.visible() if "Approve" in message.buttons]

    async def card(self) -> Message:
        """Wait for the first question."""
        await self.slack.wait_for(self.cards, timeout=WAIT)
        return self.cards()[0]

    def presses(self, card: Message, button: str) -> None:
        """Let Alice press what stood on a card when she saw it."""
        self.slack.presses(ALICE, ALICE_DM, card.ts, button, stale=True)

    def sends(self) -> list[str]:
        """Return in which state each text and card is, answers that are not complete left out."""
        return [state for (state,) in self.rows("SELECT state FROM outbox WHERE state != 'live' ORDER BY created_at")]


@asynccontextmanager
async def slack_scene(
    root, *, commands: Mapping[str, Sequence[str]] | None = None, more: str = RULES
) -> AsyncIterator[SlackScene]:
    """Set everything up but the host; Alice may talk and decide."""
    plans: Mapping[str, Sequence[str]] = commands or {}
    model = Model(lambda word: plans.get(word, ()))
    async with SlackServer() as slack, model.server as server:
        tokens = f"bot_token = {json.dumps(slack.token)}\napp_token = {json.dumps(slack.app_token)}\n"
        channel = f"[channels.slack]\n{tokens}api_base = {json.dumps(slack.api_base)}\n"
        people = f'operators = ["{ALICE_IDENTITY}"]\n'
        place = make_place(root, model=openai_model(server.base_url), more=f"{people}{channel}{more}")
        yield SlackScene(place, slack, model)


async def require_sound_on_slack(scene: SlackScene, *, once_up: Callable[[], object] = lambda: None) -> None:
    """Start a host once more: all that was said is answered once, no text stands twice, and it goes on.

    Args:
        once_up: What people do as soon as it serves.
    """
    async with serving_host(scene.place) as host:
        await scene.slack.wait_for(lambda: scene.slack.sockets.is_open, timeout=WAIT)
        once_up()
        await scene.hears(*scene.said)
        scene.says("afterwards")
        await scene.hears("afterwards")
        assert await host.stop() == 0
        assert "Traceback" not in host.output
    require_transcript(scene)
    assert scene.heard() == dict.fromkeys(scene.said, 1), scene.shown()
