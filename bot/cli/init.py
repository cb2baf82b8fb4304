"""`lodger init`: ask what somebody wants, write their configuration, and say what is left to do."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bot.config.first import PLATFORMS, FirstAnswers, first_config, variables_of
from channels.discord.invite import invite_link
from channels.slack.manifest import manifest
from core.turns.outcomes import EXIT_ERROR, EXIT_OK, EXIT_USAGE

_KEYS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY"}
_MODEL = re.compile(r"[\w.-]+/[\w./:@-]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OWNERS = {
    "telegram": (re.compile(r"\d+"), "your Telegram user id, a number that @userinfobot tells"),
    "slack": (re.compile(r"T\w+/U\w+"), "your Slack ids as TEAM/USER, such as T0TEAM/U0ALICE"),
    "discord": (re.compile(r"\d+"), "your Discord user id (Developer Mode, then Copy User ID)"),
}
_ANSWERS = {"y": "yes", "yes": "yes", "n": "", "no": "", "": ""}

_TELEGRAM_STEPS = "Telegram: get a token from @BotFather (/newbot)."
_SLACK_STEPS = (
    "Slack: at https://api.slack.com/apps choose Create New App, From a manifest, and paste {file}. Install it to "
    "the workspace; the bot token is under OAuth & Permissions. Make an app-level token with connections:write "
    "under Basic Information."
)
_DISCORD_STEPS = (
    "Discord: at https://discord.com/developers/applications make an application with a bot, and switch on its "
    "Message Content Intent. Invite it: {link}"
)


def run(options: argparse.Namespace) -> int:
    """Ask, write the file, and print the steps that only a person can take; what exists is not overwritten."""
    file = Path(options.file or options.config or "config.toml")
    if file.exists() and not options.force:
        print(f"{file} exists; --force replaces it.", file=sys.stderr)
        return EXIT_USAGE
    try:
        answers = _asked()
        application = _ask("Discord application id (enter: later)", _number_or_nothing) if _has_discord(answers) else ""
    except (EOFError, KeyboardInterrupt):
        print("\nNothing was written.", file=sys.stderr)
        return EXIT_USAGE
    try:
        _write_new(file, first_config(answers))
        steps = _steps(answers, file, application)
    except OSError as error:
        print(f"{error.filename or file} cannot be written: {error.strerror}", file=sys.stderr)
        return EXIT_ERROR
    print(f"\n{file} is written. What is left to do:")
    for number, step in enumerate(steps, start=1):
        print(f"{number}. {step}")
    return EXIT_OK


def _asked() -> FirstAnswers:
    model = _ask('Model, such as "anthropic/claude-sonnet-4-5" (enter: the scripted demo)', _model)
    variable = _ask(f"Environment variable of its key ({_usual_key(model)})", _variable_of(model)) if model else ""
    zone = _ask("Time zone, such as Europe/Berlin (enter: UTC)", _zone)
    platforms = tuple(name for name in PLATFORMS if _ask(f"Connect {name.title()}? [y/N]", _yes))
    owners = tuple(f"{name}:{_ask(_OWNERS[name][1], _owner_on(name))}" for name in platforms)
    return FirstAnswers(model=model, key_variable=variable, platforms=platforms, owners=owners, time_zone=zone)


def _ask(question: str, read: Callable[[str], str | None]) -> str:
    """Ask until the answer can be read."""
    while True:
        answer = read(input(f"{question}: ").strip())
        if answer is not None:
            return answer
        print("I cannot read that; please once more.")


def _model(answer: str) -> str | None:
    return answer if not answer or _MODEL.fullmatch(answer) else None


def _usual_key(model: str) -> str:
    return _KEYS.get(model.partition("/")[0], "enter: none")


def _variable_of(model: str) -> Callable[[str], str | None]:
    usual = _KEYS.get(model.partition("/")[0], "")
    return lambda answer: (answer or usual) if not answer or _VARIABLE.fullmatch(answer) else None


def _zone(answer: str) -> str | None:
    try:
        return ZoneInfo(answer or "UTC").key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _yes(answer: str) -> str | None:
    """Return "yes", nothing for no, None for neither."""
    return _ANSWERS.get(answer.lower())


def _owner_on(name: str) -> Callable[[str], str | None]:
    return lambda answer: answer if _OWNERS[name][0].fullmatch(answer) else None


def _number_or_nothing(answer: str) -> str | None:
    return answer if not answer or answer.isdecimal() else None


def _has_discord(answers: FirstAnswers) -> bool:
    return "discord" in answers.platforms


def _steps(answers: FirstAnswers, file: Path, application: str) -> list[str]:
    """Return what is left to do, in order; writes the Slack manifest beside the configuration."""
    steps = []
    if "telegram" in answers.platforms:
        steps.append(_TELEGRAM_STEPS)
    if "slack" in answers.platforms:
        told = file.with_name("slack-manifest.json")
        described = manifest("Lodger", "An agent that remembers and asks before it acts.", socket_mode=True)
        told.write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")
        steps.append(_SLACK_STEPS.format(file=told))
    if _has_discord(answers):
        steps.append(_DISCORD_STEPS.format(link=invite_link(application or "APPLICATION_ID")))
    if variables := variables_of(answers):
        steps.append(f"Set {', '.join(variables)} in the environment of the host.")
    return [*steps, "lodger doctor", "lodger up"]


def _write_new(file: Path, content: str) -> None:
    """Write the file as one that only its owner reads: somebody may put a secret into it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    file.touch(mode=0o600, exist_ok=False)
    file.write_text(content, encoding="utf-8")
