"""Images of a conversation on the wire: the same bytes every time, or words for good and a recorded break."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pytest

from core.backends.local.backend import LocalBackend
from core.backends.local.images import BREAKS, Removal, removal_after, without_images
from core.contracts.agents import ModelSettings
from core.contracts.attachments import LeftOut, StoredAttachment
from core.contracts.errors import ModelBusy, ModelImageRefused, ModelPayloadTooLarge, StoreUnavailable
from core.contracts.events import PromptRecompiled, RetryNotice, RunFinished
from core.contracts.ids import CallId
from core.contracts.messages import ImagePart, ReturnOutcome, Role, TextPart, ToolReturn
from core.contracts.runs import ApprovalInput, StopReason, UserInput
from core.models.direct import DirectClient
from core.stores.attachments import StoredImages
from tests.contracts.backend_harnesses import SPEC, BackendWorld, local_in_memory
from tests.core.models.transcripts import assistant, call, rows, user
from tests.core.stores.samples import START
from tests.core.tools.image_samples import png
from tests.platforms.anthropic_server import AnthropicServer, error
from tests.platforms.model_images import blocks_of, images_in
from tests.platforms.model_script import Answer, Call, ModelServer, Status
from tests.platforms.openai_server import OpenAIServer

FORMS = {"openai": (OpenAIServer, "openai/gpt-4o"), "anthropic": (AnthropicServer, "anthropic/claude-sonnet-4-5")}
NOISE = 30_000


def picture(number: int) -> bytes:
    """Return an image of about 30 kB; each number another."""
    return png(number, 1, noise=NOISE + number)


@dataclass
class Seeing:
    """A backend whose model sees, the strict server behind it, and a folder of images."""

    world: BackendWorld
    server: ModelServer
    client: DirectClient
    folder: Path
    shelf: StoredImages

    async def says(self, text: str, *numbers: int):
        """Take a step for a message with these images; return what its events tell."""
        parts = [ImagePart(attachment_id=await self.keep(number), media_type="image/png") for number in numbers]
        return await self.step(UserInput(parts=(*parts, TextPart(text=text))))

    async def step(self, run_input):
        return [event.body for event in await self.world.step(run_input)]

    async def keep(self, number: int) -> str:
        path = self.folder / f"{number}.png"
        path.write_bytes(picture(number))
        stored = StoredAttachment(
            id=f"file-{number}",
            conversation_id=self.world.conversation_id,
            inbox_id=number,
            position=0,
            name=path.name,
            media_type="image/png",
            size_bytes=path.stat().st_size,
            path=str(path),
            created_at=START,
        )
        await self.world.stores.attachments.add_attachments([stored])
        return stored.id

    def restart(self) -> None:
        """Go on with another backend on the same stores."""
        self.world.backend = backend_on(self.world, self.client, self.shelf)

    @property
    def sent(self) -> list[list[int]]:
        """The images of each request, by number."""
        numbers = {picture(number): number for number in range(1, 8)}
        return [[numbers[data] for _, data in images_in(body)] for body in self.server.bodies]

    def words(self, number: int) -> str:
        """Return what stands for an image in the newest request."""
        text = json.dumps(self.server.bodies[-1])
        return text.partition(f"[image file-{number}: ")[2].partition("]")[0]


def backend_on(world, client, shelf) -> LocalBackend:
    return LocalBackend(
        store=world.stores.transcripts, memory=world.memory, model=client, clock=world.clock, mask=str, images=shelf
    )


@asynccontextmanager
async def seeing(tmp_path, form, *script, images_fit=99, model=None):
    """Open it; `images_fit` is how many images a request may hold before it is too large."""
    server_type, name = FORMS[form]
    limit = images_fit * (NOISE * 4 // 3 + 1_000) + 20_000
    async with (
        server_type(script or (Answer(text="ok"),), max_request_bytes=limit) as server,
        local_in_memory(None, None) as world,
    ):
        shelf = StoredImages(world.stores.attachments)
        client = DirectClient(resolve_key=lambda _: None, mask=str, images=shelf.read)
        settings = ModelSettings(name="main", model=model or name, api_base=server.base_url)
        await world.backend.update_agent(world.agent.id, replace(SPEC, model=settings))
        async with backend_on(world, client, shelf) as world.backend:
            yield Seeing(world, server, client, tmp_path, shelf)
        await client.aclose()


@pytest.fixture(params=FORMS)
def form(request):
    return request.param


def breaks(bodies):
    return [body.reason for body in bodies if isinstance(body, PromptRecompiled) and body.reason in BREAKS.values()]


def ended(bodies):
    assert isinstance(bodies[-1], RunFinished)
    return bodies[-1].stop_reason


async def test_the_bytes_are_on_the_wire_and_each_turn_is_the_one_before_and_a_tail(tmp_path, form):
    """Invariant 4, over a restart and a tool's image as well."""
    script = (Answer(text="one"), Answer(text="two"), Answer(calls=[Call("c1", "shell", "{}")]), Answer(text="ok"))
    async with seeing(tmp_path, form, *script) as chat:
        await chat.says("first", 1, 2)
        await chat.says("second", 3)
        chat.restart()
        await chat.says("third")
        shown = ToolReturn(
            call_id=CallId("c1"),
            parts=(TextPart(text="seen"), ImagePart(attachment_id=await chat.keep(4), media_type="image/png")),
            outcome=ReturnOutcome.OK,
        )
        await chat.step(ApprovalInput(returns=(shown,)))
        told = await chat.says("fourth")
    assert chat.sent == [[1, 2], [1, 2, 3], [1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4]]
    sent = [blocks_of(body) for body in chat.server.bodies]
    assert [after[: len(before)] == before for before, after in pairwise(sent)] == [True] * 4
    assert breaks(told) == []


