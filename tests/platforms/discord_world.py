"""Everything of a fake Discord but its sockets, put together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from core.contracts.clock import Clock
from tests.platforms.discord_account import Account
from tests.platforms.discord_commands import Commands
from tests.platforms.discord_events import Events
from tests.platforms.discord_files import Files
from tests.platforms.discord_gateway import Gateway
from tests.platforms.discord_guilds import BOT, Directory
from tests.platforms.discord_interactions import Interactions
from tests.platforms.discord_message import Message, MessageJson
from tests.platforms.discord_messages import Messages
from tests.platforms.discord_people import People
from tests.platforms.discord_presses import Presses
from tests.platforms.discord_routes import (
    Route,
    account_routes,
    channel_routes,
    command_routes,
    guild_routes,
    interaction_routes,
    message_routes,
)
from tests.platforms.discord_snowflakes import Snowflakes
from tests.platforms.discord_threads import Threads
from tests.platforms.telegram_faults import FaultScript


class World:
    """All parts, and the routes to them; `on_change` is called when the gateway has something new."""

    def __init__(self, token: str, clock: Clock, script: FaultScript, on_change: Callable[[], None]) -> None:
        ids = Snowflakes(clock)
        by_channel: defaultdict[int, dict[int, Message]] = defaultdict(dict)
        self.directory = Directory(clock, ids)
        self.account = Account(self.directory, token)
        self.files = Files(clock, ids)
        self.gateway = Gateway(
            clock=clock,
            account=self.account,
            script=script,
            guilds=self._guilds,
            members=self.directory.members_chunk,
            on_change=on_change,
        )
        json = MessageJson(self.directory, self.files, by_channel)
        events = Events(clock=clock, account=self.account, directory=self.directory, gateway=self.gateway, json=json)
        self.messages = Messages(
            clock=clock,
            ids=ids,
            directory=self.directory,
            files=self.files,
            events=events,
            by_channel=by_channel,
        )
        self.threads = Threads(clock=clock, ids=ids, directory=self.directory, messages=self.messages, events=events)
        self.people = People(
            directory=self.directory, files=self.files, messages=self.messages, threads=self.threads, events=events
        )
        self.commands = Commands(clock, ids, self.directory)
        self.interactions = Interactions(clock=clock, directory=self.directory, messages=self.messages)
        self.presses = Presses(
            ids=ids,
            directory=self.directory,
            messages=self.messages,
            interactions=self.interactions,
            commands=self.commands,
            gateway=self.gateway,
            events=events,
        )
        self.routes: list[Route] = [
            *account_routes(self.account, self.directory, self.gateway, events),
            *guild_routes(self.directory, self.threads),
            *channel_routes(self.directory, self.threads),
            *message_routes(self.messages, self.files),
            *interaction_routes(self.interactions),
            *command_routes(self.commands),
        ]

    def _guilds(self) -> list[dict[str, Any]]:
        guilds = self.directory.guilds.values()
        return [self.directory.guild_create(guild) for guild in guilds if BOT in guild.members]
