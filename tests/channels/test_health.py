import pytest

from channels.health import Health


def connected():
    health = Health("Discord")
    health.connected()
    return health


def told(health):
    probe = health.probe()
    return probe.healthy, probe.detail


def test_at_first_nothing_is_heard():
    assert told(Health("Discord")) == (False, "Discord is not heard: not connected yet.")


def test_a_connection_is_health():
    assert told(connected()) == (True, "connected")


def test_a_connection_that_broke_is_told_with_its_reason_until_it_stands_again():
    health = connected()
    health.disconnected("the cable is out")
    assert told(health) == (False, "Discord is not heard: the cable is out.")
    health.connected()

    assert told(health) == (True, "connected")


def test_what_is_heard_and_not_kept_is_no_health():
    health = connected()
    health.stored(succeeded=False)
    assert told(health) == (False, "Discord is heard, but what it tells cannot be stored.")
    health.stored(succeeded=True)

    assert told(health) == (True, "connected")


def test_no_connection_is_told_before_a_store_that_fails():
    health = connected()
    health.stored(succeeded=False)
    health.disconnected("the cable is out")

    assert "the cable is out" in told(health)[1]


def test_a_change_of_the_store_is_told_once():
    health = Health("Discord")

    assert [health.stored(succeeded=success) for success in (True, False, False, True, True)] == [
        False,
        True,
        False,
        True,
        False,
    ]


@pytest.mark.parametrize("then", ["disconnected", "stored"])
def test_what_is_lost_for_good_is_told_whatever_comes_then(then):
    health = connected()
    assert health.lost_for_good == ""
    health.lost("The token is refused.")
    if then == "disconnected":
        health.disconnected("nothing listens any more")
    else:
        health.stored(succeeded=True)

    assert health.lost_for_good == "The token is refused."
    assert told(health) == (False, "The token is refused.")


def test_a_channel_that_is_run_anew_is_not_lost_for_good():
    health = connected()
    health.lost("The token is refused.")
    health.connected()
    assert health.lost_for_good == "The token is refused."
    health.began()

    assert health.lost_for_good == ""
    assert told(health) == (True, "connected")
