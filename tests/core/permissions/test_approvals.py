from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.contracts.errors import InvalidInput
from core.contracts.ids import AgentId, ApprovalId, CallId, ConversationId, PersonId, TurnId
from core.contracts.messages import ToolCall
from core.contracts.people import Person
from core.contracts.permissions import Approval, ApprovalState, Decision, DecisionScope, PersonRole
from core.permissions.approvals import (
    DEFAULT_APPROVERS,
    as_decided,
    binding_hash,
    edit_text,
    grant_for,
    may_decide,
    may_grant,
    may_grant_always,
    refusal_text,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ALICE = Person(id=PersonId("alice"), name="Alice", identities=("telegram:111", "slack:T0TEAM/U0ALICE"))
BOB = Person(id=PersonId("bob"), name="Bob", identities=("telegram:222", "slack:T0TEAM/U0BOB"))
APPROVAL = Approval(
    id=ApprovalId("ap1"),
    turn_id=TurnId("t"),
    conversation_id=ConversationId("c"),
    agent_id=AgentId("a"),
    call_id=CallId("1"),
    tool="shell",
    shown='{"command":"make"}',
    hash=binding_hash("shell", '{"command":"make"}'),
    rule="default",
    reason="nothing allows it by itself",
    remember="shell: make",
    state=ApprovalState.OPEN,
    requester=ALICE.id,
    origin=None,
    created_at=NOW,
    expires_at=NOW + timedelta(hours=24),
)
OWNER, OPERATOR, MEMBER, STRANGER = PersonRole.OWNER, PersonRole.OPERATOR, PersonRole.MEMBER, PersonRole.STRANGER


@pytest.mark.parametrize("same", ['{"a":1,"b":"é"}', '{ "b" : "\\u00e9", "a" : 1 }'])
def test_equal_arguments_have_one_hash(same):
    assert binding_hash("t", same) == binding_hash("t", '{"a": 1, "b": "é"}')


@pytest.mark.parametrize(
    ("tool", "arguments"), [("t", '{"a":2}'), ("t", '{"a":"1"}'), ("t", '{"a":1.0}'), ("u", '{"a":1}'), ("t", "{}")]
)
def test_any_difference_changes_the_hash(tool, arguments):
    assert binding_hash(tool, arguments) != binding_hash("t", '{"a":1}')


def test_a_lone_surrogate_can_be_hashed_and_broken_json_is_refused():
    assert len(binding_hash("t", '{"a":"\\ud800"}')) == 64
    with pytest.raises(InvalidInput):
        binding_hash("t", "{")


@pytest.mark.parametrize(
    ("person", "role", "approvers", "allowed"),
    [
        (BOB, OWNER, DEFAULT_APPROVERS, True),
        (BOB, OPERATOR, DEFAULT_APPROVERS, True),
        (BOB, MEMBER, DEFAULT_APPROVERS, False),
        (BOB, STRANGER, DEFAULT_APPROVERS, False),
        (ALICE, MEMBER, DEFAULT_APPROVERS, False),
        (BOB, OPERATOR, ("owner",), False),
        (BOB, OWNER, ("operator",), True),
        (ALICE, OPERATOR, ("requester",), True),
        (ALICE, MEMBER, ("requester",), False),
        (BOB, OWNER, ("requester",), False),
        (ALICE, MEMBER, ("telegram:111",), True),
        (BOB, MEMBER, ("telegram:111",), False),
        (BOB, OWNER, ("telegram:111",), False),
        (ALICE, MEMBER, ("alice",), True),
        (BOB, MEMBER, ("slack:U0BOB",), True),
        (BOB, MEMBER, ("slack:T0TEAM/U0BOB",), True),
        (BOB, MEMBER, ("slack:T0EVIL/U0BOB",), False),
        (BOB, MEMBER, ("slack:222",), False),
        (BOB, OWNER, (), False),
        (BOB, OWNER, ("",), False),
        (BOB, MEMBER, ("member",), False),
    ],
)
def test_only_those_whom_the_policy_names_decide(person, role, approvers, allowed):
    """C22: A, D, G, and the requester who is nobody more."""
    assert may_decide(person, role, APPROVAL, approvers) is allowed


def test_a_platform_role_counts_by_its_name_alone():
    assert may_decide(BOB, MEMBER, APPROVAL, ("role:admins",), platform_roles=("admins",))
    assert not may_decide(BOB, MEMBER, APPROVAL, ("role:admins",), platform_roles=("users", "role:admins"))
    assert not may_decide(BOB, MEMBER, APPROVAL, ("role:",))


def test_a_job_without_requester_is_not_decided_by_the_requester_word():
    approval = replace(APPROVAL, requester=None)
    assert not may_decide(ALICE, OWNER, approval, ("requester",))


def test_how_far_a_decision_may_reach_depends_on_the_role():
    """C22 E: somebody who may approve once adds no rule."""
    assert [may_grant(role, DecisionScope.ONCE) for role in PersonRole] == [True, True, True, True]
    assert [may_grant(role, DecisionScope.CONVERSATION) for role in PersonRole] == [True, True, False, False]
    assert [may_grant(role, DecisionScope.ALWAYS) for role in PersonRole] == [True, False, False, False]
    assert [may_grant_always(role) for role in PersonRole] == [True, False, False, False]


def decided(**changes):
    return replace(Decision(approve=True, by=PersonId("olga"), by_name="Olga"), **changes)


def test_a_grant_binds_the_conversation_and_requester_or_the_agent():
    here = grant_for(APPROVAL, decided(scope=DecisionScope.CONVERSATION))
    always = grant_for(APPROVAL, decided(scope=DecisionScope.ALWAYS))
    assert (here.rule, here.conversation_id, here.requester) == ("shell: make", "c", "alice")
    assert (always.rule, always.conversation_id, always.requester) == ("shell: make", None, None)


@pytest.mark.parametrize(
    ("approval", "decision"),
    [
        (APPROVAL, decided()),
        (APPROVAL, decided(approve=False, scope=DecisionScope.ALWAYS)),
        (APPROVAL, decided(by=None, scope=DecisionScope.ALWAYS)),
        (replace(APPROVAL, remember=""), decided(scope=DecisionScope.ALWAYS)),
        (APPROVAL, decided(scope=DecisionScope.ALWAYS, edited='{"command":"make all"}')),
        (APPROVAL, decided(scope=DecisionScope.CONVERSATION, edited='{"command":"make"}')),
    ],
)
def test_every_other_decision_adds_no_rule(approval, decision):
    assert grant_for(approval, decision) is None


CALL = ToolCall(id=CallId("1"), name="shell", arguments='{"command":"make"}')
EDITED = '{"command":"make all"}'


def settled(state: ApprovalState, **changes) -> Approval:
    return replace(APPROVAL, state=state, decision=decided(**changes))


def test_an_approved_call_runs_as_the_person_wrote_it():
    approval = settled(ApprovalState.APPROVED, edited=EDITED)
    assert as_decided(CALL, approval) == replace(CALL, arguments=EDITED)
    assert "Olga changed the arguments" in edit_text(approval)
    assert EDITED in edit_text(approval)


@pytest.mark.parametrize(
    "approval",
    [
        None,
        APPROVAL,
        settled(ApprovalState.APPROVED),
        settled(ApprovalState.DENIED, approve=False, edited=EDITED),
        settled(ApprovalState.EXPIRED, approve=False, by=None, edited=EDITED),
    ],
)
def test_every_other_call_is_the_models_own(approval):
    assert as_decided(CALL, approval) == CALL
    assert edit_text(approval) == ""


def test_silence_is_told_apart_from_a_persons_no():
    """C24: expiry, denial and "nobody can approve" are distinct texts."""
    expired = refusal_text(ApprovalState.EXPIRED)
    denied = refusal_text(ApprovalState.DENIED, decided(approve=False, feedback="use make"))
    nobody = refusal_text(ApprovalState.DENIED, decided(approve=False, by=None))
    void = refusal_text(ApprovalState.VOID)
    assert "timed out, no decision" in expired
    assert "denied by" not in expired
    assert "denied by Olga" in denied
    assert "use make" in denied
    assert "nobody can approve" in nobody
    assert len({expired, denied, nobody, void}) == 4


@pytest.mark.parametrize("state", [ApprovalState.OPEN, ApprovalState.APPROVED])
def test_what_was_not_refused_has_no_refusal(state):
    with pytest.raises(InvalidInput):
        refusal_text(state)
