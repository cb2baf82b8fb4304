from datetime import timedelta

import pytest

from channels.contract import Probe
from channels.slack.diagnosis import Diagnosis
from channels.slack.manifest import SCOPES
from channels.slack.transport import SlackApi
from core.contracts.clock import FakeClock
from tests.channels.slack.sending import answering, opened
from tests.platforms.slack_faults import Fault
from tests.platforms.slack_server import APP_TOKEN, TOKEN
from tests.platforms.slack_workspace import PRIVATE, ROOM, SHARED, TRIO


async def findings(scene, listening=None, *, socket_mode=True, sockets=None):
    """Return the findings by name, on a clock that agrees with the fake Slack's."""
    server_time = await scene.api.server_time()
    clock = FakeClock(server_time or scene.clock.now())
    found = await Diagnosis(scene.api, clock=clock, socket_mode=socket_mode).findings(listening, sockets=sockets)
    assert len({finding.name for finding in found}) == len(found)
    assert all(finding.ok or finding.fix for finding in found)
    assert not [finding for finding in found if TOKEN in str(finding) or APP_TOKEN in str(finding)]
    return {finding.name: finding for finding in found}


async def test_an_app_that_works_has_nothing_to_fix():
    async with opened() as scene:
        found = await findings(scene, Probe(healthy=True, detail="It listens."), sockets=1)

        assert list(found) == ["token", "scopes", "clock", "socket", "receiving", "sockets", "channels"]
        assert [name for name, finding in found.items() if not finding.ok or finding.fix] == []
        assert "@lodger in Lodgers" in found["token"].detail
        assert "#room" in found["channels"].detail


async def test_a_diagnosis_changes_nothing():
    async with opened() as scene:
        await findings(scene)

        assert not scene.server.sockets.is_open
        assert {call.method for call in scene.server.calls} == {
            "auth.test", "apps.connections.open", "users.conversations",
        }  # fmt: skip


async def test_a_refused_token_is_the_one_finding():
    async with opened() as scene:
        scene.server.revoke()
        found = await findings(scene)

        assert list(found) == ["token"]
        assert "xoxb-" in found["token"].fix


@pytest.mark.parametrize("fault", [Fault.ANSWERED, Fault.FLOODED])
async def test_where_slack_does_not_answer_that_is_the_one_finding(fault):
    async with opened() as scene:
        clock = scene.clock
        scene.server.fault("auth.test", fault)
        (found,) = await Diagnosis(scene.api, clock=clock, socket_mode=True).findings(None)

        assert (found.name, found.ok) == ("connection", False)


async def test_missing_scopes_are_named_with_what_is_lost():
    async with opened() as scene:
        scene.server.take_scope("reactions:write", "files:read")
        found = await findings(scene)

        assert not found["scopes"].ok
        assert "reactions:write (to react)" in found["scopes"].detail
        assert "files:read" in found["scopes"].detail
        assert "chat:write" not in found["scopes"].detail


async def test_the_manifest_asks_for_all_that_the_fake_slack_wants():
    async with opened() as scene:
        scene.server.access.scopes = set(SCOPES)

        assert (await findings(scene))["scopes"].ok


@pytest.mark.parametrize(("seconds", "ok"), [(25, True), (-25, True), (45, False), (-3600, False)])
async def test_a_clock_that_is_wrong_is_told(seconds, ok):
    async with opened() as scene:
        clock = FakeClock(await scene.api.server_time() + timedelta(seconds=seconds))
        found = await Diagnosis(scene.api, clock=clock, socket_mode=True).findings(None)

        assert {finding.name: finding.ok for finding in found}["clock"] is ok


async def test_what_slack_does_not_tell_is_no_fault():
    body = b'{"ok": true, "team": "Lodgers", "user": "lodger", "url": "wss://x", "channels": []}'
    async with answering(body, headers={"Date": "soon"}) as base:
        api = SlackApi(TOKEN, base, str)
        found = await Diagnosis(api, clock=FakeClock(), socket_mode=True).findings(None)
        await api.aclose()

    assert [finding.ok for finding in found] == [True] * len(found)
    assert "did not tell" in found[1].detail
    assert "did not tell" in found[2].detail


@pytest.mark.parametrize("word", ["not_allowed_token_type", "missing_scope", "invalid_auth", "socket_mode_disabled"])
async def test_a_socket_that_is_refused_names_the_other_token(word):
    async with opened() as scene:
        scene.server.refuse_next("apps.connections.open", word)
        found = await findings(scene)

        assert not found["socket"].ok
        assert "xapp-" in found["socket"].fix


@pytest.mark.parametrize("fault", [Fault.FLOODED, Fault.ANSWERED])
async def test_a_socket_that_cannot_be_opened_now_is_told(fault):
    async with opened() as scene:
        scene.server.fault("apps.connections.open", fault)

        assert not (await findings(scene))["socket"].ok


@pytest.mark.parametrize("socket_mode", [True, False])
async def test_a_host_that_hears_nothing_says_why(socket_mode):
    async with opened() as scene:
        found = await findings(scene, Probe(healthy=False, detail="No frame for 70 s."), socket_mode=socket_mode)

        assert (found["receiving"].ok, found["receiving"].detail) == (False, "No frame for 70 s.")
        assert ("socket" in found) is socket_mode
        assert (await findings(scene, socket_mode=socket_mode))["receiving"].ok


async def test_a_second_socket_is_told():
    async with opened() as scene:
        assert not (await findings(scene, sockets=2))["sockets"].ok


async def test_an_app_in_no_channel_is_told_how_to_get_there():
    async with opened() as scene:
        for channel in (ROOM, PRIVATE, SHARED, TRIO):
            scene.server.removes_bot(channel)
        found = (await findings(scene))["channels"]
        assert (found.ok, "/invite" in found.fix) == (True, True)

    async with opened() as scene:
        for number in range(4):
            scene.server.workspace.add_channel(f"C{number}", f"more-{number}")
        assert "and 3 more" in (await findings(scene))["channels"].detail


@pytest.mark.parametrize(("word", "told"), [("missing_scope", "reinstall"), ("fatal_error", "network")])
async def test_channels_that_cannot_be_listed_are_told(word, told):
    async with opened() as scene:
        scene.server.refuse_next("users.conversations", word)
        found = (await findings(scene))["channels"]

        assert not found.ok
        assert told in found.fix
