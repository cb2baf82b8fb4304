"""What models read: both provider forms, and that a request only ever grows at its end."""

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.contracts.ids import CallId
from core.contracts.messages import ImagePart, ReasoningPart, ReminderPart, ReturnOutcome, Role, TextPart, ToolReturn
from core.models.chat_form import ChatStyle, chat_messages
from core.models.direct_anthropic import AnthropicForm
from core.models.direct_openai import OpenAIForm
from core.models.profiles import model_facts
from core.models.render import NO_OUTPUT, load_images, portable_id
from tests.core.models import transcripts
from tests.core.models.transcripts import assistant, call, request, result, thought, user

OPENAI = transcripts.settings("openai/gpt-4o", "http://127.0.0.1/v1")
CLAUDE = transcripts.settings("anthropic/claude-sonnet-4-5")
IMAGE = ImagePart(attachment_id="att-1", media_type="image/png")
IMAGES = {"att-1": "QUJD"}
FORMS = {"openai": (OpenAIForm(), OPENAI), "anthropic": (AnthropicForm(), CLAUDE)}


def body(form_name, *contents, images=None, **options):
    form, model = FORMS[form_name]
    wire = form.request(request(model, *contents, **options), facts=model_facts(model), images=images or {}, key="k")
    return wire.body


def without_markers(value):
    if isinstance(value, dict):
        return {key: without_markers(item) for key, item in value.items() if key != "cache_control"}
    return [without_markers(item) for item in value] if isinstance(value, list) else value


def flat(rendered):
    """Return head and blocks of a body in the order in which a provider caches them."""
    plain = without_markers(rendered)
    head = json.dumps([plain.get("tools"), plain.get("system")])
    blocks = [
        json.dumps([message["role"], {k: v for k, v in message.items() if k != "content"}, block])
        for message in plain["messages"]
        for block in message["content"] or [None]
    ]
    return [head, *blocks]


TEXTS = st.sampled_from(["hello", "go on", " ", "\u00e4\U0001f378", "x" * 50])
USER_PARTS = st.lists(
    st.one_of(
        TEXTS.map(lambda text: TextPart(text=text)),
        st.just(ReminderPart(kind="time", text="It is noon.")),
        st.just(IMAGE),
        st.just(ImagePart(attachment_id="gone", media_type="image/png")),
    ),
    max_size=3,
).map(tuple)
REASONING = st.sampled_from(
    [(), (thought("Hm.", "anthropic", "sig1"),), (ReasoningPart(text="", form="anthropic", redacted="ZZ"),),
     (thought("Own.", "openai:openai/gpt-4o@127.0.0.1"),), (thought("Foreign.", "openai:other"),)]
)  # fmt: skip


@st.composite
def conversations(draw):
    """Runs of one conversation: what is appended before each model step."""
    runs, number = [], 0
    appended = [user(*draw(USER_PARTS))]
    for _ in range(draw(st.integers(2, 6))):
        runs.append(appended)
        calls = []
        for _ in range(draw(st.integers(0, 3))):
            number += 1
            calls.append(call(f"call.{number}"))
        text = draw(st.sampled_from([(), ("Answer.",), (" ",)]))
        appended = [assistant(*draw(REASONING), *text, *calls)]
        for made in calls:
            parts = draw(st.sampled_from([(TextPart(text="out"),), (), (IMAGE,), (TextPart(text="see"), IMAGE)]))
            appended.append((Role.TOOL, (ToolReturn(call_id=made.id, parts=parts, outcome=ReturnOutcome.OK),)))
        if not calls or draw(st.booleans()):
            appended.append(user(*draw(USER_PARTS)))
    return [*runs, appended]


@pytest.mark.parametrize("form_name", FORMS)
@settings(max_examples=150, deadline=None)
@given(conversations())
def test_each_request_is_the_previous_one_and_a_tail(form_name, runs):
    """Invariant 4, in blocks and without cache markers."""
    contents, before = [], []
    for appended in runs:
        contents += appended
        now = flat(body(form_name, *contents, images=IMAGES))
        assert now[: len(before)] == before
        before = now
    assert len(before) > len(runs)


