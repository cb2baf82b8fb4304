"""What an image is, by its content alone."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.tools.image_format import (
    DAMAGED,
    EDGE_LIMIT_PX,
    HEAD_BYTES,
    IMAGE_LIMIT_BYTES,
    NO_IMAGE,
    TOO_MANY_BYTES,
    TOO_MANY_PIXELS,
    ImageFacts,
    Unfit,
    examine,
    is_image,
)
from tests.core.tools.image_samples import (
    ANIMATED_WEBP,
    EVERY_KIND,
    EXTENDED_WEBP,
    GIF,
    JPEG,
    LOSSLESS_WEBP,
    PNG,
    png,
)

SAMPLES = [*EVERY_KIND.items(), *[("image/webp", data) for data in (LOSSLESS_WEBP, EXTENDED_WEBP, ANIMATED_WEBP)]]
IDS = ["png", "jpeg", "gif", "lossy", "lossless", "extended", "animated"]


@pytest.mark.parametrize(("media_type", "data"), SAMPLES, ids=IDS)
def test_every_kind_that_models_see_is_known_with_its_size(media_type, data):
    assert is_image(data[:HEAD_BYTES])
    extension = media_type.removeprefix("image/")
    assert examine(data) == ImageFacts(media_type=media_type, extension=extension, width_px=8, height_px=5)


@pytest.mark.parametrize(("media_type", "data"), SAMPLES, ids=IDS)
def test_a_file_that_is_cut_off_anywhere_is_damaged(media_type, data):
    cut = {examine(data[:length]) for length in range(HEAD_BYTES, len(data))}
    assert cut == {Unfit(reason=DAMAGED)}


@pytest.mark.parametrize("data", [PNG, JPEG, GIF], ids=["png", "jpeg", "gif"])
def test_what_stands_behind_an_image_does_not_matter(data):
    assert examine(data + b"a zip file, for example") == examine(data)


def test_a_changed_bit_in_a_png_is_found():
    position = PNG.index(b"IDAT") + 6
    changed = PNG[:position] + bytes([PNG[position] ^ 1]) + PNG[position + 1 :]
    assert examine(changed) == Unfit(reason=DAMAGED)


@pytest.mark.parametrize(
    "data", [b"", b"abc", b"BM" + bytes(60), b"<svg/>", b"RIFF\x04\0\0\0WAVE", b"%PDF-1.7", b"II*\0" + bytes(20)]
)
def test_other_content_is_no_image_whatever_it_is_called(data):
    assert not is_image(data)
    assert examine(data) == Unfit(reason=NO_IMAGE)


def test_an_image_may_be_as_large_as_a_provider_takes_it_in_base64():
    room = IMAGE_LIMIT_BYTES - len(png(noise=1)) + 1
    assert isinstance(examine(png(noise=room)), ImageFacts)
    assert examine(png(noise=room + 1)) == Unfit(reason=TOO_MANY_BYTES)


def test_an_image_may_be_as_wide_and_high_as_a_provider_takes_it():
    assert isinstance(examine(png(EDGE_LIMIT_PX, 1)), ImageFacts)
    assert examine(png(EDGE_LIMIT_PX + 1, 1)) == Unfit(reason=TOO_MANY_PIXELS)
    assert examine(png(1, EDGE_LIMIT_PX + 1)) == Unfit(reason=TOO_MANY_PIXELS)


def test_an_image_without_pixels_is_none():
    assert examine(png(0, 5)) == Unfit(reason=DAMAGED)
    assert examine(GIF[:6] + struct.pack("<HH", 8, 0) + GIF[10:]) == Unfit(reason=DAMAGED)


@given(st.sampled_from([data[:HEAD_BYTES] for data in EVERY_KIND.values()]), st.binary(max_size=300))
def test_no_content_breaks_the_reading(head, rest):
    assert isinstance(examine(head + rest), ImageFacts | Unfit)
