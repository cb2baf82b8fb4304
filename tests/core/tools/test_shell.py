"""Commands: what they are given, and what of their output the model sees."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.contracts.errors import ToolError
from core.contracts.tools import Access
from core.tools.overflow import CAP_BYTES, OverflowFiles
from core.tools.shell import KEEP_BYTES, ShellSettings, ShellTool
from tests.core.tools.fakes import FakeRedactor, ScriptedSandbox, context_in, text_of

KEY = "ghp_" + "A" * 36


@pytest.fixture
def context(tmp_path):
    return context_in(tmp_path)


def shell_on(sandbox, shell_settings=None, **secrets):
    redactor = FakeRedactor(**secrets)
    return ShellTool(sandbox, OverflowFiles(redactor), redactor, shell_settings or ShellSettings())


async def shown_of(output, context, *, exit_code=0, **secrets):
    return await text_of(shell_on(ScriptedSandbox(output, exit_code=exit_code), **secrets), context, command="x")


async def test_a_command_runs_by_bash_in_the_workspace_with_the_settings_of_the_host(context):
    sandbox = ScriptedSandbox(b"hi\n")
    tool = shell_on(sandbox, ShellSettings(network=True, env={"A": "b"}, read_only=(Path("/opt/x"),)))
    assert await text_of(tool, context, command="echo hi", timeout_seconds=5) == "hi\n"
    (command,) = sandbox.commands
    assert command.argv == ("/bin/bash", "-c", "echo hi")
    assert command.workspace == context.workspace
    assert (command.network, command.env, command.timeout) == (True, {"A": "b"}, timedelta(seconds=5))
    assert command.read_only == (Path("/opt/x"), context.overflow)
    assert command.keep_bytes == KEEP_BYTES


async def test_the_default_timeout_is_two_minutes_and_the_network_is_off(context):
    sandbox = ScriptedSandbox()
    await text_of(shell_on(sandbox), context, command="true")
    assert (sandbox.commands[0].timeout, sandbox.commands[0].network) == (timedelta(minutes=2), False)


@pytest.mark.parametrize(
    "wrong", [{}, {"command": ""}, {"command": "x", "timeout_seconds": 0}, {"command": "x", "timeout_seconds": 601}]
)
async def test_wrong_arguments_start_nothing(context, wrong):
    sandbox = ScriptedSandbox()
    tool = shell_on(sandbox)
    with pytest.raises(ToolError):
        await tool.call(wrong, context)
    with pytest.raises(ToolError):
        tool.access(wrong, context)
    assert sandbox.commands == []


def test_the_whole_line_is_declared(context):
    assert shell_on(ScriptedSandbox()).access({"command": "a && b"}, context) == Access(command="a && b")


async def test_how_a_command_ended_is_said(context):
    assert await shown_of(b"", context) == "[no output, exit code 0]"
    assert await shown_of(b"oops\n", context, exit_code=3) == "oops\n[exit code 3]"
    assert await shown_of(b"", context, exit_code=1) == "[exit code 1]"
    assert await shown_of(b"part", context, exit_code=None) == "part\n[timed out after 120 s and was killed]"


async def test_without_a_sandbox_the_model_reads_why_nothing_ran(context):
    with pytest.raises(ToolError, match="Commands cannot run on this host: no user namespaces"):
        await text_of(shell_on(ScriptedSandbox(unavailable="no user namespaces")), context, command="x")


@pytest.mark.parametrize(("exit_code", "half"), [(0, 15_000), (1, 10_000)])
async def test_a_long_output_shows_both_ends_and_names_the_file_that_holds_it(context, exit_code, half):
    output = "".join(f"{n}\n" for n in range(1, 12_000))
    shown = await shown_of(output.encode(), context, exit_code=exit_code)
    assert shown.startswith(output[:half] + "\n[... ")
    assert output[-half:].removesuffix("\n") in shown
    kept = context.overflow / "call_1.txt"
    assert f"all of it is in {kept}" in shown
    assert kept.read_text() == output
    assert len(shown) < 2 * half + 300


@pytest.mark.parametrize(
    "output",
    [
        b"y\n" * 3_000_000,
        bytes(3_000_000),
        b"\n".join(str(n).encode() for n in range(500_000)),
        b"x" * 5_000_000 + b"\n",
        b"".join(b"\r%d" % n for n in range(400_000)),
        bytes(range(256)) * 20_000,
        "\U0001f600".encode() * 1_000_000,
        "wide\n".encode("utf-16-le") * 500_000,
    ],
    ids=["yes", "zeros", "numbers", "one line", "progress", "random", "emoji", "utf-16"],
)
async def test_an_endless_output_becomes_bounded_text_with_the_dropped_bytes_named_c67(context, output):
    shown = await shown_of(output, context, exit_code=None)
    shown.encode()
    assert "\0" not in shown
    assert len(shown) < 20_500
    assert f"of {len(output):,} bytes left out; all of it is in {context.overflow / 'call_1.txt'}" in shown
    assert shown.endswith("[timed out after 120 s and was killed]")
    assert [path.name for path in context.overflow.iterdir()] == ["call_1.txt"]


async def test_invalid_bytes_and_utf16_become_text_c67_c80(context):
    assert await shown_of(b"a\xff\xfeb", context) == "a��b"
    assert await shown_of(b"W\x00s\x00l\x00", context) == "Wsl"
    assert await shown_of(b"a\x00b\xed\xa0\xbd end", context) == "ab��� end"


async def test_the_ends_of_a_dropped_utf16_output_decode_even_where_the_cut_is_odd_c80(context):
    output = "wide ".encode("utf-16-le") * 100_000 + b"!"
    shown = await shown_of(output, context)
    assert shown.startswith("wide wide ")
    assert "wide wide " in shown[-200:]


async def test_an_output_over_the_cap_names_only_what_was_kept(context):
    shown = await shown_of(b"x" * (CAP_BYTES + 1_000_000), context)
    assert "the first 20,000,000 bytes are in" in shown
    assert (context.overflow / "call_1.txt").stat().st_size == CAP_BYTES


@pytest.mark.parametrize("offset", [0, 5, 35, 39])
async def test_a_secret_is_masked_wherever_the_output_is_cut(context, offset):
    # One secret on each seam: the cut for the model, and the two edges of the dropped bytes.
    seams = (15_000, KEEP_BYTES, 400_000 - KEEP_BYTES, 400_000 - 15_000)
    output = bytearray(b"." * 400_000)
    for seam in seams:
        output[seam - offset : seam - offset + len(KEY)] = KEY.encode()
    shown = await shown_of(bytes(output), context, NAME=KEY)
    kept = (context.overflow / "call_1.txt").read_text()
    for text in (shown, kept):
        assert "A" * 4 not in text.replace("[secret NAME]", "")
        assert "gh" not in text
    assert kept.count("[secret NAME]") == 4


async def test_half_a_secret_beside_dropped_bytes_is_not_shown(context):
    # NULs vanish in decoding, so that the edges of what was dropped come into view.
    output = bytes(KEEP_BYTES - 10) + KEY.encode() + bytes(400_000) + KEY.encode() + bytes(KEEP_BYTES - 10)
    shown = await shown_of(output, context, NAME=KEY)
    assert "gh" not in shown
    assert "AAAA" not in shown


async def test_without_a_folder_for_long_outputs_nothing_starts(context, tmp_path):
    (tmp_path / "overflow").write_text("a file where the folder should be")
    sandbox = ScriptedSandbox()
    with pytest.raises(ToolError, match="no folder for long outputs"):
        await text_of(shell_on(sandbox), context, command="x")
    assert sandbox.commands == []


async def test_a_failing_sandbox_leaves_no_raw_output_behind(context):
    class Broken(ScriptedSandbox):
        async def run(self, command):
            command.spill.write_bytes(KEY.encode())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await text_of(shell_on(Broken()), context, command="x")
    assert list(context.overflow.iterdir()) == []


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(min_size=1, max_size=40), st.integers(1, 20_000), st.sampled_from([0, 1, None]))
async def test_any_output_is_shown_within_the_limit(context, piece, times, exit_code):
    shown = await shown_of(piece * times, context, exit_code=exit_code)
    shown.encode()
    assert len(shown) < 30_500


async def test_a_command_sees_the_further_folders_that_are_there_and_nothing_beside_them(context, tmp_path):
    mine, missing, other = (tmp_path / "attachments" / name for name in ("conv-1", "conv-2", "conv-3"))
    for folder in (mine, other):
        folder.mkdir(parents=True)
    sandbox = ScriptedSandbox()
    await text_of(shell_on(sandbox), replace(context, readable=(mine, missing)), command="ls")
    assert sandbox.commands[0].read_only == (context.overflow, mine)
