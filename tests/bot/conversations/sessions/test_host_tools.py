"""Tools of a client: which are taken, and what a turn sees of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.conversations.sessions.host_tools import (
    HostTool,
    SessionToolset,
    read_tools,
    tools_from_json,
    tools_json,
)
from core.contracts.agents import Audience, PermissionMode
from core.contracts.errors import InvalidInput, ToolError
from core.contracts.ids import AgentId, CallId, ConversationId, TurnId
from core.contracts.messages import ReturnOutcome, ToolCall
from core.contracts.permissions import Action, PersonRole, Subject
from core.contracts.tools import ToolContext
from core.permissions.policy import RulePolicy
from core.permissions.rules import make_rule
from core.secrets.redaction import ValueRedactor
from core.tools.output import RETURN_LIMIT_CHARS
from core.tools.overflow import OverflowFiles
from core.tools.silence import StaySilent
from core.tools.toolsets import StaticToolset
from core.tools.wrappers import declared_access, perform

SECRET = "hunter" + "2" * 12
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = {"name": "weather", "description": "Tells the weather.", "parameters": CITY}
BUILT_IN = StaticToolset("default", (StaySilent(),))


def context(directory: Path) -> ToolContext:
    return ToolContext(
        agent_id=AgentId("agent-1"),
        memory_id="memory-1",
        conversation_id=ConversationId("conv-1"),
        turn_id=TurnId("turn-1"),
        call_id=CallId("call-1"),
        workspace=directory,
        overflow=directory / "overflow",
        audience=Audience(),
    )


def toolset(reply) -> SessionToolset:
    """Return a toolset with the tool `weather`, whose client replies so."""

    async def ask(context, name, arguments):
        return reply(arguments)

    return SessionToolset(BUILT_IN, [HostTool(tool, ask) for tool in read_tools([WEATHER], taken=())])


CALL = ToolCall(id=CallId("call-1"), name="weather", arguments='{"city": "Kiel"}')


async def run(directory: Path, reply):
    redactor = ValueRedactor([("password", SECRET)])
    return await perform(toolset(reply), CALL, context(directory), redactor=redactor, overflow=OverflowFiles(redactor))


async def test_a_result_is_masked_and_clamped_like_that_of_any_tool(tmp_path):
    returned = await run(tmp_path, lambda arguments: f"{arguments['city']}: {SECRET}\0" + "x" * 100_000)
    (part,) = returned.parts
    assert returned.outcome is ReturnOutcome.OK
    assert part.text.startswith("Kiel: [secret password]x")
    assert len(part.text) <= RETURN_LIMIT_CHARS


async def test_a_failing_tool_is_text_for_the_model(tmp_path):
    def fails(arguments):
        raise ToolError("no such city")

    returned = await run(tmp_path, fails)
    assert (returned.outcome, returned.parts[0].text) == (ReturnOutcome.ERROR, "no such city")


def test_nobody_knows_what_it_touches_so_it_is_asked_about_unless_a_rule_allows_it(tmp_path):
    access = declared_access(toolset(str), CALL, context(tmp_path))
    assert access is None
    subject = Subject(
        agent_id=AgentId("agent-1"),
        conversation_id=ConversationId("conv-1"),
        mode=PermissionMode.ASK,
        workspace=tmp_path,
        role=PersonRole.OWNER,
    )
    asked = RulePolicy([]).verdict(CALL, access, subject, ())
    assert (asked.action, asked.remember) == (Action.ASK, "weather")
    allowed = RulePolicy([make_rule(tool="weather", action=Action.ALLOW)]).verdict(CALL, access, subject, ())
    assert allowed.action is Action.ALLOW


def test_a_sessions_tools_stand_behind_the_built_in_ones():
    offered = toolset(str)
    assert [schema.name for schema in offered.schemas] == ["stay_silent", "weather"]
    assert offered.id == "default"
    assert offered.find("weather") is not None
    assert offered.find("stay_silent") is BUILT_IN.find("stay_silent")
    assert offered.find("other") is None


def test_a_built_in_tool_that_came_later_goes_before_one_of_its_name():
    tools = read_tools([{**WEATHER, "name": "stay_silent"}], taken=())
    offered = SessionToolset(BUILT_IN, [HostTool(tool, str) for tool in tools])
    assert offered.schemas == BUILT_IN.schemas


def test_tools_come_back_from_a_line_as_they_were():
    tools = read_tools([WEATHER, {**WEATHER, "name": "tides"}], taken=())
    assert tools_from_json(tools_json(tools)) == tools


def deep(levels: int) -> dict:
    return {"type": "object", "properties": {"x": deep(levels - 1)} if levels else {}}


REFUSED = [
    ([WEATHER, WEATHER], "two tools are named 'weather'"),
    ([{**WEATHER, "name": f"t{n}"} for n in range(33)], "33 tools are too many: at most 32"),
    ([{**WEATHER, "description": "x" * 32_000}], "at most 32000"),
    (["weather"], "a tool is an object with a 'name'"),
    ([{"description": "d"}], "a tool is an object with a 'name'"),
    ([{**WEATHER, "name": "the weather"}], "'the weather' is no name of a tool"),
    ([{**WEATHER, "name": "shell"}], "a built-in tool 'shell'"),
    ([{**WEATHER, "description": " "}], "needs a 'description'"),
    ([{**WEATHER, "strict": True}], "has no field 'strict'"),
    ([{"name": "weather", "description": "d"}], "needs 'parameters': a JSON schema of type object"),
    ([{**WEATHER, "parameters": {"type": "string"}}], "needs 'parameters': a JSON schema of type object"),
]
SCHEMAS = [
    ({"properties": []}, "'properties' is no object"),
    ({"required": ["town"], "properties": {"city": {}}}, "'required' is no list of its properties"),
    ({"required": "city"}, "'required' is no list of its properties"),
    ({"properties": {"city": "string"}}, "'string' is no schema"),
    ({"properties": {"city": {"type": "text"}}}, "there is no type 'text'"),
    ({"properties": {"city": {"type": ["string", "nothing"]}}}, "there is no type 'nothing'"),
    ({"properties": {"city": {"$ref": "#/x"}}}, "'$ref' is not understood everywhere"),
    ({"properties": {"cities": {"type": "array", "items": [1]}}}, "[1] is no schema"),
    ({"properties": {"city": {"anyOf": [{"type": "x"}]}}}, "there is no type 'x'"),
    ({"properties": {"x": deep(20)}}, "nested deeper than 12 levels"),
]


@pytest.mark.parametrize(
    ("given", "reason"),
    [*REFUSED, *(([{**WEATHER, "parameters": {"type": "object", **schema}}], reason) for schema, reason in SCHEMAS)],
    ids=[reason for _, reason in (*REFUSED, *SCHEMAS)],
)
def test_what_no_model_could_be_offered_is_refused_with_its_reason(given, reason):
    with pytest.raises(InvalidInput) as refused:
        read_tools(given, taken=("shell",))
    assert reason in str(refused.value)


def test_schemas_in_common_use_are_taken():
    parameters = {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Its name", "enum": ["Kiel", "Bonn"]},
            "days": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "hours": {"type": "array", "items": {"type": "number"}},
            "more": {"type": "object", "properties": {"unit": {"type": ["string", "null"]}}, "required": ["unit"]},
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    (tool,) = read_tools([{**WEATHER, "parameters": parameters}], taken=())
    assert tool.parameters == parameters


def test_text_that_no_provider_takes_is_cleaned():
    (tool,) = read_tools([{**WEATHER, "description": "a\ud800b"}], taken=())
    assert tool.description == "a\ufffdb"
