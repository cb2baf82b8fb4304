"""Proves a Telegram bot end to end: every finding was tried for real."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import timedelta

from channels.contract import Finding, Probe
from channels.telegram.errors import PollConflict
from channels.telegram.health import host_of
from channels.telegram.limits import UPDATE_BATCH_LIMIT, Timing
from channels.telegram.transport import BotApi, BotIdentity, WebhookState
from core.contracts.clock import Clock
from core.contracts.errors import ChannelDown, ChannelError

CLOCK_TOLERANCE = timedelta(seconds=30)
RECENT_FAILURE = timedelta(hours=1)
"""A webhook that failed longer ago than this has recovered, or nobody has written since."""

_ASK_BOTFATHER = "Ask @BotFather for the bot's token (/mybots, API Token) and put it into the configuration."
_NO_ANSWER = "Check that this machine reaches the Bot API (network, proxy, api_base), then try again."
_SET_CLOCK = "Set this machine's clock, best by a time service such as systemd-timesyncd or chrony."
_FREE_FROM_WEBHOOK = (
    "If no other program needs the webhook, remove it with the Bot API method deleteWebhook; or configure this host"
    " for a webhook."
)
_OTHER_WEBHOOK = "Another program has set it. Stop that program, or give this host a bot of its own (@BotFather)."
_CHECK_WEBHOOK = (
    "Open the address from outside: it must reach this host by HTTPS on port 443, 80, 88 or 8443 with a valid"
    " certificate."
)
_STOP_OTHER = "Stop the other program, or give this host a bot of its own (@BotFather)."
_ALLOW_GROUPS = "If the bot shall work in groups: @BotFather, /setjoingroups, Enable."
_CATCH_UP = "Start the host, or see why it does not receive; Telegram forgets updates after 24 hours."


class Diagnosis:
    """Tries what one bot needs. `webhook_url` is the configured one; empty: this host polls."""

    def __init__(self, api: BotApi, *, clock: Clock, timing: Timing, webhook_url: str) -> None:
        self._api = api
        self._clock = clock
        self._timing = timing
        self._webhook_url = webhook_url

    async def findings(self, listening: Probe | None) -> tuple[Finding, ...]:
        """Return what was found, see `channels.contract.Diagnosable`.

        Args:
            listening: What the receiving part of this very host says, while it runs; then no other
                poll is made, as it would end that part's own.
        """
        try:
            bot = await self._api.identity()
        except ChannelDown as error:
            return (Finding(name="token", ok=False, detail=error.detail, fix=_ASK_BOTFATHER),)
        except ChannelError as error:
            return (Finding(name="connection", ok=False, detail=error.detail, fix=_NO_ANSWER),)
        known = Finding(name="token", ok=True, detail=f"Telegram knows the bot as @{bot.username}.")
        return (known, await self._clock_finding(), *await self._receiving(listening), *_groups(bot))

    async def _clock_finding(self) -> Finding:
        server_time = await self._api.server_time()
        if server_time is None:
            return Finding(name="clock", ok=True, detail="Telegram did not tell its time.")
        off = abs(self._clock.now() - server_time)
        detail = f"This machine's clock and Telegram's are {off.total_seconds():.0f} s apart."
        is_right = off <= CLOCK_TOLERANCE
        return Finding(name="clock", ok=is_right, detail=detail, fix="" if is_right else _SET_CLOCK)

    async def _receiving(self, listening: Probe | None) -> tuple[Finding, ...]:
        """Return whether updates come here, and to nobody else."""
        try:
            state = await self._api.webhook_state()
        except ChannelError as error:
            return (Finding(name="updates", ok=False, detail=error.detail, fix=_NO_ANSWER),)
        found = [self._webhook_finding(state, is_listening=listening is not None)]
        if listening is not None:
            found.append(Finding(name="receiving", ok=listening.healthy, detail=listening.detail))
        elif not self._webhook_url and not state.url:
            found.append(await _tried("receiving", self._look_for_others()))
        return (*found, _waiting(state))

    def _webhook_finding(self, state: WebhookState, *, is_listening: bool) -> Finding:
        if not self._webhook_url:
            if not state.url:
                return Finding(name="webhook", ok=True, detail="No webhook is set, as polling needs it.")
            detail = f"A webhook is set ({host_of(state.url)}), so the bot cannot be polled."
            return Finding(name="webhook", ok=False, detail=detail, fix=_FREE_FROM_WEBHOOK)
        if not state.url and not is_listening:
            return Finding(name="webhook", ok=True, detail="No webhook is set yet; the host sets it when it starts.")
        if state.url != self._webhook_url:
            detail = f"Telegram posts updates to {host_of(state.url) or 'nobody'}, not to this host."
            return Finding(name="webhook", ok=False, detail=detail, fix=_OTHER_WEBHOOK)
        if state.failed_at is not None and self._clock.now() - state.failed_at < RECENT_FAILURE:
            detail = f"Telegram could not post an update at {state.failed_at:%H:%M} UTC: {state.failure}"
            return Finding(name="webhook", ok=False, detail=detail, fix=_CHECK_WEBHOOK)
        return Finding(name="webhook", ok=True, detail=f"Telegram posts updates to {host_of(state.url)}.")

    async def _look_for_others(self) -> Finding:
        """Poll for a moment, confirming nothing: another program's next poll would end this one."""
        try:
            updates = await self._api.updates(None, wait=self._timing.second_poller_watch)
        except PollConflict:
            detail = "Another program polls with the same bot token."
            return Finding(name="receiving", ok=False, detail=detail, fix=_STOP_OTHER)
        seen = "Updates wait for this host" if updates else "A poll was answered"
        return Finding(name="receiving", ok=True, detail=f"{seen}; no other program polls.")


async def _tried(name: str, attempt: Awaitable[Finding]) -> Finding:
    try:
        return await attempt
    except ChannelError as error:
        return Finding(name=name, ok=False, detail=error.detail, fix=_NO_ANSWER)


def _waiting(state: WebhookState) -> Finding:
    is_little = state.waiting < UPDATE_BATCH_LIMIT
    detail = f"{state.waiting} updates wait at Telegram."
    return Finding(name="backlog", ok=is_little, detail=detail, fix="" if is_little else _CATCH_UP)


def _groups(bot: BotIdentity) -> tuple[Finding, ...]:
    """Return what holds in groups; neither is a fault, as an owner may want it so."""
    if not bot.joins_groups:
        detail = "The bot cannot be added to groups."
        return (Finding(name="groups", ok=True, detail=detail, fix=_ALLOW_GROUPS),)
    heard = (
        "hears everything that is said"
        if bot.reads_groups
        else "hears only commands, mentions and replies to it, unless it is an administrator (privacy mode is on)"
    )
    return (Finding(name="groups", ok=True, detail=f"In groups the bot {heard}."),)
