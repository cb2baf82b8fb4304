"""Invariant 12: what a turn says goes to the address it came from; silence is a result, not an accident."""

from datetime import timedelta

from core.contracts.addresses import MessageBody
from core.contracts.delivery import Binding
from core.contracts.runs import TurnOutcome
from core.models.scripted import ScriptedModel, asks, says, tool_call
from tests.acceptance.invariants.chat_host import GUEST, OWNER, chat, chat_host
from tests.core.turns.workbench import RecordingTool

ONE, TWO = chat("one"), chat("two")


def shell(call_id):
    return tool_call(call_id, "shell", '{"command":"make"}')


async def test_answers_go_where_their_questions_came_from(tmp_path):
    model = ScriptedModel([says("for one"), says("for two"), says("for one again")])
    async with chat_host(tmp_path, model) as host:
        await host.says("a", where=ONE)
        await host.says("b", where=TWO, who=GUEST)
        await host.says("c", where=ONE)

        assert host.texts_in(ONE) == ["for one", "for one again"]
        assert host.texts_in(TWO) == ["for two"]
        assert {item.address for item in host.channel.deliveries} == {ONE, TWO}


async def test_a_turn_that_waited_answers_where_it_was_asked_and_not_in_the_last_chat(tmp_path):
    tool = RecordingTool()
    model = ScriptedModel([asks(shell("a"), text="Let me see."), says("for two"), says("made, for one")])
    async with chat_host(tmp_path, model, tool) as host:
        await host.says("make it", where=ONE)
        await host.says("hello", where=TWO)
        await host.presses("Approve", where=ONE)

        assert host.texts_in(ONE)[-1] == "made, for one"
        assert host.texts_in(TWO) == ["for two"]
    assert tool.calls == ["a"]


async def test_a_conversation_that_moves_while_a_turn_waits_does_not_take_its_answer_along(tmp_path):
    """The origin is the turn's own: what the conversation is bound to now does not matter."""
    tool = RecordingTool()
    model = ScriptedModel([asks(shell("a"), text="Let me see."), says("made")])
    async with chat_host(tmp_path, model, tool) as host:
        await host.says("make it", where=ONE)
        conversation = await host.conversation_of(ONE)
        await host.stores.delivery.bind(Binding(address=TWO, agent_id=host.agent.id, conversation_id=conversation))
        await host.presses("Approve", where=ONE)

        assert host.texts_in(ONE)[-1] == "made"
        assert host.texts_in(TWO) == []
        turn = await host.stores.ledger.latest_turn(conversation)
        assert turn.origin == ONE


async def test_a_new_conversation_in_the_chat_does_not_get_the_old_ones_card_or_answer_elsewhere(tmp_path):
    tool = RecordingTool()
    model = ScriptedModel([asks(shell("a"))])
    async with chat_host(tmp_path, model, tool) as host:
        await host.says("make it", where=ONE)
        await host.says("/new", where=ONE)
        await host.passes(timedelta(hours=25))

        assert {item.address for item in host.channel.deliveries} == {ONE}
    assert tool.calls == []


async def test_cards_and_commit_lines_stay_in_the_chat_of_their_turn(tmp_path):
    change = '{"kind":"create","path":"tea.md","text":"Green tea.","description":"Drinks"}'
    write = tool_call("m", "memory_write", f'{{"message":"tea","changes":[{change}]}}')
    model = ScriptedModel([asks(write), says("Noted."), says("for two"), asks(shell("a"))])
    async with chat_host(tmp_path, model, RecordingTool()) as host:
        await host.says("remember tea", where=ONE)
        await host.says("hello", where=TWO)
        await host.says("make it", where=ONE)

        assert any(text.startswith("Remembered: tea") for text in host.texts_in(ONE))
        assert any("May I run" in text for text in host.texts_in(ONE))
        assert host.texts_in(TWO) == ["for two"]


async def test_an_answer_that_was_under_way_at_a_restart_still_goes_to_its_chat(tmp_path):
    model = ScriptedModel([says("for one"), says("for two")])
    async with chat_host(tmp_path, model) as host:
        for where, who in ((ONE, OWNER), (TWO, GUEST)):
            await host.arrives(MessageBody(text="hello"), where=where, who=who)
        bells, clock, channel = list(host.bells.rung), host.clock, host.channel
    async with chat_host(tmp_path, model, clock=clock, channel=channel) as host:
        host.bells.rung.extend(bells)
        await host.settle()
        assert host.texts_in(ONE) == ["for one"]
        assert host.texts_in(TWO) == ["for two"]


async def test_silence_is_a_typed_result_and_says_nothing_anywhere(tmp_path):
    model = ScriptedModel([asks(tool_call("a", "stay_silent", '{"reason":"not for me"}'))])
    async with chat_host(tmp_path, model) as host:
        await host.says("thanks, everybody")

        turn = await host.stores.ledger.latest_turn(await host.conversation_of())
        assert turn.outcome is TurnOutcome.SILENT
        assert host.channel.messages == {}


async def test_an_empty_answer_is_told_because_it_is_no_silence(tmp_path):
    async with chat_host(tmp_path, ScriptedModel([says(" ")])) as host:
        await host.says("hello?")

        turn = await host.stores.ledger.latest_turn(await host.conversation_of())
        assert turn.outcome is TurnOutcome.EMPTY
        assert len(host.texts_in()) == 1
