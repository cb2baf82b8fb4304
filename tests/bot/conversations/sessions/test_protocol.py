"""The protocol's document describes what the code takes and tells, all of it and nothing else."""

from __future__ import annotations

import ast

import pytest

from bot.cli.main import build_parser
from bot.conversations.sessions import protocol
from bot.conversations.sessions.inputs import read_input
from bot.conversations.sessions.protocol import InputType, OutputType
from tests.architecture.sources import modules, text_of
from tests.bot.conversations.sessions.document import IN, ONE_TURN, OUT, entries

OF_A_CONNECTION = {OutputType.SESSION, OutputType.ERROR, OutputType.PONG, OutputType.END}


def test_every_type_is_described_and_nothing_else_is():
    assert list(entries(IN)) == [*InputType]
    assert set(entries(OUT)) | set(entries(ONE_TURN)) == {*OutputType}
    assert list(entries(ONE_TURN)) == [OutputType.STARTED]


@pytest.mark.parametrize("name", [*InputType])
def test_every_example_of_an_input_is_taken(name):
    example = entries(IN)[name]
    assert example["type"] == name
    assert read_input(example)


@pytest.mark.parametrize("name", sorted(entries(OUT)))
def test_examples_of_lines_are_numbered_where_lines_are(name):
    example = entries(OUT)[name]
    assert example["type"] == name
    assert ("seq" in example) == (name not in OF_A_CONNECTION)
    assert ("run_id" in example) == ("run_seq" in example)


def test_every_type_of_the_code_is_told_somewhere():
    used = {
        node.attr
        for module in modules("bot")
        if not module.path.endswith("sessions/protocol.py")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "OutputType"
    }
    assert used == {each.name for each in OutputType}


def test_types_are_named_by_the_code_in_one_place():
    words = {str(each) for each in OutputType} - {str(each) for each in InputType}
    spelled = {
        f"{module.path}: {value.value}"
        for module in modules("bot")
        if "sessions/" in module.path or "telling" in module.path or "headless" in module.path
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Dict)
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and key.value == "type" and isinstance(value, ast.Constant)
        if value.value in words
    }
    assert spelled == set()


@pytest.mark.parametrize(
    "figure",
    [
        f"{protocol.LINE_LIMIT_BYTES:,} bytes",
        f"more than {protocol.TOOLS_LIMIT} tools",
        f"{protocol.TOOLS_LIMIT_CHARS:,} characters of schemas",
        f"at most {protocol.ID_LIMIT_CHARS}\ncharacters",
        f"waits {protocol.CLIENT_GRACE.seconds} seconds",
    ],
)
def test_the_limits_are_those_of_the_code(figure):
    assert figure in text_of("docs/stream-json.md")


def test_the_reasons_of_a_withdrawal_and_the_options_are_named():
    text = text_of("docs/stream-json.md")
    assert [reason for reason in protocol.Withdrawal if f"`{reason}`" not in text] == []
    (commands,) = (action.choices for action in build_parser()._actions if action.dest == "command")
    options = {
        option
        for action in commands["run"]._actions
        for option in action.option_strings
        if option.startswith("--") and option not in {"--help", "--prompt"}
    }
    assert [option for option in sorted(options) if option not in text] == []