async def test_an_image_whose_file_is_gone_becomes_words_once_and_for_good(tmp_path, form):
    async with seeing(tmp_path, form) as chat:
        await chat.says("first", 1, 2)
        (tmp_path / "1.png").unlink()
        assert breaks(await chat.says("second")) == [BREAKS[LeftOut.GONE]]
        assert chat.words(1) == "no longer stored"
        (tmp_path / "1.png").write_bytes(picture(1))
        chat.restart()
        assert breaks(await chat.says("third", 3)) == []
    assert chat.sent == [[1, 2], [2], [2, 3]]
    second, third = (blocks_of(body) for body in chat.server.bodies[1:])
    assert third[: len(second)] == second


async def test_out_of_a_request_that_is_too_large_the_oldest_images_go_first(tmp_path, form):
    async with seeing(tmp_path, form, images_fit=3) as chat:
        await chat.says("first", 1, 2)
        await chat.says("second", 3)
        told = await chat.says("third", 4)
        assert (breaks(told), ended(told)) == ([BREAKS[LeftOut.TOO_LARGE]], StopReason.END_TURN)
        (notice,) = [body for body in told if isinstance(body, RetryNotice)]
        assert (notice.attempt, notice.wait.total_seconds()) == (1, 0)
        assert chat.words(1) == "left out, because the request was too large with it"
        chat.restart()
        assert breaks(await chat.says("fourth")) == []
    assert chat.sent == [[1, 2], [1, 2, 3], [1, 2, 3, 4], [3, 4], [3, 4]]
    before, after = (blocks_of(body) for body in chat.server.bodies[-2:])
    assert after[: len(before)] == before


async def test_where_half_of_the_old_ones_is_not_enough_all_of_them_go(tmp_path, form):
    async with seeing(tmp_path, form, images_fit=2) as chat:
        await chat.says("first", 1, 2)
        told = await chat.says("second", 3, 4)
    assert ended(told) is StopReason.END_TURN
    assert breaks(told) == [BREAKS[LeftOut.TOO_LARGE]] * 2
    assert chat.sent == [[1, 2], [1, 2, 3, 4], [2, 3, 4], [3, 4]]


async def test_an_active_request_that_is_too_large_alone_loses_its_images_last(tmp_path, form):
    async with seeing(tmp_path, form, images_fit=1) as chat:
        await chat.says("first", 1)
        told = await chat.says("second", 2, 3)
        assert ended(told) is StopReason.END_TURN
        assert breaks(await chat.says("third", 4)) == []
    assert chat.sent == [[1], [1, 2, 3], [2, 3], [], [4]]


async def test_a_request_that_stays_too_large_is_given_up_within_the_retries(tmp_path, form):
    refusal = Status(413, "Request Entity Too Large", content_type="text/plain")
    async with seeing(tmp_path, form, Answer(text="one"), refusal) as chat:
        await chat.says("first", 1, 2)
        told = await chat.says("second", 3)
    assert ended(told) is StopReason.CONTEXT_OVERFLOW
    assert chat.sent == [[1, 2], [1, 2, 3], [2, 3], [3], []]
    assert len(breaks(told)) == 3


async def test_without_images_a_request_that_is_too_large_is_asked_for_once(tmp_path, form):
    refusal = Status(413, "Request Entity Too Large", content_type="text/plain")
    async with seeing(tmp_path, form, refusal) as chat:
        told = await chat.says("first")
    assert (ended(told), breaks(told), len(chat.server.requests)) == (StopReason.CONTEXT_OVERFLOW, [], 1)


