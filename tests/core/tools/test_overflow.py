"""Long outputs in files."""

import stat

from core.tools.overflow import OverflowFiles, file_stem
from tests.core.tools.fakes import FakeRedactor, context_in

KEY = "ghp_" + "A" * 36


async def test_an_output_is_kept_masked_and_closed_to_others(tmp_path):
    context = context_in(tmp_path)
    path = await OverflowFiles(FakeRedactor(NAME=KEY)).keep(f"a {KEY} b", context)
    assert path == context.overflow / "call_1.txt"
    assert path.read_text() == "a [secret NAME] b"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(context.overflow.stat().st_mode) == 0o700


async def test_a_second_output_of_one_call_does_not_replace_the_first(tmp_path):
    context, files = context_in(tmp_path), OverflowFiles(FakeRedactor())
    first, second = await files.keep("one", context), await files.keep("two", context)
    assert (first.read_text(), second.read_text(), second.name) == ("one", "two", "call_1-2.txt")


async def test_an_output_over_the_cap_is_cut_between_characters(tmp_path):
    path = await OverflowFiles(FakeRedactor(), cap_bytes=9).keep("é" * 10, context_in(tmp_path))
    assert path.read_text() == "éééé"


async def test_a_spill_is_decoded_and_masked_across_its_pieces_and_removed_c67(tmp_path):
    context = context_in(tmp_path)
    spill = tmp_path / "raw"
    spill.write_bytes(b"\xff" + b"x" * ((1 << 16) - 21) + KEY.encode() + b"\x00y" * 100_000)
    path = await OverflowFiles(FakeRedactor(NAME=KEY)).keep_spill(spill, context)
    text = path.read_text()
    assert text.startswith("�xx")
    assert "x[secret NAME]y" in text
    assert "ghp_" not in text
    assert text.endswith("yyy")
    assert not spill.exists()


async def test_a_spill_in_utf16_is_kept_as_utf8_within_the_cap_c80(tmp_path):
    spill = tmp_path / "raw"
    spill.write_bytes("wide ".encode("utf-16-le") * 100_000)
    path = await OverflowFiles(FakeRedactor(), cap_bytes=100_001).keep_spill(spill, context_in(tmp_path))
    assert path.read_text() == "wide " * 20_000 + "w"


async def test_where_nothing_can_be_kept_nothing_is_named(tmp_path):
    context = context_in(tmp_path)
    (tmp_path / "overflow").write_text("a file where the folder should be")
    files = OverflowFiles(FakeRedactor())
    assert await files.keep("text", context) is None
    assert await files.keep_spill(tmp_path / "no spill", context) is None


def test_a_provider_id_that_is_no_file_name_becomes_one():
    assert file_stem("call_1") == "call_1"
    for odd in ("../../etc/passwd", "a/b", "", ".", "x" * 300, "é", "\ud83d", "a\n"):
        stem = file_stem(odd)
        assert stem.isalnum()
        assert len(stem) == 32
