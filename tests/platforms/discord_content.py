"""What a message of a fake Discord may consist of, and whom it mentions.

Limits follow Discord's page on messages, as read on 2026-11-30.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from tests.platforms.discord_components import Component, check_components, numbered
from tests.platforms.discord_refusals import bad_length, invalid_form, too_long

TEXT_LIMIT_CHARS = 2000
NONCE_LIMIT_CHARS = 25
EMBEDS_LIMIT = 10
EMBED_FIELDS_LIMIT = 25
EMBEDS_TOTAL_LIMIT_CHARS = 6000

SUPPRESS_EMBEDS = 1 << 2
HAS_THREAD = 1 << 5
EPHEMERAL = 1 << 6
LOADING = 1 << 7
SUPPRESS_NOTIFICATIONS = 1 << 12
IS_VOICE_MESSAGE = 1 << 13
IS_COMPONENTS_V2 = 1 << 15

_SETTABLE = SUPPRESS_EMBEDS | EPHEMERAL | SUPPRESS_NOTIFICATIONS | IS_COMPONENTS_V2
_EMBED_LIMITS = {"title": 256, "description": 4096}
_USER = re.compile(r"<@!?(\d+)>")
_ROLE = re.compile(r"<@&(\d+)>")
_EVERYONE = re.compile(r"@(everyone|here)\b")

Body = dict[str, Any]


@dataclass
class Content:
    """What people see of a message, beside its files."""

    text: str = ""
    embeds: list[dict[str, Any]] = field(default_factory=list)
    components: list[Component] = field(default_factory=list)
    flags: int = 0

    @property
    def is_empty(self) -> bool:
        return not (self.text or self.embeds or self.components)


@dataclass
class Mentions:
    """Whom a message notifies, by id."""

    users: list[int] = field(default_factory=list)
    roles: list[int] = field(default_factory=list)
    everyone: bool = False


def read_content(body: Body, before: Content, path: str = "") -> Content:
    """Return the content that a body asks for; what it leaves out stays as it was `before`.

    Args:
        path: What stands before the names of fields in a refusal, such as `data.`.
    """
    flags = before.flags & ~_SETTABLE | (int(body["flags"] or 0) & _SETTABLE) if "flags" in body else before.flags
    flags |= before.flags & IS_COMPONENTS_V2
    content = Content(
        text=str(body["content"] or "").strip() if "content" in body else before.text,
        embeds=[_shown(embed) for embed in body["embeds"] or []] if "embeds" in body else before.embeds,
        components=before.components,
        flags=flags,
    )
    is_v2 = bool(flags & IS_COMPONENTS_V2)
    if "components" in body:
        check_components(body["components"] or [], is_v2=is_v2, path=f"{path}components")
        content.components = numbered(body["components"] or [])
    if len(content.text) > TEXT_LIMIT_CHARS:
        raise too_long(f"{path}content", TEXT_LIMIT_CHARS)
    if is_v2 and (content.text or content.embeds):
        message = "The 'content' field cannot be used when using MessageFlags.IS_COMPONENTS_V2"
        raise invalid_form(f"{path}content", "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2", message)
    check_embeds(content.embeds, path)
    return content


def check_nonce(body: Body) -> str | None:
    """Return the nonce of a new message, if it has one."""
    nonce = body.get("nonce")
    if nonce is not None and len(str(nonce)) > NONCE_LIMIT_CHARS:
        raise too_long("nonce", NONCE_LIMIT_CHARS)
    return None if nonce is None else str(nonce)


def check_embeds(embeds: list[dict[str, Any]], path: str = "") -> None:
    """Refuse embeds that are too many or too long."""
    if len(embeds) > EMBEDS_LIMIT:
        raise bad_length(f"{path}embeds", 0, EMBEDS_LIMIT)
    for number, embed in enumerate(embeds):
        here = f"{path}embeds.{number}"
        for name, limit in _EMBED_LIMITS.items():
            if len(embed.get(name) or "") > limit:
                raise too_long(f"{here}.{name}", limit)
        if len(embed.get("fields") or []) > EMBED_FIELDS_LIMIT:
            raise bad_length(f"{here}.fields", 0, EMBED_FIELDS_LIMIT)
        for place, part in enumerate(embed.get("fields") or []):
            _check_field(part, f"{here}.fields.{place}")
        if len((embed.get("footer") or {}).get("text") or "") > 2048:
            raise too_long(f"{here}.footer.text", 2048)
        if len((embed.get("author") or {}).get("name") or "") > 256:
            raise too_long(f"{here}.author.name", 256)
    if sum(_embed_chars(embed) for embed in embeds) > EMBEDS_TOTAL_LIMIT_CHARS:
        message = f"Embed size exceeds maximum size of {EMBEDS_TOTAL_LIMIT_CHARS}"
        raise invalid_form(f"{path}embeds", "MAX_EMBED_SIZE_EXCEEDED", message)


def mentions_in(text: str, rule: Any, *, replied_to: int | None, may_mention_all: bool) -> Mentions:
    """Return whom a text notifies under its `allowed_mentions`, which is None where there are none.

    Args:
        replied_to: Author of the message that this one answers.
        may_mention_all: Whether its author may notify everyone.
    """
    users = [int(user) for user in _USER.findall(text)]
    roles = [int(role) for role in _ROLE.findall(text)]
    everyone = bool(_EVERYONE.search(text)) and may_mention_all
    notifies_replied = True
    if rule is not None:
        parse = set(rule.get("parse") or ())
        for kind in ("users", "roles"):
            if kind in parse and rule.get(kind):
                message = f'parse:["{kind}"] and {kind}: [ids...] are mutually exclusive.'
                raise invalid_form("allowed_mentions", "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE", message)
        users = [user for user in users if "users" in parse or str(user) in _texts(rule.get("users"))]
        roles = [role for role in roles if "roles" in parse or str(role) in _texts(rule.get("roles"))]
        everyone = everyone and "everyone" in parse
        notifies_replied = bool(rule.get("replied_user"))
    if replied_to is not None and notifies_replied:
        users.append(replied_to)
    return Mentions(users=list(dict.fromkeys(users)), roles=list(dict.fromkeys(roles)), everyone=everyone)


def _check_field(part: dict[str, Any], path: str) -> None:
    for name, limit in (("name", 256), ("value", 1024)):
        if not 1 <= len(part.get(name) or "") <= limit:
            raise bad_length(f"{path}.{name}", 1, limit)


def _embed_chars(embed: dict[str, Any]) -> int:
    texts = [embed.get("title"), embed.get("description"), (embed.get("footer") or {}).get("text")]
    texts.append((embed.get("author") or {}).get("name"))
    for part in embed.get("fields") or []:
        texts += [part.get("name"), part.get("value")]
    return sum(len(text or "") for text in texts)


def _shown(embed: dict[str, Any]) -> dict[str, Any]:
    return {"type": "rich"} | embed


def _texts(snowflakes: Any) -> set[str]:
    return {str(snowflake) for snowflake in snowflakes or ()}
