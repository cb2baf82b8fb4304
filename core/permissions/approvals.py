"""Approvals: what one is bound to, who may decide it, what then runs, and what the model is told of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import replace
from typing import assert_never

from core.contracts.errors import InvalidInput
from core.contracts.messages import ToolCall
from core.contracts.people import Person
from core.contracts.permissions import Approval, ApprovalState, Decision, DecisionScope, Grant, PersonRole

DEFAULT_APPROVERS = ("owner", "operator")
ROLE_PREFIX = "role:"
NOBODY_CAN_APPROVE = "Not run: it needs an approval and nobody can approve here. No person has decided about it."

_DECIDING_ROLES = frozenset({PersonRole.OWNER, PersonRole.OPERATOR})


def binding_hash(tool: str, arguments_json: str) -> str:
    """Return the SHA-256, in hex, of a tool's name and its arguments in canonical form.

    Arguments that mean the same JSON value have the same hash, whatever their spacing, key order
    or escapes; any other difference changes it.

    Raises:
        InvalidInput: The arguments are not JSON.
    """
    try:
        arguments = json.loads(arguments_json)
    except ValueError as error:
        raise InvalidInput(f"the arguments of {tool!r} are not JSON") from error
    canonical = json.dumps([tool, arguments], sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def may_decide(
    person: Person,
    role: PersonRole,
    approval: Approval,
    approvers: Collection[str],
    *,
    platform_roles: Collection[str] = (),
) -> bool:
    """Return whether this person may approve or deny; the one function behind button, command and CLI.

    `approvers` are words: `owner`, `operator` (an owner is one, too), `requester`, `role:NAME`
    (a role on the platform, given in `platform_roles`), or a person's id or identity. The
    requester counts only when also an owner or operator; a person listed by id always counts.
    An empty list means nobody.
    """
    return any(_names(word, person, role, approval, platform_roles) for word in approvers)


def may_grant(role: PersonRole, scope: DecisionScope) -> bool:
    """Return whether somebody who may decide may do so with this reach."""
    match scope:
        case DecisionScope.ONCE:
            return True
        case DecisionScope.CONVERSATION:
            return role in _DECIDING_ROLES
        case DecisionScope.ALWAYS:
            return may_grant_always(role)
        case _ as unreachable:
            assert_never(unreachable)


def may_grant_always(role: PersonRole) -> bool:
    """Return whether this role may add a rule for good: owners alone."""
    return role is PersonRole.OWNER


def grant_for(approval: Approval, decision: Decision) -> Grant | None:
    """Return the allow rule that a decision adds, or None where it adds none.

    "This conversation" binds conversation, requester and rule; "always" binds the agent. The rule is
    of what was shown, so whoever ran something else instead has not agreed to it.
    """
    if not decision.approve or decision.by is None or not approval.remember or decision.scope is DecisionScope.ONCE:
        return None
    if decision.edited is not None:
        return None
    here = decision.scope is DecisionScope.CONVERSATION
    return Grant(
        rule=approval.remember,
        agent_id=approval.agent_id,
        conversation_id=approval.conversation_id if here else None,
        requester=approval.requester if here else None,
        given_by=decision.by,
    )


def refusal_text(state: ApprovalState, decision: Decision | None = None) -> str:
    """Return what the model reads about a call that was not approved.

    Silence is not a person's no: an expiry says so, and so does a cancelled turn.

    Raises:
        InvalidInput: The approval is open or was approved; nothing was refused.
    """
    match state:
        case ApprovalState.DENIED:
            return _denial_text(decision)
        case ApprovalState.EXPIRED:
            return (
                "Not run: the approval timed out, no decision. Nobody denied it and nobody approved it; "
                "doing the same by another call needs its own approval."
            )
        case ApprovalState.VOID:
            return "Not run: the turn was cancelled before anybody decided."
        case ApprovalState.OPEN | ApprovalState.APPROVED:
            raise InvalidInput(f"an approval that is {state.value} is no refusal")
        case _ as unreachable:
            assert_never(unreachable)


def as_decided(call: ToolCall, approval: Approval | None) -> ToolCall:
    """Return the call as it may run: the model's own, with the arguments that a person put in place of its."""
    edited = edited_arguments(approval)
    return call if edited is None else replace(call, arguments=edited)


def edited_arguments(approval: Approval | None) -> str | None:
    """Return the arguments that an approved call runs with instead of the shown ones; None: with those."""
    if approval is None or approval.state is not ApprovalState.APPROVED or approval.decision is None:
        return None
    return approval.decision.edited


def edit_text(approval: Approval | None) -> str:
    """Return what the model reads above the result of a call that a person edited; empty for any other."""
    edited = edited_arguments(approval)
    if edited is None or approval is None or approval.decision is None:
        return ""
    return f"{approval.decision.by_name} changed the arguments of this call before approving it. They are now: {edited}"


def _denial_text(decision: Decision | None) -> str:
    if decision is None or decision.by is None:
        reason = decision.feedback if decision is not None else ""
        return f"{NOBODY_CAN_APPROVE} ({reason})" if reason else NOBODY_CAN_APPROVE
    text = f"Not run: denied by {decision.by_name}."
    return f"{text} They said: {decision.feedback}" if decision.feedback else text


def _names(word: str, person: Person, role: PersonRole, approval: Approval, platform_roles: Collection[str]) -> bool:
    match word:
        case "owner":
            return role is PersonRole.OWNER
        case "operator":
            return role in _DECIDING_ROLES
        case "requester":
            return role in _DECIDING_ROLES and person.id == approval.requester
    if word.startswith(ROLE_PREFIX):
        return word.removeprefix(ROLE_PREFIX) in platform_roles
    return word == person.id or any(_is_identity(word, identity) for identity in person.identities)


def _is_identity(word: str, identity: str) -> bool:
    """Return whether a listed id names an identity; a Slack id may be listed without its team."""
    if word == identity:
        return True
    channel, _, user = identity.partition(":")
    return channel == "slack" and "/" not in word and word == f"slack:{user.rpartition('/')[2]}"
