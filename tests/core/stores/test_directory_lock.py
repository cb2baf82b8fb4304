"""One owner of a data directory at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from core.contracts.errors import DirectoryInUse
from core.stores.directory_lock import LOCK_FILE, DirectoryLock
from tests.core.stores.samples import ROOT

HOLD = """
import sys
from pathlib import Path
from core.stores.directory_lock import DirectoryLock
DirectoryLock(Path(sys.argv[1])).acquire()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def owner(tmp_path):
    """Another process that holds the lock."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate(timeout=10)


def test_a_directory_that_is_owned_is_refused_with_its_owner(owner, tmp_path):
    with pytest.raises(DirectoryInUse) as refused:
        DirectoryLock(tmp_path).acquire()
    assert (refused.value.path, refused.value.pid) == (str(tmp_path), owner.pid)


def test_a_killed_owner_leaves_no_lock_behind(owner, tmp_path):
    owner.send_signal(signal.SIGKILL)
    owner.wait(timeout=10)
    with DirectoryLock(tmp_path):
        assert (tmp_path / LOCK_FILE).read_text() == f"{os.getpid()}\n"


def test_one_process_cannot_hold_it_twice(tmp_path):
    with DirectoryLock(tmp_path), pytest.raises(DirectoryInUse):
        DirectoryLock(tmp_path).acquire()


def test_a_released_directory_can_be_taken_again(tmp_path):
    lock = DirectoryLock(tmp_path)
    for _ in range(2):
        lock.acquire()
        lock.release()
    lock.release()


def test_a_lock_file_without_a_process_id_is_no_problem(tmp_path):
    (tmp_path / LOCK_FILE).write_text("not a number")
    with DirectoryLock(tmp_path):
        pass
