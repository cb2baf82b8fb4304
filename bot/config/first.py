"""A person's first configuration, as text: the shortest file that does what they want."""

from __future__ import annotations

from dataclasses import dataclass

_TOKENS = {
    "telegram": (("token", "TELEGRAM_BOT_TOKEN"),),
    "slack": (("bot_token", "SLACK_BOT_TOKEN"), ("app_token", "SLACK_APP_TOKEN")),
    "discord": (("token", "DISCORD_BOT_TOKEN"),),
}
PLATFORMS = tuple(_TOKENS)
"""What can be connected, in the order in which it is asked about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstAnswers:
    """What somebody wants. `model` is a litellm name or empty for the demo; `owners` are CHANNEL:ID."""

    model: str
    key_variable: str
    platforms: tuple[str, ...]
    owners: tuple[str, ...]
    time_zone: str


def first_config(answers: FirstAnswers) -> str:
    """Return a configuration that the host accepts; every secret is the name of an environment variable."""
    blocks = ["# Every key is explained in config.example.toml.", f'[host]\ntime_zone = "{answers.time_zone}"']
    if answers.model:
        key = f'\napi_key = {{ env = "{answers.key_variable}" }}' if answers.key_variable else ""
        blocks.append(f'[models.main]\nmodel = "{answers.model}"{key}')
    blocks += [
        "\n".join([f"[channels.{name}]", *(f'{key} = {{ env = "{variable}" }}' for key, variable in _TOKENS[name])])
        for name in answers.platforms
    ]
    if answers.owners:
        named = ", ".join(f'"{owner}"' for owner in answers.owners)
        blocks.append(f"[access]\nowners = [{named}]")
    return "\n\n".join(blocks) + "\n"


def variables_of(answers: FirstAnswers) -> tuple[str, ...]:
    """Return the environment variables that the configuration needs, in its order."""
    key = (answers.key_variable,) if answers.model and answers.key_variable else ()
    return (*key, *(variable for name in answers.platforms for _, variable in _TOKENS[name]))