async def test_a_model_that_sees_none_is_not_asked_again_for_the_sake_of_images(tmp_path):
    refusal = Status(413, "Request Entity Too Large", content_type="text/plain")
    async with seeing(tmp_path, "openai", refusal, model="openai/blind") as chat:
        told = await chat.says("first", 1)
        (tmp_path / "1.png").unlink()
        assert breaks(await chat.says("second")) == []
    assert (ended(told), len(chat.server.requests)) == (StopReason.CONTEXT_OVERFLOW, 2)
    assert chat.words(1) == "this model sees no images"


async def test_an_image_that_is_refused_goes_and_the_ones_that_were_taken_before_stay(tmp_path):
    refusal = error(400, "invalid_request_error", "Could not process image")
    script = (Answer(text="one"), refusal, Answer(text="ok"))
    async with seeing(tmp_path, "anthropic", *script) as chat:
        await chat.says("first", 1)
        told = await chat.says("second", 2)
        assert (breaks(told), ended(told)) == ([BREAKS[LeftOut.REFUSED]], StopReason.END_TURN)
        await chat.says("third")
        assert chat.words(2) == "left out, because the model could not take it"
    assert chat.sent == [[1], [1, 2], [1], [1]]


class FailingShelf(StoredImages):
    """Cannot write, as a database that is locked."""

    fails = True

    async def leave_out(self, attachment_ids, why):
        if self.fails:
            raise StoreUnavailable("locked")
        await super().leave_out(attachment_ids, why)


async def test_a_crash_before_the_images_are_marked_has_the_break_recorded_again(tmp_path):
    async with seeing(tmp_path, "openai", images_fit=1) as chat:
        await chat.says("first", 1)
        chat.shelf = FailingShelf(chat.world.stores.attachments)
        chat.restart()
        told = await chat.says("second", 2)
        assert (breaks(told), ended(told)) == ([BREAKS[LeftOut.TOO_LARGE]], StopReason.ERROR)
        chat.shelf.fails = False
        assert breaks(await chat.says("third")) == [BREAKS[LeftOut.TOO_LARGE]]
    assert chat.sent[-1] == [2]


IMAGES = [ImagePart(attachment_id=f"file-{number}", media_type="image/png") for number in range(1, 5)]
TOO_LARGE, REFUSED = ModelPayloadTooLarge("too large"), ModelImageRefused("no")


def view(*contents):
    """Return messages as they are stored, each given with the number of its run."""
    messages = rows(*(content for _, content in contents))
    return tuple(replace(message, run_id=f"run-{run}") for message, (run, _) in zip(messages, contents, strict=True))


def shown(call_id, image):
    return Role.TOOL, (ToolReturn(call_id=CallId(call_id), parts=(image,), outcome=ReturnOutcome.OK),)


def test_what_is_said_into_a_turn_belongs_to_its_active_request():
    messages = view(
        (1, user("old", IMAGES[0])),
        (1, assistant("x")),
        (2, user("opening", IMAGES[1])),
        (2, assistant(call("c1"))),
        (3, shown("c1", IMAGES[2])),
        (3, user("steer", IMAGES[3])),
    )
    assert removal_after(TOO_LARGE, messages, removals=0) == Removal(image_ids=("file-1",), why=LeftOut.TOO_LARGE)
    active = Removal(image_ids=("file-2", "file-3", "file-4"), why=LeftOut.REFUSED)
    assert removal_after(REFUSED, messages, removals=0) == active


def test_a_turn_that_was_stopped_at_its_tools_is_not_active_in_the_next():
    messages = view(
        (1, user("old", IMAGES[0])),
        (1, assistant(call("c1"))),
        (None, shown("c1", IMAGES[1])),
        (2, user("new", IMAGES[2])),
    )
    removed = removal_after(TOO_LARGE, messages, removals=1)
    assert removed == Removal(image_ids=("file-1", "file-2"), why=LeftOut.TOO_LARGE)


@pytest.mark.parametrize("error", [ModelBusy("later"), TOO_LARGE, REFUSED])
def test_nothing_is_removed_where_it_cannot_help(error):
    assert removal_after(error, view((1, user("plain"))), removals=0) is None
    assert removal_after(ModelBusy("later"), view((1, user(IMAGES[0]))), removals=0) is None


def test_words_stand_in_place_of_images_wherever_they_are():
    messages = view((1, user("a", IMAGES[0], IMAGES[1])), (1, assistant(call("c1"))), (2, shown("c1", IMAGES[0])))
    assert without_images(messages, {}) is messages
    first, _, last = without_images(messages, {"file-1": LeftOut.GONE})
    words = TextPart(text="[image file-1: no longer stored]")
    assert first.parts == (TextPart(text="a"), words, IMAGES[1])
    assert last.parts[0].parts == (words,)