@pytest.mark.parametrize("form_name", FORMS)
def test_equal_requests_give_equal_bytes(form_name):
    contents = (user("a", IMAGE), assistant(thought("Hm.", "anthropic", "sig1"), call("c1")), result("c1", "A"))
    assert json.dumps(body(form_name, *contents, images=IMAGES)) == json.dumps(
        body(form_name, *copy.deepcopy(contents), images=dict(IMAGES))
    )


def test_the_hosts_voice_is_an_element_of_its_kind():
    rendered = body("openai", user("hi", ReminderPart(kind="time", text="Noon &lt;now&gt;.")))
    assert rendered["messages"][1]["content"] == [
        {"type": "text", "text": "hi"},
        {"type": "text", "text": '<system-reminder kind="time">\nNoon &lt;now&gt;.\n</system-reminder>'},
    ]


def test_the_openai_form_holds_nothing_that_a_strict_copy_refuses():
    contents = (
        user("a"),
        assistant(thought("Hm.", "anthropic", "sig1"), "text", call("c1")),
        result("c1", ""),
        user("b"),
    )
    rendered = body("openai", *contents)
    assert "cache_control" not in json.dumps(rendered)
    assert [message["role"] for message in rendered["messages"]] == ["system", "user", "assistant", "tool", "user"]
    assert set(rendered["messages"][2]) == {"role", "content", "tool_calls"}
    assert rendered["messages"][3]["content"] == [{"type": "text", "text": NO_OUTPUT}]


