import json

import pytest

from channels.slack.manifest import ASK_ABOUT_THIS, EVENTS, SCOPES, manifest

FACTS_SCOPES = {
    "app_mentions:read", "chat:write", "im:history", "mpim:history", "channels:history", "groups:history", "im:write",
    "users:read", "files:read", "files:write", "reactions:write", "commands",
}  # fmt: skip
FACTS_EVENTS = {
    "app_mention", "message.im", "message.mpim", "message.channels", "message.groups", "app_home_opened",
    "app_context_changed", "agent_session_stopped", "app_uninstalled", "tokens_revoked",
}  # fmt: skip


def test_the_app_has_the_scopes_and_events_that_it_needs_each_once():
    described = manifest("Lodger", "An agent.", socket_mode=True)
    scopes = described["oauth_config"]["scopes"]["bot"]
    events = described["settings"]["event_subscriptions"]["bot_events"]

    assert set(scopes) >= FACTS_SCOPES
    assert set(events) >= FACTS_EVENTS
    assert len(set(scopes)) == len(scopes) == len(SCOPES)
    assert len(set(events)) == len(events) == len(EVENTS)


def test_with_socket_mode_there_is_no_address():
    described = manifest("Lodger", "An agent.", socket_mode=True)

    assert described["settings"]["socket_mode_enabled"]
    assert described["settings"]["interactivity"] == {"is_enabled": True}
    assert "url" not in json.dumps(described)


def test_without_it_everything_is_posted_to_one_address():
    url = "https://bot.example.org/slack"
    described = manifest("Lodger", "An agent.", socket_mode=False, request_url=url)

    assert not described["settings"]["socket_mode_enabled"]
    assert described["settings"]["event_subscriptions"]["request_url"] == url
    assert described["settings"]["interactivity"]["request_url"] == url
    assert described["features"]["slash_commands"][0]["url"] == url
    with pytest.raises(ValueError):
        manifest("Lodger", "An agent.", socket_mode=False)


def test_the_app_has_an_agent_view_a_home_a_command_and_a_shortcut():
    features = manifest("Lodger", "An agent.", socket_mode=True)["features"]

    assert features["agent_view"] == {"agent_description": "An agent."}
    assert features["app_home"]["home_tab_enabled"]
    assert not features["app_home"]["messages_tab_read_only_enabled"]
    assert features["slash_commands"][0]["command"] == "/lodger"
    assert (features["shortcuts"][0]["type"], features["shortcuts"][0]["callback_id"]) == ("message", ASK_ABOUT_THIS)


def test_names_and_descriptions_are_cut_to_slacks_limits():
    described = manifest("n" * 50, "d" * 400, socket_mode=True)

    assert len(described["display_information"]["name"]) == 35
    assert len(described["display_information"]["description"]) == 140
    assert len(described["features"]["agent_view"]["agent_description"]) == 300
