"""What a plain turn may cost the database, whatever the machine."""

from benchmarks.one_turn import WRITES, plain_turn

COMMITS = 6


async def test_a_plain_turn_commits_six_times_at_most():
    assert 0 < (await plain_turn())[WRITES] <= COMMITS