def test_the_anthropic_form_takes_turns_and_puts_results_first():
    contents = (
        user("a"),
        assistant(call("c1"), call("c2")),
        result("c1", "A"),
        result("c2", "B"),
        user("b"),
        user("c"),
    )
    messages = body("anthropic", *contents)["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert [block["type"] for block in messages[2]["content"]] == ["tool_result", "tool_result", "text", "text"]


def test_markers_stand_at_the_end_of_system_and_of_the_last_two_user_messages():
    contents = (user("a"), assistant("x"), user("b"), assistant(call("c1")), result("c1", "B"))
    rendered = body("anthropic", *contents)
    assert "cache_control" in rendered["system"][-1]
    marked = [["cache_control" in block for block in message["content"]] for message in rendered["messages"]]
    assert marked == [[False], [False], [True], [False], [True]]


def test_markers_in_the_chat_form_stand_where_anthropics_own_do():
    contents = (
        user("a"),
        assistant("x"),
        user("b"),
        assistant(call("c1"), call("c2")),
        result("c1", "B"),
        result("c2", "C"),
    )
    style = ChatStyle(
        reasoning_form="anthropic", sees_images=True, user_after_tool=True, cache_markers=True, thinking_blocks=True
    )
    messages = chat_messages(request(CLAUDE, *contents), style, {})
    assert "cache_control" in messages[0]["content"][-1]
    assert ["cache_control" in json.dumps(message) for message in messages[1:]] == [
        False,
        False,
        True,
        False,
        False,
        True,
    ]
    assert "cache_control" in messages[-1]


def test_parts_behind_results_join_the_last_result_where_users_may_not_speak():
    mistral = transcripts.settings("mistral/mistral-large-latest")
    facts = model_facts(mistral)
    contents = (user("a"), assistant(call("c1")), result("c1", "A"), user("steer", IMAGE), assistant("x"), user("b"))
    style = ChatStyle(reasoning_form="x", sees_images=True, user_after_tool=facts.user_after_tool)
    messages = chat_messages(request(mistral, *contents), style, IMAGES)
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert [block["text"] for block in messages[3]["content"]] == [
        "A", "steer", "[image att-1: this model sees no images]",
    ]  # fmt: skip


def test_images_of_results_follow_the_whole_group_in_the_openai_form():
    image_result = (Role.TOOL, (ToolReturn(call_id=CallId("c1"), parts=(IMAGE,), outcome=ReturnOutcome.OK),))
    contents = (user("a"), assistant(call("c1"), call("c2")), image_result, result("c2", "B"))
    messages = body("openai", *contents, images=IMAGES)["messages"]
    assert [message["role"] for message in messages[3:]] == ["tool", "tool", "user"]
    assert messages[-1]["content"][0]["image_url"]["url"] == "data:image/png;base64,QUJD"


def test_reasoning_goes_back_only_to_the_form_that_made_it():
    """C40: R gets no reasoning fields."""
    own = "openai:openai/gpt-4o@127.0.0.1"
    contents = (
        user("a"),
        assistant(
            thought("Claude's.", "anthropic", "sig1"),
            thought("Own.", own),
            thought("R's.", "openai:r", "sigR"),
            call("c1"),
        ),
        result("c1", "A"),
    )
    openai = body("openai", *contents)["messages"][2]
    claude = body("anthropic", *contents)["messages"][1]
    assert openai["reasoning_content"] == "Own."
    assert [block["type"] for block in claude["content"]] == ["thinking", "tool_use"]
    assert claude["content"][0] == {"type": "thinking", "thinking": "Claude's.", "signature": "sig1"}


@pytest.mark.parametrize("form_name", FORMS)
def test_an_assistant_message_that_would_be_empty_is_left_out(form_name):
    contents = (user("a"), assistant(thought("only", "anthropic", "sig1")), user("b"), assistant(" "), user("c"))
    messages = body(form_name, *contents)["messages"]
    assert "assistant" not in {message["role"] for message in messages}


@pytest.mark.parametrize("form_name", FORMS)
def test_a_blank_user_message_still_says_something(form_name):
    messages = body(form_name, user(" "))["messages"]
    assert (
        messages[-1]["content"] == [{"type": "text", "text": "(empty message)"}]
        or messages[-1]["content"][0]["text"] == "(empty message)"
    )


@pytest.mark.parametrize("call_id", ["functions.read:0", "x" * 80, "call__thought__a+b/=", "\ud83d"])
def test_ids_that_a_provider_would_refuse_get_a_fixed_stand_in(call_id):
    contents = (user("a"), assistant(call(call_id)), result(call_id, "A"))
    stand_in = portable_id(call_id)
    assert stand_in != call_id
    assert len(stand_in) <= 40
    openai = body("openai", *contents)["messages"]
    assert openai[2]["tool_calls"][0]["id"] == openai[3]["tool_call_id"] == stand_in
    claude = body("anthropic", *contents)["messages"]
    assert claude[1]["content"][0]["id"] == claude[2]["content"][0]["tool_use_id"] == stand_in


def test_a_request_without_tools_still_declares_what_its_messages_call():
    contents = (user("a"), assistant(call("c1")), result("c1", "A"))
    rendered = body("anthropic", *contents, tools=())
    assert [tool["name"] for tool in rendered["tools"]] == ["read_file"]
    assert rendered["tool_choice"] == {"type": "none"}
    assert "tools" not in body("openai", *contents, tools=())


def test_failed_calls_are_marked_for_anthropic():
    contents = (user("a"), assistant(call("c1")), result("c1", "no such file", ReturnOutcome.ERROR))
    assert body("anthropic", *contents)["messages"][-1]["content"][0]["is_error"] is True


async def test_images_are_loaded_once_and_missing_ones_named():
    asked = []

    async def source(attachment_id):
        asked.append(attachment_id)
        return b"ABC" if attachment_id == "att-1" else None

    gone = ImagePart(attachment_id="gone", media_type="image/png")
    contents = (user(IMAGE, IMAGE, gone),)
    images = await load_images(request(OPENAI, *contents), source)
    assert asked == ["att-1", "gone"]
    assert images == IMAGES
    content = body("openai", *contents, images=images)["messages"][1]["content"]
    assert [block["type"] for block in content] == ["image_url", "image_url", "text"]
    assert content[2]["text"] == "[image gone: no longer stored]"


@pytest.mark.parametrize("form_name", FORMS)
def test_old_rows_with_half_characters_can_be_sent(form_name):
    """C80."""
    contents = (user("bad \ud83d"), assistant("half \ud83d", call("c1", '{"a":"\\ud83d"}')), result("c1", "\ud83d"))
    rendered = body(form_name, *contents, system="s \ud83d")
    if form_name == "openai":
        json.dumps(rendered, ensure_ascii=False).encode()
    assert len(rendered["messages"]) >= 3
