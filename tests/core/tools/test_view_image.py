"""`view_image`: what a model is shown, what it is told instead, and that the image stays."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from core.contracts.clock import FakeClock
from core.contracts.errors import ToolError
from core.contracts.messages import ImagePart, TextPart
from core.stores.attachments import StoredImages
from core.tools.image_format import IMAGE_LIMIT_BYTES
from core.tools.overflow import OverflowFiles
from core.tools.schema import schemas_json
from core.tools.toolsets import StaticToolset
from core.tools.view_image import ViewImageTool
from core.tools.wrappers import perform
from tests.core.stores.samples import CONVERSATION, open_world, seed
from tests.core.tools.fakes import FakeRedactor, PathlibFiles, call_of, context_in
from tests.core.tools.image_samples import EVERY_KIND, PNG, png


@pytest.fixture
async def attachments():
    async with open_world(":memory:") as world:
        await seed(world)
        yield world.stores.attachments


@pytest.fixture
def context(tmp_path):
    return context_in(tmp_path, conversation=CONVERSATION)


@pytest.fixture
def tool(tmp_path, attachments):
    return tool_on(tmp_path, attachments)


def tool_on(tmp_path, attachments, *, sees=True):
    async def sees_images(agent_id):
        assert agent_id == "agent-1"
        return sees

    return ViewImageTool(
        files=PathlibFiles,
        attachments=attachments,
        root=tmp_path / "attachments",
        sees_images=sees_images,
        clock=FakeClock(),
    )


@pytest.mark.parametrize("media_type", EVERY_KIND)
async def test_an_image_of_the_workspace_is_shown_and_kept(tool, context, attachments, media_type):
    (context.workspace / "shot").write_bytes(EVERY_KIND[media_type])
    text, image = await tool.call({"path": "shot"}, context)
    assert text == TextPart(text=f"{media_type}, 8 x 5 pixels, {len(EVERY_KIND[media_type])} bytes")
    (stored,) = await attachments.attachments([image.attachment_id])
    assert image == ImagePart(attachment_id=stored.id, media_type=media_type)
    assert (stored.conversation_id, stored.inbox_id, stored.name) == (CONVERSATION, None, "shot")
    kept = Path(stored.path)
    assert kept.parent == Path(kept.parents[1]) / CONVERSATION
    assert [kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777] == [0o600, 0o700]


async def test_what_was_shown_stays_the_same_whatever_becomes_of_the_file(tool, context, attachments):
    (context.workspace / "shot.png").write_bytes(PNG)
    _, first = await tool.call({"path": "shot.png"}, context)
    (context.workspace / "shot.png").write_bytes(png(3, 3))
    _, second = await tool.call({"path": "shot.png"}, context)
    (context.workspace / "shot.png").unlink()
    shelf = StoredImages(attachments)
    assert [await shelf.read(image.attachment_id) for image in (first, second)] == [PNG, png(3, 3)]


async def test_an_image_that_came_with_a_message_can_be_seen_again(tool, context, tmp_path):
    folder = tmp_path / "attachments" / CONVERSATION
    folder.mkdir(parents=True)
    (folder / "7-0-cat.png").write_bytes(PNG)
    granted = replace(context, readable=(folder,))
    assert len(await tool.call({"path": str(folder / "7-0-cat.png")}, granted)) == 2


async def test_a_model_that_sees_no_images_is_told_so_and_nothing_is_kept(tmp_path, context, attachments):
    (context.workspace / "shot.png").write_bytes(PNG)
    with pytest.raises(ToolError, match="cannot see images"):
        await tool_on(tmp_path, attachments, sees=False).call({"path": "shot.png"}, context)
    assert not (tmp_path / "attachments").exists()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"hello", "no PNG, JPEG, GIF or WebP"),
        (PNG[:-5], "damaged"),
        (png(noise=IMAGE_LIMIT_BYTES), "bytes, too many"),
        (png(9_000, 1), "pixels in one direction"),
        (b"", "no PNG, JPEG, GIF or WebP"),
    ],
    ids=["text", "damaged", "large", "wide", "empty"],
)
async def test_what_cannot_be_shown_is_an_error_with_its_reason(tool, context, data, words):
    (context.workspace / "x.png").write_bytes(data)
    with pytest.raises(ToolError, match=words):
        await tool.call({"path": "x.png"}, context)


@pytest.mark.parametrize("path", ["missing.png", "folder", "../secret.png", "/etc/hostname", ""])
async def test_what_is_not_there_or_not_to_be_read_is_an_error(tool, context, path, tmp_path):
    (context.workspace / "folder").mkdir()
    (tmp_path / "secret.png").write_bytes(PNG)
    with pytest.raises(ToolError):
        await tool.call({"path": path}, context)


async def test_an_image_that_cannot_be_kept_is_not_shown(tool, context, tmp_path):
    (tmp_path / "attachments").write_text("a file where the folder should be")
    (context.workspace / "shot.png").write_bytes(PNG)
    with pytest.raises(ToolError, match="could not be kept"):
        await tool.call({"path": "shot.png"}, context)


def test_looking_is_reading(tool, context):
    access = tool.access({"path": "a/../shot.png"}, context)
    assert (access.reads, access.writes, access.command) == ((context.workspace / "shot.png",), (), None)


async def test_the_return_of_a_call_holds_the_image(tool, context):
    (context.workspace / "shot.png").write_bytes(PNG)
    redactor = FakeRedactor()
    call = call_of("view_image", json.dumps({"path": "shot.png"}))
    toolset = StaticToolset("t", (tool,))
    result = await perform(toolset, call, context, redactor=redactor, overflow=OverflowFiles(redactor))
    assert [type(part) for part in result.parts] == [TextPart, ImagePart]


def test_its_schema_is_small(tool):
    assert len(schemas_json([tool.schema])) <= 260
