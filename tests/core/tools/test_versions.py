"""Which version of a file a conversation has seen."""

from pathlib import Path

import pytest

from core.contracts.errors import ToolError
from core.contracts.ids import ConversationId
from core.tools.versions import ReadVersions

ALICE, A = ConversationId("conv-1"), Path("/ws/a")


def test_a_changed_file_is_refused_to_those_who_saw_it_otherwise():
    versions = ReadVersions()
    versions.require_unchanged(ALICE, A, b"never seen")
    versions.note(ALICE, A, b"one")
    versions.require_unchanged(ALICE, A, b"one")
    versions.require_unchanged(ConversationId("conv-2"), A, b"two")
    with pytest.raises(ToolError, match="read it again"):
        versions.require_unchanged(ALICE, A, b"two")


def test_the_least_recently_seen_are_forgotten_first():
    versions = ReadVersions(capacity=2)
    for path in (Path("/a"), Path("/b"), Path("/a"), Path("/c")):
        versions.note(ALICE, path, b"one")
    versions.require_unchanged(ALICE, Path("/b"), b"two")
    with pytest.raises(ToolError):
        versions.require_unchanged(ALICE, Path("/a"), b"two")
