"""Which requests a fake Discord takes, by the names that tests know them under."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.platforms.discord_account import Account
from tests.platforms.discord_calls import Call
from tests.platforms.discord_channels import Kind
from tests.platforms.discord_commands import Commands
from tests.platforms.discord_events import Events
from tests.platforms.discord_files import Files
from tests.platforms.discord_gateway import Gateway
from tests.platforms.discord_guilds import BOT, Directory
from tests.platforms.discord_interactions import Interactions
from tests.platforms.discord_messages import Messages
from tests.platforms.discord_refusals import Refusal, unknown_member, unknown_user
from tests.platforms.discord_threads import Threads

_CHANNEL = r"/channels/{channel_id:\d+}"
_MESSAGE = _CHANNEL + r"/messages/{message_id:\d+}"
_REACTION = _MESSAGE + "/reactions/{emoji}"
_GUILD = r"/guilds/{guild_id:\d+}"
_APPLICATION = r"/applications/{app_id:\d+}"
_WEBHOOK = r"/webhooks/{app_id:\d+}/{token}"


@dataclass(frozen=True)
class Route:
    """One kind of request; `run` returns the JSON of its answer, or None for an empty one.

    `is_open`: it needs no token, as its path holds a secret. `is_unlimited`: it counts to no budget.
    """

    name: str
    method: str
    path: str
    run: Callable[[Call], Any]
    is_open: bool = False
    is_unlimited: bool = False


def account_routes(account: Account, directory: Directory, gateway: Gateway, events: Events) -> list[Route]:
    """Return the routes about the bot itself and other users."""

    def leave(call: Call) -> None:
        guild = directory.guild_of_bot(call.number("guild_id"))
        del guild.members[BOT]
        events.guild_left(guild)

    def open_dm(call: Call) -> dict[str, Any]:
        recipient = int(call.body.get("recipient_id") or 0)
        if recipient not in directory.users or recipient == BOT:
            raise Refusal(400, 50033, "Invalid Recipient(s)")
        return directory.channel_json(directory.dm_with(recipient))

    def user(call: Call) -> dict[str, Any]:
        found = directory.users.get(call.number("user_id"))
        if found is None:
            raise unknown_user()
        return found.as_json()

    def guilds(_: Call) -> list[dict[str, Any]]:
        inside = [guild for guild in directory.guilds.values() if BOT in guild.members]
        return [{"id": str(guild.id), "name": guild.name, "icon": None, "owner": False} for guild in inside]

    with_limit = {"shards": 1}
    return [
        Route("me", "GET", "/users/@me", lambda _: account.me()),
        Route("application", "GET", "/oauth2/applications/@me", lambda _: account.application()),
        Route("application", "GET", "/applications/@me", lambda _: account.application()),
        Route("gateway", "GET", "/gateway", lambda _: {"url": gateway.url}, is_open=True),
        Route(
            "gateway_bot",
            "GET",
            "/gateway/bot",
            lambda _: with_limit | {"url": gateway.url, "session_start_limit": gateway.start_limit()},
        ),
        Route("open_dm", "POST", "/users/@me/channels", open_dm),
        Route("guilds", "GET", "/users/@me/guilds", guilds),
        Route("leave_guild", "DELETE", r"/users/@me/guilds/{guild_id:\d+}", leave),
        Route("user", "GET", r"/users/{user_id:\d+}", user),
    ]


def guild_routes(directory: Directory, threads: Threads) -> list[Route]:
    """Return the routes about guilds, their channels and members."""

    def guild(call: Call) -> dict[str, Any]:
        return directory.guild_of_bot(call.number("guild_id")).as_json()

    def channels(call: Call) -> list[dict[str, Any]]:
        found = directory.guild_of_bot(call.number("guild_id")).channels.values()
        return [directory.channel_json(channel) for channel in found if channel.thread is None]

    def roles(call: Call) -> list[dict[str, Any]]:
        return [role.as_json() for role in directory.guild_of_bot(call.number("guild_id")).roles.values()]

    def member(call: Call) -> dict[str, Any]:
        user_id = BOT if call.ids["user_id"] == "@me" else call.number("user_id")
        found = directory.guild_of_bot(call.number("guild_id")).members.get(user_id)
        if found is None:
            raise unknown_member()
        return found.as_json()

    return [
        Route("guild", "GET", _GUILD, guild),
        Route("guild_channels", "GET", f"{_GUILD}/channels", channels),
        Route("guild_roles", "GET", f"{_GUILD}/roles", roles),
        Route("guild_member", "GET", _GUILD + r"/members/{user_id:\d+|@me}", member),
        Route(
            "active_threads", "GET", f"{_GUILD}/threads/active", lambda call: threads.active(call.number("guild_id"))
        ),
    ]


def channel_routes(directory: Directory, threads: Threads) -> list[Route]:
    """Return the routes about channels and threads."""

    def of_thread(run: Callable[[int], Any]) -> Callable[[Call], Any]:
        return lambda call: run(call.number("channel_id"))

    def channel(call: Call) -> dict[str, Any]:
        return directory.channel_json(directory.seen_channel(call.number("channel_id")))

    def archived(call: Call) -> dict[str, Any]:
        kind = Kind.PRIVATE_THREAD if call.ids["kind"] == "private" else Kind.PUBLIC_THREAD
        return threads.archived(call.number("channel_id"), kind)

    def start_at(call: Call) -> dict[str, Any]:
        return threads.start_at(call.number("channel_id"), call.number("message_id"), call.body)

    def start(call: Call) -> dict[str, Any]:
        return threads.start(call.number("channel_id"), call.body, call.files)

    def change(call: Call) -> dict[str, Any]:
        return threads.change(call.number("channel_id"), call.body)

    return [
        Route("channel", "GET", _CHANNEL, channel),
        Route("edit_channel", "PATCH", _CHANNEL, change),
        Route("delete_channel", "DELETE", _CHANNEL, of_thread(threads.delete)),
        Route("start_thread", "POST", f"{_MESSAGE}/threads", start_at),
        Route("start_thread", "POST", f"{_CHANNEL}/threads", start),
        Route("join_thread", "PUT", f"{_CHANNEL}/thread-members/@me", of_thread(threads.join)),
        Route("leave_thread", "DELETE", f"{_CHANNEL}/thread-members/@me", of_thread(threads.leave)),
        Route("archived_threads", "GET", _CHANNEL + "/threads/archived/{kind:public|private}", archived),
    ]


def message_routes(messages: Messages, files: Files) -> list[Route]:
    """Return the routes about messages, reactions and attachments."""

    def place(call: Call) -> tuple[int, int]:
        return call.number("channel_id"), call.number("message_id")

    def react(call: Call) -> None:
        messages.react(*place(call), call.ids["emoji"], BOT)

    def unreact(call: Call) -> None:
        messages.unreact(*place(call), call.ids["emoji"], BOT)

    def send(call: Call) -> dict[str, Any]:
        return messages.send(call.number("channel_id"), call.body, call.files)

    def page(call: Call) -> list[dict[str, Any]]:
        return messages.page(call.number("channel_id"), call.query)

    return [
        Route("create_message", "POST", f"{_CHANNEL}/messages", send),
        Route("get_messages", "GET", f"{_CHANNEL}/messages", page),
        Route("get_message", "GET", _MESSAGE, lambda call: messages.get(*place(call))),
        Route("edit_message", "PATCH", _MESSAGE, lambda call: messages.edit(*place(call), call.body, call.files)),
        Route("delete_message", "DELETE", _MESSAGE, lambda call: messages.delete(*place(call))),
        Route("typing", "POST", f"{_CHANNEL}/typing", lambda call: messages.type_in(call.number("channel_id"))),
        Route("react", "PUT", f"{_REACTION}/@me", react),
        Route("unreact", "DELETE", f"{_REACTION}/@me", unreact),
        Route("refresh_links", "POST", "/attachments/refresh-urls", lambda call: files.refresh(call.body)),
    ]


def interaction_routes(interactions: Interactions) -> list[Route]:
    """Return the routes that answer what people do; their paths hold a secret, and they count to no budget."""

    def open_route(name: str, method: str, path: str, run: Callable[[Call], Any]) -> Route:
        return Route(name, method, path, run, is_open=True, is_unlimited=True)

    return [
        open_route("callback", "POST", r"/interactions/{interaction_id:\d+}/{token}/callback", interactions.respond),
        open_route("followup", "POST", _WEBHOOK, interactions.follow_up),
        open_route("get_response", "GET", f"{_WEBHOOK}/messages/{{message}}", interactions.get),
        open_route("edit_response", "PATCH", f"{_WEBHOOK}/messages/{{message}}", interactions.edit),
        open_route("delete_response", "DELETE", f"{_WEBHOOK}/messages/{{message}}", interactions.delete),
    ]


def command_routes(commands: Commands) -> list[Route]:
    """Return the routes about the bot's commands, everywhere and in one guild."""

    def guild_id(call: Call) -> int | None:
        return call.number("guild_id") if "guild_id" in call.ids else None

    def overwrite(call: Call) -> Any:
        return commands.overwrite(call.number("app_id"), guild_id(call), call.body)

    routes = []
    for place in (_APPLICATION, _APPLICATION + _GUILD):
        routes.append(Route("commands", "GET", f"{place}/commands", lambda call: commands.all_of(guild_id(call))))
        routes.append(Route("set_commands", "PUT", f"{place}/commands", overwrite))
    return routes
