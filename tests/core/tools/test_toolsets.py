"""The default toolset as a model sees it."""

import json

import pytest

from core.contracts.clock import FakeClock
from core.contracts.errors import InvalidInput
from core.tools.overflow import OverflowFiles
from core.tools.schema import schemas_json
from core.tools.silence import StaySilent
from core.tools.toolsets import StaticToolset, ToolPorts, default_toolset
from core.tools.wrappers import perform
from tests.core.tools.fakes import FakeMemory, FakeRedactor, PathlibFiles, ScriptedSandbox, call_of, context_in


async def nobody_approved(context):
    return False


def ports():
    redactor = FakeRedactor()
    return ToolPorts(
        sandbox=ScriptedSandbox(b"ok"),
        files=PathlibFiles,
        memory=FakeMemory(),
        redactor=redactor,
        overflow=OverflowFiles(redactor),
        clock=FakeClock(),
        was_approved=nobody_approved,
    )


def test_the_default_toolset_has_its_tools_in_a_fixed_order():
    assert [schema.name for schema in default_toolset(ports()).schemas] == [
        "shell", "read", "write", "edit", "grep", "glob", "memory_read", "memory_write", "memory_log", "stay_silent",
    ]  # fmt: skip


def test_the_schemas_of_the_default_toolset_are_small_and_the_same_every_time():
    first, second = default_toolset(ports()), default_toolset(ports())
    document = schemas_json(first.schemas)
    assert len(document) <= 6_500
    assert document == schemas_json(second.schemas)
    assert "title" not in document
    assert "anyOf" not in document


def test_every_parameter_but_the_plainest_is_described():
    for schema in default_toolset(ports()).schemas:
        assert schema.description
        assert schema.parameters["type"] == "object"
        json.dumps(dict(schema.parameters))
        for name, parameter in schema.parameters["properties"].items():
            assert "description" in parameter or name in {"ignore_case", "changes", "limit"}, (schema.name, name)


def test_tools_are_found_by_their_exact_names():
    toolset = default_toolset(ports())
    for schema in toolset.schemas:
        assert toolset.find(schema.name).schema is schema
    assert toolset.find("Shell") is None


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(InvalidInput):
        StaticToolset("x", (StaySilent(), StaySilent()))


async def test_what_one_tool_reads_another_may_edit(tmp_path):
    toolset, context, given = default_toolset(ports()), context_in(tmp_path), ports()
    (context.workspace / "a.md").write_text("one")
    for name, arguments in (
        ("read", {"path": "a.md"}),
        ("edit", {"path": "a.md", "old": "one", "new": "two"}),
        ("write", {"path": "a.md", "text": "three"}),
    ):
        call = call_of(name, json.dumps(arguments))
        result = await perform(toolset, call, context, redactor=given.redactor, overflow=given.overflow)
        assert result.outcome == "ok", result
    (context.workspace / "a.md").write_text("changed")
    call = call_of("edit", '{"path":"a.md","old":"changed","new":"x"}')
    assert (await perform(toolset, call, context, redactor=given.redactor, overflow=given.overflow)).outcome == "error"
