"""The documents name the commands there are, all of them and no others."""

import re

import pytest

from bot.cli.main import build_parser
from bot.conversations.commands import COMMANDS
from tests.architecture.sources import text_of

DOCUMENTS = ("README.md", "CHANGELOG.md", "AGENTS.md", "docs/glossary.md", "docs/operation.md", "docs/stream-json.md")
INLINE_CODE = re.compile(r"`([^`\n]+)`")
PATHS = {"healthz", "readyz", "metrics", "sessions", "tmp"}
"""Words behind a slash that are addresses or folders."""
CHAT_COMMAND = re.compile(r"(?<![\w./-])/([a-z]+)(?![\w/.])")


def chat_commands_in(document: str) -> set[str]:
    return {name for code in INLINE_CODE.findall(text_of(document)) for name in CHAT_COMMAND.findall(code)} - PATHS


def programme_commands_in(document: str) -> set[str]:
    return {name for code in INLINE_CODE.findall(text_of(document)) for name in re.findall(r"\blodger ([a-z]+)", code)}


def programme_commands() -> set[str]:
    (commands,) = (action.choices for action in build_parser()._actions if action.dest == "command")
    return set(commands)


def test_the_readme_names_every_command_of_the_chat():
    assert chat_commands_in("README.md") == COMMANDS.keys() - {"start"}


def test_the_readme_names_every_command_of_the_programme():
    assert programme_commands_in("README.md") == programme_commands()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_no_document_names_a_command_that_does_not_exist(document):
    assert chat_commands_in(document) <= COMMANDS.keys()
    assert programme_commands_in(document) <= programme_commands()


def test_the_changelog_names_commands():
    assert chat_commands_in("CHANGELOG.md")
    assert programme_commands_in("CHANGELOG.md")
