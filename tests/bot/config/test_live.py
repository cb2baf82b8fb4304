from pathlib import Path

from bot.config.live import LiveSettings, ModelKeys, PolicyInForce
from bot.config.model import ModelSection
from bot.config.secrets import Secret
from core.contracts.agents import PermissionMode
from core.contracts.ids import AgentId, CallId, ConversationId
from core.contracts.messages import ToolCall
from core.contracts.permissions import Action, Subject
from core.permissions.policy import RulePolicy

OLD, NEW = "old-" + "k" * 9, "new-" + "k" * 9
CALL = ToolCall(id=CallId("c1"), name="lookup", arguments="{}")
SUBJECT = Subject(
    agent_id=AgentId("a"), conversation_id=ConversationId("c"), mode=PermissionMode.ASK, workspace=Path("/ws")
)


def section(key=None, *, model="anthropic/m", **more):
    return ModelSection(model=model, api_key=Secret(key) if key else None, **more)


def test_the_settings_in_force_are_the_ones_switched_to_last(load):
    live = LiveSettings(load(""))
    wanted = load('[logs]\nlevel = "debug"\n')
    live.switch(wanted)
    assert live.current is wanted


def test_a_call_is_judged_by_the_rules_in_force_at_that_moment(load):
    live = LiveSettings(load(""))
    policy = PolicyInForce(lambda: RulePolicy(live.current.permissions.rules))
    before = policy.verdict(CALL, None, SUBJECT, ())
    live.switch(load('[permissions]\nrules = [{ tool = "lookup", action = "deny" }]\n'))
    after = policy.verdict(CALL, None, SUBJECT, ())
    assert (before.action, after.action) == (Action.ASK, Action.DENY)


def test_a_model_gets_its_own_key_and_a_newer_one_as_soon_as_it_is_known():
    keys = ModelKeys({"main": section(OLD)})
    assert keys.key_of(section().settings("main")) == OLD
    keys.add({"main": section(NEW)})
    assert keys.key_of(section().settings("main")) == NEW


def test_a_turn_that_goes_on_with_the_model_of_before_keeps_that_models_key():
    """The new key belongs to another provider, which the old model would show it to."""
    keys = ModelKeys({"main": section(OLD)})
    keys.add({"main": section(NEW, model="openai/m", api_base="https://models.example")})
    assert keys.key_of(section().settings("main")) == OLD
    assert keys.key_of(section(model="openai/m").settings("main")) is None


def test_a_model_that_is_not_configured_any_more_has_no_key():
    keys = ModelKeys({"main": section()})
    assert keys.key_of(section().settings("main")) is None
    assert keys.key_of(section().settings("gone")) is None
