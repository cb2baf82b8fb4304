"""What people press, fill in and call on a fake Discord; the bot hears of it as interactions."""

from __future__ import annotations

from typing import Any

from tests.platforms.discord_channels import Channel
from tests.platforms.discord_commands import CHAT_INPUT, MESSAGE, Commands
from tests.platforms.discord_components import BUTTON, LABEL, ROW, TEXT_INPUT, Component, text_inputs, walk
from tests.platforms.discord_content import EPHEMERAL
from tests.platforms.discord_events import Events
from tests.platforms.discord_files import FILE_LIMIT_BYTES
from tests.platforms.discord_gateway import Gateway
from tests.platforms.discord_guilds import BOT, Directory
from tests.platforms.discord_interactions import Asked, Interaction, Interactions
from tests.platforms.discord_message import Message
from tests.platforms.discord_messages import Messages
from tests.platforms.discord_permissions import USE_APPLICATION_COMMANDS
from tests.platforms.discord_snowflakes import Snowflakes

_NESTING = frozenset({1, 2})  # sub-commands and groups of them


class Presses:
    """Acts for anybody; each returns the interaction, with which can be seen what came of it."""

    def __init__(
        self,
        *,
        ids: Snowflakes,
        directory: Directory,
        messages: Messages,
        interactions: Interactions,
        commands: Commands,
        gateway: Gateway,
        events: Events,
    ) -> None:
        self._ids = ids
        self._directory = directory
        self._messages = messages
        self._interactions = interactions
        self._commands = commands
        self._gateway = gateway
        self._events = events

    def presses(self, user: int, channel: int, message_id: int, custom_id: str, *, stale: bool = False) -> Interaction:
        """Press the button that carries `custom_id`.

        Args:
            stale: The presser's screen is old: the button need not be there any more.
        """
        message = self._message(channel, message_id)
        assert stale or message.takes(custom_id), f"nothing carries {custom_id!r} on message {message_id}"
        part = next((part for part in walk(message.content.components) if part.get("custom_id") == custom_id), {})
        data = {"custom_id": custom_id, "component_type": BUTTON, "id": part.get("id", 1)}
        return self._begin(Asked.COMPONENT, user, channel, data, message=message)

    def submits_modal(self, opened: Interaction, values: dict[str, str], *, user: int | None = None) -> Interaction:
        """Send a modal that an interaction opened, with texts by their custom ids."""
        modal = opened.modal
        assert modal is not None, "no modal was opened"
        fields = {field["custom_id"]: field for field in text_inputs(modal)}
        assert set(values) <= set(fields), f"the modal has only {set(fields)}"
        texts = {custom_id: values.get(custom_id, field.get("value") or "") for custom_id, field in fields.items()}
        for custom_id, field in fields.items():
            _check_fits(field, texts[custom_id])
        filled = [_filled(component, texts) for component in modal["components"]]
        data = {"custom_id": modal["custom_id"], "components": [part for part in filled if part]}
        return self._begin(Asked.MODAL, user or opened.user_id, opened.channel_id, data, message=opened.message)

    def runs_command(self, user: int, channel: int, name: str, options: dict[str, Any] | None = None) -> Interaction:
        """Call a slash command; `name` is followed by those of its sub-commands, after spaces."""
        place = self._directory.channel(channel)
        first, *inner = name.split()
        command = self._commands.offered(first, CHAT_INPUT, place.guild_id)
        data = {"id": command["id"], "name": first, "type": CHAT_INPUT}
        data["options"] = _chosen(command["options"], inner, options or {})
        return self._call(user, place, data, command)

    def uses_message_command(self, user: int, channel: int, name: str, message_id: int) -> Interaction:
        """Call a command from a message's menu."""
        place = self._directory.channel(channel)
        target = self._message(channel, message_id)
        command = self._commands.offered(name, MESSAGE, place.guild_id)
        shown = self._messages.json.rest(target, with_answered=False)
        data = {"id": command["id"], "name": name, "type": MESSAGE, "target_id": str(message_id)}
        data |= {"resolved": {"messages": {str(message_id): shown}}}
        return self._call(user, place, data, command, target=target)

    def _call(
        self, user: int, place: Channel, data: dict[str, Any], command: dict[str, Any], **fields: Any
    ) -> Interaction:
        may = self._directory.permissions(place, user) & USE_APPLICATION_COMMANDS
        assert may or place.guild_id is None, f"{user} may not use commands there"
        data |= {"guild_id": command["guild_id"]} if "guild_id" in command else {}
        return self._begin(Asked.COMMAND, user, place.id, data, **fields)

    def _begin(self, asked: Asked, user: int, channel: int, data: dict[str, Any], **fields: Any) -> Interaction:
        place = self._directory.channel(channel)
        assert self._directory.sees(place, user), f"{user} cannot see channel {channel}"
        was_told = bool(self._gateway.sessions)
        interaction = self._interactions.begin(
            self._ids.next(), asked, user, channel, was_told=was_told, data=data, **fields
        )
        self._events.interaction(self._shown(interaction, place))
        return interaction

    def _shown(self, interaction: Interaction, place: Channel) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "id": str(interaction.id),
            "application_id": str(BOT),
            "type": int(interaction.asked),
            "token": interaction.token,
            "version": 1,
            "data": interaction.data,
            "channel_id": str(place.id),
            "channel": self._directory.channel_json(place)
            | {"permissions": str(self._directory.permissions(place, interaction.user_id))},
            "app_permissions": str(self._directory.permissions(place, BOT)),
            "locale": "en-US",
            "entitlements": [],
            "attachment_size_limit": FILE_LIMIT_BYTES,
            "context": 1 if place.guild_id is None else 0,
            "authorizing_integration_owners": {"0": str(place.guild_id or 0)},
        }
        if interaction.message is not None:
            shown["message"] = self._messages.json.rest(interaction.message)
        user = self._directory.users[interaction.user_id]
        member = self._directory.member(place, user.id)
        if place.guild_id is None or member is None:
            return shown | {"user": user.as_json()}
        permissions = str(self._directory.permissions(place, user.id))
        return shown | {
            "guild_id": str(place.guild_id),
            "guild": {"id": str(place.guild_id), "locale": "en-US", "features": []},
            "guild_locale": "en-US",
            "member": member.as_json() | {"permissions": permissions},
        }

    def _message(self, channel: int, message_id: int) -> Message:
        private = self._interactions.private_message(message_id)
        if private is not None and private.content.flags & EPHEMERAL:
            return private
        return self._messages.find(self._directory.channel(channel), message_id)


