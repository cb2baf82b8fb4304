"""A host in memory for the console: what it was asked, and whatever a test puts into it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from bot.host_api import Check, HistoryEntry, HostApi
from channels.contract import Finding, Sink
from core.contracts.addresses import MessageBody, TextContent
from core.contracts.agents import Agent, ModelSettings, PermissionMode
from core.contracts.errors import InvalidInput, NotFound, StorageFull, StoreUnavailable
from core.contracts.memory import MemoryCommit, MemoryFile
from core.contracts.people import AuditEntry, Pairing, PairingState
from core.contracts.permissions import Approval, ApprovalState

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
REVISION = "3f2a91c0" + "0" * 32

AGENT = Agent(
    id="agent-1",
    name="lodger",
    model=ModelSettings(name="main", model="scripted/demo"),
    permission_mode=PermissionMode.ASK,
    toolset="default",
    workspace="/home/someone/workspace",
    memory_id="memory-1",
    created_at=NOW,
)


def approval(**changes):
    return replace(
        Approval(
            id="approval-1",
            turn_id="turn-1",
            conversation_id="conversation-1",
            agent_id="agent-1",
            call_id="call-1",
            tool="shell",
            shown="git push --force origin main",
            hash="0" * 64,
            rule="mode: ask",
            reason="The command changes things outside the workspace.",
            remember='{ tool = "shell", match = "git push *" }',
            state=ApprovalState.OPEN,
            requester="person-1",
            origin=None,
            created_at=NOW,
            expires_at=NOW + timedelta(hours=24),
        ),
        **changes,
    )


def commit(**changes):
    return replace(
        MemoryCommit(
            revision=REVISION,
            parent=None,
            author="agent",
            message="Note that Ada likes short answers",
            committed_at=NOW,
            paths=("human.md",),
        ),
        **changes,
    )


def pairing(**changes):
    return replace(
        Pairing(
            code="k7wq2m",
            identity="telegram:222",
            name="Grace",
            state=PairingState.OPEN,
            created_at=NOW,
            expires_at=NOW + timedelta(hours=1),
        ),
        **changes,
    )


class FakeHost:
    """`HostApi` and `Sink` in one.

    `down` makes everything that needs the database fail, `refuse_events` only what arrives.
    """

    def __init__(self) -> None:
        self.down = False
        self.refuse_events = False
        self.during_history = lambda: None
        self.events = []
        self.decided = []
        self.paired = []
        self.undone = []
        self.undo_error = None
        self.entries = {}
        self.approvals = [approval()]
        self.known_agents = (AGENT,)
        self.files = (
            MemoryFile(path="human.md", body="# Ada\n\nLikes short answers.", description="Who Ada is", core=True),
            MemoryFile(path="secret.md", body="unseen", hidden=True),
        )
        self.commits = [commit()]
        self.diff = (
            "diff --git a/human.md b/human.md\n--- a/human.md\n+++ b/human.md\n@@ -1 +1,2 @@\n-old\n+new\n same\n"
        )
        self.waiting_pairings = [pairing()]
        self.trail = [AuditEntry(at=NOW, who="Ada", what="approval_decided", detail={"tool": "shell"})]
        self.counted = b"lodger_ready 1.0\n"
        self.checks = (Check(name="store", ok=True, detail="SQLite, writable"),)

    async def accept(self, event) -> None:
        """Store an event once, as the real sink does."""
        self._require_store()
        if self.refuse_events:
            raise StorageFull("no space left")
        if any(known.key == event.key for known in self.events):
            return
        self.events.append(event)
        if isinstance(event.body, MessageBody):
            self.remember(event.address.key, event.key, event.sender.name, TextContent(markdown=event.body.text))

    def remember(self, address_key, external_id, name, content) -> None:
        """Put a line into a chat's history, in place of one with the same id."""
        lines = self.entries.setdefault(address_key, [])
        entry = HistoryEntry(at=NOW, external_id=external_id, name=name, content=content)
        for place, line in enumerate(lines):
            if line.external_id == external_id:
                lines[place] = entry
                return
        lines.append(entry)

    async def agents(self):
        return self.known_agents

    async def conversations(self, agent_id):
        return ()

    async def messages(self, conversation_id, *, after_seq=0):
        raise NotFound("conversation", conversation_id)

    async def history(self, address_key):
        self._require_store()
        self.during_history()
        return tuple(self.entries.get(address_key, ()))

    async def open_approvals(self):
        return tuple(self.approvals)

    async def decide(self, approval_id, choice, *, by, feedback=""):
        if approval_id not in {known.id for known in self.approvals}:
            raise NotFound("approval", approval_id)
        self.decided.append((approval_id, choice, by, feedback))
        self.approvals = [known for known in self.approvals if known.id != approval_id]
        return f"Decided: {choice}."

    async def pairings(self):
        return tuple(self.waiting_pairings)

    async def pair(self, code, *, by):
        if code not in {known.code for known in self.waiting_pairings}:
            raise InvalidInput(f"no pairing {code!r}")
        self.paired.append((code, by))
        return "Grace may talk to the agent now."

    async def memory_files(self, agent):
        self._require_agent(agent)
        return self.files

    async def memory_log(self, agent):
        self._require_agent(agent)
        return tuple(self.commits)

    async def memory_diff(self, agent, revision):
        self._require_agent(agent)
        if not any(known.revision.startswith(revision) for known in self.commits):
            raise NotFound("commit", revision)
        return self.diff

    async def memory_undo(self, agent, revision, *, by):
        if self.undo_error is not None:
            raise self.undo_error
        self.undone.append((agent, revision, by))
        return "Undone."

    async def audit(self):
        return tuple(self.trail)

    async def readiness(self):
        self._require_store()
        return self.checks

    async def metrics(self):
        return self.counted

    async def examine(self):
        for check in self.checks:
            yield Finding(name=check.name, ok=check.ok, detail=check.detail)

    async def trace(self, turn_id):
        if turn_id != "turn-1":
            raise NotFound("turn", turn_id)
        return {"turn": {"id": turn_id}}

    async def backup(self, file):
        yield {"type": "begun", "file": file}
        yield {"type": "result", "file": file}

    async def run_headless(self, request):
        raise NotFound("agent", request.agent)
        yield {}

    def _require_store(self):
        if self.down:
            raise StoreUnavailable("the disk is gone")

    def _require_agent(self, agent):
        if agent not in {known.name for known in self.known_agents}:
            raise NotFound("agent", agent)


if TYPE_CHECKING:
    _api: type[HostApi] = FakeHost
    _sink: type[Sink] = FakeHost
