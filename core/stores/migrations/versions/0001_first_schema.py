"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the tables, in the order of their references."""
    _create_agents()
    _create_conversations()
    _create_prompts()
    _create_runs()
    _create_messages()
    _create_run_events()
    _create_turns()
    _create_tool_calls()
    _create_approvals()
    _create_grants()
    _create_inbox()
    _create_outbox()
    _create_bindings()
    _create_people()
    _create_identities()
    _create_pairings()
    _create_audit()
    _create_work_items()


def _create_agents() -> None:
    op.create_table(
        "agents",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("permission_mode", sa.String(), nullable=False),
        sa.Column("toolset", sa.String(), nullable=False),
        sa.Column("workspace", sa.Text(), nullable=False),
        sa.Column("memory_id", sa.String(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )


def _create_conversations() -> None:
    op.create_table(
        "conversations",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column("audience", sa.Text(), nullable=False),
        sa.Column("permission_mode", sa.String(), nullable=True),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("next_seq", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("hidden", sa.Boolean(), nullable=False),
        sa.Column("prompt_stale", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"]),
    )
    op.create_index("ix_conversations_newest", "conversations", ["agent_id", "created_at"])


def _create_prompts() -> None:
    op.create_table(
        "prompts",
        sa.Column("conversation_id", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("revision", sa.String(), nullable=False),
        sa.Column("seen_revision", sa.String(), nullable=False),
        sa.Column("stamp", sa.String(), nullable=False),
        sa.Column("tools_json", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("conversation_id"),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversations.id"]),
    )


def _create_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("conversation_id", sa.String(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("turn_id", sa.String(), nullable=True),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("stop_reason", sa.String(), nullable=True),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("input_tokens", sa.Integer(), nullable=False),
        sa.Column("output_tokens", sa.Integer(), nullable=False),
        sa.Column("cached_tokens", sa.Integer(), nullable=False),
        sa.Column("cache_write_tokens", sa.Integer(), nullable=False),
        sa.Column("cost_usd", sa.Float(), nullable=True),
        sa.Column("estimated", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("conversation_id", "request_id", name="uq_runs_request"),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversations.id"]),
    )
    op.create_index("ix_runs_turn", "runs", ["turn_id"])
    _create_index_where("uq_runs_active", "runs", ["conversation_id"], "status = 'active'", unique=True)


def _create_messages() -> None:
    op.create_table(
        "messages",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("conversation_id", sa.String(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("parts", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=True),
        sa.Column("cut", sa.Boolean(), nullable=False),
        sa.Column("call_id", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("conversation_id", "seq", name="uq_messages_seq"),
        sa.UniqueConstraint("conversation_id", "call_id", name="uq_messages_answer"),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversations.id"]),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"]),
    )
    op.create_index("ix_messages_run", "messages", ["run_id"])


def _create_run_events() -> None:
    op.create_table(
        "run_events",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("message_id", sa.String(), nullable=True),
        sa.Column("stored_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "seq"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"]),
        sa.ForeignKeyConstraint(["message_id"], ["messages.id"]),
    )


def _create_turns() -> None:
    op.create_table(
        "turns",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("conversation_id", sa.String(), nullable=False),
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column("requester", sa.String(), nullable=True),
        sa.Column("origin", sa.Text(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("outbox_id", sa.String(), nullable=True),
        sa.Column("interactive", sa.Boolean(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=True),
        sa.Column("steps", sa.Integer(), nullable=False),
        sa.Column("active_seconds", sa.Float(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("cancel_requested_at", sa.BigInteger(), nullable=True),
        sa.Column("cancel_requested_by", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversations.id"]),
    )
    op.create_index("ix_turns_newest", "turns", ["conversation_id", "started_at"])
    _create_index_where("uq_turns_open", "turns", ["conversation_id"], "state != 'finished'", unique=True)


def _create_tool_calls() -> None:
    op.create_table(
        "tool_calls",
        sa.Column("conversation_id", sa.String(), nullable=False),
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("turn_id", sa.String(), nullable=True),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("call", sa.Text(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=True),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("answered_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("conversation_id", "call_id"),
        sa.ForeignKeyConstraint(["conversation_id"], ["conversations.id"]),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"]),
    )
    op.create_index("ix_tool_calls_run", "tool_calls", ["run_id", "position"])
    op.create_index("ix_tool_calls_turn", "tool_calls", ["turn_id"])
    _create_index_where("ix_tool_calls_unanswered", "tool_calls", ["conversation_id"], "answered_at IS NULL")


def _create_approvals() -> None:
    op.create_table(
        "approvals",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("turn_id", sa.String(), nullable=False),
        sa.Column("conversation_id", sa.String(), nullable=False),
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=False),
        sa.Column("shown", sa.Text(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("remember", sa.Text(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("requester", sa.String(), nullable=True),
        sa.Column("origin", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("decision", sa.Text(), nullable=True),
        sa.Column("decided_at", sa.BigInteger(), nullable=True),
        sa.Column("card_id", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.id"]),
    )
    op.create_index("ix_approvals_call", "approvals", ["conversation_id", "call_id"])
    op.create_index("ix_approvals_turn", "approvals", ["turn_id"])
    _create_index_where("uq_approvals_open", "approvals", ["conversation_id", "call_id"], "state = 'open'", unique=True)


def _create_grants() -> None:
    op.create_table(
        "grants",
        sa.Column("approval_id", sa.String(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column("conversation_id", sa.String(), nullable=True),
        sa.Column("requester", sa.String(), nullable=True),
        sa.Column("given_by", sa.String(), nullable=False),
        sa.Column("given_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("approval_id"),
        sa.ForeignKeyConstraint(["approval_id"], ["approvals.id"]),
    )
    op.create_index("ix_grants_agent", "grants", ["agent_id", "conversation_id"])


def _create_inbox() -> None:
    op.create_table(
        "inbox",
        sa.Column("id", _ROW_NUMBER, nullable=False),
        sa.Column("channel", sa.String(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("event_key", sa.Text(), nullable=False),
        sa.Column("address_key", sa.Text(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("conversation_id", sa.String(), nullable=True),
        sa.Column("turn_id", sa.String(), nullable=True),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("channel", "account", "event_key", name="uq_inbox_event"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_inbox_address", "inbox", ["address_key", "id"])
    op.create_index("ix_inbox_conversation", "inbox", ["conversation_id", "state", "id"])
    op.create_index("ix_inbox_new", "inbox", ["address_key", "state"])
    op.create_index("ix_inbox_turn", "inbox", ["turn_id"])


def _create_outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("chat_key", sa.Text(), nullable=False),
        sa.Column("address_key", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=True),
        sa.Column("reply_to", sa.Text(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("turn_id", sa.String(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("not_before", sa.BigInteger(), nullable=True),
        sa.Column("sent_at", sa.BigInteger(), nullable=True),
        sa.Column("error", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_outbox_address", "outbox", ["address_key", "position"])
    op.create_index("ix_outbox_chat", "outbox", ["chat_key", "position", "part"])
    op.create_index("ix_outbox_state", "outbox", ["state"])
    op.create_index("ix_outbox_turn", "outbox", ["turn_id"])
    op.create_index("ix_outbox_waiting", "outbox", ["chat_key", "state"])


def _create_bindings() -> None:
    op.create_table(
        "bindings",
        sa.Column("address_key", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.String(), nullable=False),
        sa.Column("conversation_id", sa.String(), nullable=False),
        sa.Column("bound_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("address_key"),
    )
    op.create_index("ix_bindings_conversation", "bindings", ["conversation_id", "bound_at"])


def _create_people() -> None:
    op.create_table(
        "people",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )


def _create_identities() -> None:
    op.create_table(
        "identities",
        sa.Column("identity", sa.Text(), nullable=False),
        sa.Column("person_id", sa.String(), nullable=False),
        sa.Column("linked_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("identity"),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"]),
    )
    op.create_index("ix_identities_person", "identities", ["person_id"])


def _create_pairings() -> None:
    op.create_table(
        "pairings",
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("identity", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("code"),
    )
    op.create_index("ix_pairings_identity", "pairings", ["identity", "state"])
    _create_index_where("uq_pairings_open", "pairings", ["identity"], "state = 'open'", unique=True)


def _create_audit() -> None:
    op.create_table(
        "audit",
        sa.Column("id", _ROW_NUMBER, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("who", sa.Text(), nullable=False),
        sa.Column("what", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )


def _create_work_items() -> None:
    op.create_table(
        "work_items",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("queue", sa.String(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )


def _create_index_where(name: str, table: str, columns: list[str], condition: str, *, unique: bool = False) -> None:
    where = sa.text(condition)
    op.create_index(name, table, columns, unique=unique, sqlite_where=where, postgresql_where=where)