def _chosen(offered: list[dict[str, Any]], inner: list[str], values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the options of a call as the platform sends them."""
    by_name = {option["name"]: option for option in offered}
    if inner:
        option = by_name[inner[0]]
        nested = _chosen(option.get("options") or [], inner[1:], values)
        return [{"name": inner[0], "type": option["type"], "options": nested}]
    assert not any(option["type"] in _NESTING for option in offered), f"one of {set(by_name)} has to be named"
    assert set(values) <= set(by_name), f"the command takes only {set(by_name)}"
    missing = {name for name, option in by_name.items() if option.get("required")} - set(values)
    assert not missing, f"the command needs {missing}"
    return [{"name": name, "type": by_name[name]["type"], "value": value} for name, value in values.items()]


def _check_fits(field: Component, text: str) -> None:
    """Hold a person to what their client lets them send."""
    name = field["custom_id"]
    assert text or not field.get("required", True), f"{name!r} has to be filled in"
    assert not text or len(text) >= int(field.get("min_length") or 0), f"{name!r} is too short"
    assert len(text) <= int(field.get("max_length") or 4000), f"{name!r} is too long"


def _filled(component: Component, texts: dict[str, str]) -> Component:
    """Return a part of a modal as it comes back; empty for what only shows a text."""
    kind = component["type"]
    shown: Component = {"type": kind, "id": component.get("id", 1)}
    if kind == ROW:
        return shown | {"components": [_filled(part, texts) for part in component["components"]]}
    if kind == LABEL:
        return shown | {"component": _filled(component["component"], texts)}
    if kind == TEXT_INPUT:
        custom_id = component["custom_id"]
        return shown | {"custom_id": custom_id, "value": texts[custom_id]}
    return {}
