"""C81 and C21: many writers, another process on the file, two hosts deciding at once."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys

from core.contracts.ids import ApprovalId, ConversationId, PersonId
from core.contracts.ledger import CallState
from core.contracts.permissions import ApprovalState, Decision
from tests.core.stores.samples import (
    CONVERSATION,
    ROOT,
    RUN,
    World,
    approval,
    call,
    inbound,
    open_world,
    seed,
    step,
    turn,
    user_message,
)

SESSIONS, ROWS = 20, 50

HOLD_THE_WRITE_LOCK = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
connection.execute("BEGIN IMMEDIATE")
connection.execute("INSERT INTO people VALUES ('holder', 'x', 0)")
print("held", flush=True)
time.sleep(3)
connection.execute("COMMIT")
"""


async def write_session(world: World, number: int) -> None:
    claim = await seed(world, f"conv-{number}")
    for row in range(ROWS):
        await world.stores.transcripts.append_returns(claim, [user_message(f"{number}/{row}")])


def back_up(source: str, target: str) -> int:
    reader, copy = sqlite3.connect(source), sqlite3.connect(target)
    reader.backup(copy, pages=16)
    (count,) = copy.execute("SELECT count(*) FROM agents").fetchone()
    reader.close()
    copy.close()
    return count


async def test_c81_a_thousand_rows_of_twenty_writers_beside_a_lock_holder_and_a_backup(tmp_path):
    path = tmp_path / "host.db"
    async with open_world(path) as world:
        await seed(world, "conv-first")
        command = [sys.executable, "-c", HOLD_THE_WRITE_LOCK, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as holder:
            assert holder.stdout is not None
            assert await asyncio.to_thread(holder.stdout.readline) == "held\n"
            async with asyncio.timeout(60), asyncio.TaskGroup() as group:
                for number in range(SESSIONS):
                    group.create_task(write_session(world, number))
                backup = group.create_task(asyncio.to_thread(back_up, str(path), str(tmp_path / "copy.db")))
        assert holder.returncode == 0
        assert backup.result() == 1
        for number in range(SESSIONS):
            stored = await world.stores.transcripts.messages(ConversationId(f"conv-{number}"))
            assert [(message.seq, message.parts[0].text) for message in stored] == [
                (row + 1, f"{number}/{row}") for row in range(ROWS)
            ]


async def test_c21_two_hosts_decide_at_once_and_one_wins(tmp_path):
    path = tmp_path / "host.db"
    yes = Decision(approve=True, by=PersonId("p1"), by_name="Alice")
    no = Decision(approve=False, by=PersonId("p2"), by_name="Bob")
    async with open_world(path) as one, open_world(path) as two:
        await seed(one)
        claim = await one.stores.ledger.begin_turn(turn(), inbox_ids=(), live=None)
        call_ids = [f"c{n}" for n in range(10)]
        await step(one, claim, *[call(call_id) for call_id in call_ids])
        await one.stores.ledger.open_approvals(claim, [approval(f"apr-{c}", c) for c in call_ids], None)
        for call_id in call_ids:
            arguments = {"hash_shown": f"hash of {call_id}", "grant": None}
            approval_id = ApprovalId(f"apr-{call_id}")
            first, second = await asyncio.gather(
                one.stores.ledger.decide(approval_id, yes, ApprovalState.APPROVED, **arguments),
                two.stores.ledger.decide(approval_id, no, ApprovalState.DENIED, **arguments),
            )
            assert first.won != second.won
            assert first.approval == second.approval
        states = {record.approval.state: record.state for record in await two.stores.ledger.calls(RUN)}
        assert states.get(ApprovalState.APPROVED, CallState.APPROVED) is CallState.APPROVED
        assert states.get(ApprovalState.DENIED, CallState.WAITING) is CallState.WAITING


async def test_one_event_accepted_by_two_hosts_at_once_is_stored_once(tmp_path):
    path = tmp_path / "host.db"
    async with open_world(path) as one, open_world(path) as two:
        await seed(one)
        accepted = await asyncio.gather(
            *[world.stores.delivery.accept(inbound("e1"), conversation_id=CONVERSATION) for world in (one, two) * 3]
        )
        assert sorted(accepted) == [False] * 5 + [True]


async def test_claims_of_two_hosts_are_never_equal(tmp_path):
    path = tmp_path / "host.db"
    async with open_world(path) as one, open_world(path) as two:
        await seed(one)
        taken = await asyncio.gather(*[w.stores.transcripts.claim(CONVERSATION) for w in (one, two) * 10])
        assert sorted(claim.epoch for claim in taken) == list(range(2, 22))
