"""Proves a Slack app end to end: every finding was tried for real."""

from __future__ import annotations

from datetime import timedelta

from channels.contract import Finding, Probe
from channels.slack.errors import ScopeMissing
from channels.slack.manifest import SCOPES
from channels.slack.transport import Identity, SlackApi
from core.contracts.clock import Clock
from core.contracts.errors import ChannelDown, ChannelError, SendLimited, SendRejected

CLOCK_TOLERANCE = timedelta(seconds=30)
SOCKETS_LIMIT = 10
"""docs.slack.dev/apis/events-api/using-socket-mode: at most 10 sockets at once."""

_CHANNELS_SHOWN = 5

_INSTALL = (
    "Install the app into the workspace and put its Bot User OAuth Token (it starts with xoxb-; OAuth & Permissions)"
    " into the configuration."
)
_NO_ANSWER = "Check that this machine reaches Slack (network, firewall, api_base), then try again."
_ADD_SCOPES = "Add them under OAuth & Permissions, or paste the manifest of `lodger init` again, and reinstall the app."
_SET_CLOCK = (
    "Set this machine's clock, best by a time service such as systemd-timesyncd or chrony; signatures of Slack that"
    " are five minutes old are refused."
)
_ALLOW_SOCKETS = (
    "Switch Socket Mode on, and put an app-level token (it starts with xapp-; Basic Information) with the scope"
    " connections:write into the configuration."
)
_INVITE = "Where the app shall be heard, write /invite and its name into the channel."
_ONE_HOST = "Each event goes to one socket only. Stop the other program, or give this host an app of its own."
_CHECK_SOCKET = "See the log for slack_socket; another try is made by itself."
_CHECK_URL = (
    "Set this host's public address as request URL under Event Subscriptions, Interactivity and Slash Commands; it must"
    " reach this host with a valid certificate."
)


class Diagnosis:
    """Tries what one app needs. `socket_mode` is off where Slack posts to this host."""

    def __init__(self, api: SlackApi, *, clock: Clock, socket_mode: bool) -> None:
        self._api = api
        self._clock = clock
        self._socket_mode = socket_mode

    async def findings(self, listening: Probe | None, *, sockets: int | None = None) -> tuple[Finding, ...]:
        """Return what was found, see `channels.contract.Diagnosable`.

        Args:
            listening: What the receiving part of this very host says, while it runs.
            sockets: How many sockets of the app are open, as Slack said when this host's own was opened.
        """
        try:
            app = await self._api.identity()
        except ChannelDown as error:
            return (Finding(name="token", ok=False, detail=error.detail, fix=_INSTALL),)
        except ChannelError as error:
            return (Finding(name="connection", ok=False, detail=error.detail, fix=_NO_ANSWER),)
        known = Finding(name="token", ok=True, detail=f"Slack knows the app as @{app.name} in {app.workspace}.")
        found = [known, _scopes(app), await self._clock_finding()]
        if self._socket_mode:
            found.append(await self._socket())
        found.append(self._receiving(listening))
        if sockets is not None:
            found.append(_sockets(sockets))
        return (*found, await self._channels())

    async def _clock_finding(self) -> Finding:
        server_time = await self._api.server_time()
        if server_time is None:
            return Finding(name="clock", ok=True, detail="Slack did not tell its time.")
        off = abs(self._clock.now() - server_time)
        detail = f"This machine's clock and Slack's are {off.total_seconds():.0f} s apart."
        is_right = off <= CLOCK_TOLERANCE
        return Finding(name="clock", ok=is_right, detail=detail, fix="" if is_right else _SET_CLOCK)

    async def _socket(self) -> Finding:
        """Ask for the address of a socket; none is opened."""
        try:
            await self._api.open_socket()
        except (ChannelDown, ScopeMissing, SendRejected) as error:
            detail = f"Slack opens no socket for the app: {error.detail}"
            return Finding(name="socket", ok=False, detail=detail, fix=_ALLOW_SOCKETS)
        except SendLimited as error:
            detail = f"Slack opens no socket now: {error.detail}"
            return Finding(name="socket", ok=False, detail=detail, fix=_NO_ANSWER)
        except ChannelError as error:
            return Finding(name="socket", ok=False, detail=error.detail, fix=_NO_ANSWER)
        return Finding(name="socket", ok=True, detail="Slack would open a socket for the app.")

    def _receiving(self, listening: Probe | None) -> Finding:
        if listening is not None:
            fix = "" if listening.healthy else (_CHECK_SOCKET if self._socket_mode else _CHECK_URL)
            return Finding(name="receiving", ok=listening.healthy, detail=listening.detail, fix=fix)
        if self._socket_mode:
            detail = "The host is not listening now; while it is away Slack tries each event for some minutes."
        else:
            detail = "The host is not listening now, and whether Slack reaches it can be seen only while it does."
        return Finding(name="receiving", ok=True, detail=detail, fix="Start the host.")

    async def _channels(self) -> Finding:
        try:
            joined = await self._api.joined_channels()
        except ChannelError as error:
            fix = _ADD_SCOPES if isinstance(error, ScopeMissing) else _NO_ANSWER
            return Finding(name="channels", ok=False, detail=error.detail, fix=fix)
        if not joined:
            detail = "The app is in no channel; it is heard in direct messages alone."
            return Finding(name="channels", ok=True, detail=detail, fix=_INVITE)
        some = ", ".join(f"#{channel.get('name', channel.get('id'))}" for channel in joined[:_CHANNELS_SHOWN])
        others = len(joined) - _CHANNELS_SHOWN
        more = f" and {others} more" if others > 0 else ""
        return Finding(name="channels", ok=True, detail=f"The app is in {some}{more}.")


def _scopes(app: Identity) -> Finding:
    if not app.scopes:
        return Finding(name="scopes", ok=True, detail="Slack did not tell what the app was given.")
    missing = [scope for scope in SCOPES if scope not in app.scopes]
    if not missing:
        return Finding(name="scopes", ok=True, detail=f"The app has all {len(SCOPES)} scopes.")
    told = "; ".join(f"{scope} (to {SCOPES[scope]})" for scope in missing)
    return Finding(name="scopes", ok=False, detail=f"The app lacks: {told}.", fix=_ADD_SCOPES)


def _sockets(count: int) -> Finding:
    is_alone = count <= 1
    detail = f"{count} of at most {SOCKETS_LIMIT} sockets of the app are open."
    return Finding(name="sockets", ok=is_alone, detail=detail, fix="" if is_alone else _ONE_HOST)
