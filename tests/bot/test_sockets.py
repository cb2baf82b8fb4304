"""Where the socket of a host is."""

import hashlib
from pathlib import Path

from bot.sockets import socket_path


def test_the_socket_lies_in_the_data_directory():
    assert socket_path(Path("/home/someone/.local/share/lodger")) == Path("/home/someone/.local/share/lodger/host.sock")


def test_a_path_of_a_hundred_bytes_is_still_used_and_no_longer_one():
    fits = Path("/" + "d" * (98 - len("/host.sock")))
    assert len(str(socket_path(fits))) == 99
    assert socket_path(fits).parent == fits
    longest, too_long = Path(f"{fits}d"), Path(f"{fits}dd")
    assert socket_path(longest).parent == longest
    assert socket_path(too_long).parent != too_long


def test_the_limit_counts_bytes_and_not_characters():
    wide = Path("/" + "ü" * 60)
    assert socket_path(wide).parent != wide


def test_a_long_path_has_a_short_socket_of_its_own_that_every_command_finds():
    one, other = Path("/" + "a" * 200), Path("/" + "a" * 201)
    assert socket_path(one) == socket_path(one)
    assert socket_path(one) != socket_path(other)
    assert hashlib.sha256(str(one).encode()).hexdigest()[:16] in str(socket_path(one))
    assert len(str(socket_path(one))) <= 100
