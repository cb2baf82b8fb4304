"""Images of messages: shown to models where they can be, and words where they cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.config.model import ClientKind, ModelSection
from bot.conversations.albums import ALBUM_PAUSE
from bot.conversations.pictures import TOGETHER_LIMIT_BYTES
from core.contracts.addresses import Attachment, MessageBody
from core.contracts.delivery import INBOX_QUEUE
from core.contracts.messages import ImagePart, ReminderPart, TextPart, visible_text
from core.models.direct import DirectClient
from core.models.scripted import says
from core.stores.attachments import SqlAttachments, StoredImages
from core.stores.connection import Database
from core.tools.image_format import IMAGE_LIMIT_BYTES
from tests.bot.conversations.hosting import HERE, hosting, make_settings
from tests.core.tools.image_samples import EVERY_KIND, JPEG, PNG, png
from tests.platforms.anthropic_server import AnthropicServer
from tests.platforms.model_images import blocks_of, images_in
from tests.platforms.openai_server import OpenAIServer


@pytest.fixture
def opened(tmp_path):
    def open_host(**more):
        return hosting(tmp_path, *[says("ok")] * 9, **more)

    return open_host


async def sends(host, text: str, *files: tuple[str, bytes, str], **more) -> None:
    """Let a message with files arrive: name, content and what it is said to be."""
    host.channel.files |= {name: data for name, data, _ in files}
    attachments = tuple(Attachment(handle=name, name=name, media_type=kind) for name, _, kind in files)
    await host.arrives(MessageBody(text=text, attachments=attachments, **more))
    await host.settle()


async def stored(host):
    rows = await host.stores.delivery.inbox_of(HERE.key)
    return await host.stores.attachments.attachments_of([row.id for row in rows])


def parts(host, kind):
    return [part for part in host.model.requests[-1].messages[-1].parts if isinstance(part, kind)]


def files_told(host) -> str:
    (told,) = [part.text for part in parts(host, ReminderPart) if part.kind == "attachments"]
    return told


@pytest.mark.parametrize("media_type", EVERY_KIND)
async def test_an_image_stands_between_where_it_lies_and_the_words(opened, media_type):
    async with opened() as host:
        await sends(host, "what is this?", ("photo", EVERY_KIND[media_type], media_type))
        (file,) = await stored(host)
        *reminders, image, words = host.model.requests[-1].messages[-1].parts
        assert image == ImagePart(attachment_id=file.id, media_type=media_type)
        assert words == TextPart(text="what is this?")
        assert all(isinstance(part, ReminderPart) for part in reminders)
        assert files_told(host).endswith(f"bytes): {file.path}")


async def test_its_content_says_what_an_image_is_and_not_its_name(opened):
    async with opened() as host:
        await sends(
            host,
            "look",
            ("a.txt", JPEG, "text/plain"),
            ("b.gif", PNG, "image/gif"),
            ("c.png", b"hello", "image/png"),
            ("d.svg", b"<svg/>", "image/svg+xml"),
            ("e.txt", b"hello", "text/plain"),
        )
        assert [image.media_type for image in parts(host, ImagePart)] == ["image/jpeg", "image/png"]
        lines = [line.partition(" (")[0] for line in files_told(host).splitlines()[1:]]
        no_image = "  It is not shown as an image, because it is no PNG, JPEG, GIF or WebP image."
        assert lines == ["- a.txt", "- b.gif", "- c.png", no_image, "- d.svg", no_image, "- e.txt"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (PNG[:-5], "the image in it is damaged"),
        (png(9_000, 1), "it has more than 8,000 pixels in one direction, too many for a model"),
        (png(noise=IMAGE_LIMIT_BYTES), f"it has more than {IMAGE_LIMIT_BYTES:,} bytes, too many for a model"),
    ],
    ids=["damaged", "wide", "large"],
)
async def test_what_no_model_can_be_shown_stays_a_file_with_the_reason(opened, data, reason):
    async with opened() as host:
        await sends(host, "look", ("big.png", data, "image/png"))
        assert parts(host, ImagePart) == []
        (file,) = await stored(host)
        assert files_told(host).splitlines()[1:] == [
            f"- big.png (image/png, {len(data):,} bytes): {file.path}",
            f"  It is not shown as an image, because {reason}.",
        ]
        assert Path(file.path).read_bytes() == data


async def test_of_more_than_fits_into_a_request_the_first_are_shown(opened):
    async with opened() as host:
        large = png(noise=TOGETHER_LIMIT_BYTES // 6)
        names = [f"{number}.png" for number in range(7)]
        await sends(host, "look", *((name, large, "image/png") for name in names))
        assert len(parts(host, ImagePart)) == 5
        assert files_told(host).count("the images before it are as many as can be shown at once") == 2


async def test_an_image_without_words_is_shown_too(opened):
    async with opened() as host:
        await sends(host, "", ("cat.png", PNG, "image/png"))
        assert len(parts(host, ImagePart)) == 1
        assert visible_text((await host.transcript())[0].parts) == "[cat.png]"


async def test_each_part_of_an_album_has_its_own_image(opened):
    async with opened() as host:
        for number in range(2):
            host.channel.files[f"{number}.png"] = png(8 + number)
            file = Attachment(handle=f"{number}.png", name=f"{number}.png", media_type="image/png")
            await host.arrives(MessageBody(text="", attachments=(file,), album="a1"))
        await host.settle()
        await host.clock.advance(ALBUM_PAUSE)
        await host.ring(INBOX_QUEUE, HERE.key)
        await host.settle()
        shown = [part for message in host.model.requests[-1].messages for part in message.parts]
        assert [type(part).__name__ for part in shown if not isinstance(part, ReminderPart)] == [
            "ImagePart", "TextPart", "ImagePart", "TextPart",
        ]  # fmt: skip


async def test_what_enters_a_running_turn_brings_its_images(opened):
    async with opened() as host:
        await sends(host, "look", ("cat.png", PNG, "image/png"))
        rows = await host.stores.delivery.inbox_of(HERE.key)
        entered = await host.app.worker._ports.openings.steer(rows, requester=None)
        assert [part.media_type for part in entered if isinstance(part, ImagePart)] == ["image/png"]


async def test_a_file_that_is_gone_is_no_image_any_more(opened):
    async with opened() as host:
        await sends(host, "look", ("cat.png", PNG, "image/png"))
        (file,) = await stored(host)
        Path(file.path).unlink()
        rows = await host.stores.delivery.inbox_of(HERE.key)
        entered = await host.app.worker._ports.openings.steer(rows, requester=None)
        assert not any(isinstance(part, ImagePart) for part in entered)


@pytest.mark.parametrize(
    ("server_type", "model"), [(OpenAIServer, "openai/gpt-4o"), (AnthropicServer, "anthropic/claude-sonnet-4-5")]
)
async def test_a_photo_that_somebody_sends_reaches_the_provider_whole_and_stays_there(tmp_path, server_type, model):
    """From the message to the wire: turn two's request is turn one's and a tail."""
    database = Database.open(":memory:")
    async with server_type() as server:
        client = DirectClient(resolve_key=lambda _: None, mask=str, images=StoredImages(SqlAttachments(database)).read)
        section = ModelSection(model=model, api_base=server.base_url, client=ClientKind.DIRECT)
        settings = make_settings(tmp_path, models={"main": section})
        async with hosting(tmp_path, settings=settings, model=client, database=database) as host:
            host.channel.files["photo"] = JPEG
            file = Attachment(handle="photo", name="photo.jpg", media_type="image/jpeg")
            await host.arrives(MessageBody(text="what is this?", attachments=(file,)))
            await host.settle()
            await host.says("and now?")
        await client.aclose()
    await database.close()
    assert [images_in(body) for body in server.bodies] == [[("image/jpeg", JPEG)]] * 2
    first, second = (blocks_of(body) for body in server.bodies)
    assert second[: len(first)] == first


async def test_each_request_with_images_is_the_one_before_and_a_tail(opened):
    """Invariant 4; on the wire, it is proven with the model clients."""
    async with opened() as host:
        await sends(host, "one", ("a.png", PNG, "image/png"))
        await sends(host, "two", ("b.jpg", JPEG, "image/jpeg"))
        await host.says("three")
        first, second, third = (request.messages for request in host.model.requests)
        assert second[: len(first)] == first
        assert third[: len(second)] == second
