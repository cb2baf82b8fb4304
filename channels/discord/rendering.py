"""Markdown as Discord shows it: the tree, written in the marks that Discord knows; pure.

Discord has headings of three levels, no tables, rules, images, entities and references, reads
`__x__` as underlined and `||x||` as hidden, and ends code at the first three backticks. So a text is
parsed as on all platforms and written anew; a character gets a backslash only where Discord would
take it for a mark, and there it hides the backslash.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never
from urllib.parse import urlsplit

from channels.markdown import (
    Block,
    Break,
    Code,
    CodeBlock,
    Emphasis,
    Heading,
    Image,
    Inline,
    Link,
    List,
    Paragraph,
    Quote,
    Rule,
    Strike,
    Strong,
    Table,
    Text,
    plain_text,
)
from channels.tables import draw_table, links_of

FENCE = "```"

_RULE = "─" * 10
_INDENT = "  "
_QUOTE = "> "
_DEEPEST_INDENT = 8
"""So that no line grows without bound, however deeply its list is nested."""
_DEEPEST_HEADING = 3
_STRONG, _EMPHASIS, _STRIKE = "**", "*", "~~"

_ZERO_WIDTH_SPACE = "\u200b"
_JOINING = "`*~"
"""Two of these beside each other would be read as one mark."""
_BACKTICKS = re.compile(r"`{2,}")
_LANGUAGE = re.compile(r"[A-Za-z0-9_+\-.#]{1,32}")

_MARKS = re.compile(
    r"\\(?=[^0-9A-Za-z\s]|\Z)"  # would hide what follows
    r"|`"
    r"|(?<!\s)\*|\*(?!\s)"
    r"|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])"  # inside a word it is none
    r"|~(?=~)|(?<=~)~"
    r"|\|(?=\|)|(?<=\|)\|"
    r"|(?<=\])\("  # a link with a label
)
_LINE_MARK = re.compile(r"([^\S\n]*(?:\d{1,9}(?=\.))?)(?=(?:#{1,3}|-#?|>(?:>>)?|(?<=\d)\.)(?:\s|\Z))")
"""What stands before a mark that makes a heading, an item or a quote of its line."""

_PUNCTUATION = re.compile(r"[.,:;\"']*")
_ENDED = re.compile(r"[.,:;\"']*\s")
"""Discord takes none of these for the end of an address."""
_LOOKAHEAD = 3

_INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})
_NO_HOST = re.compile(r"[\s\"#<>?@\[\\\]^`{|}:]")
_FLAT_PARENTHESES = re.compile(r"[^()]*+(?:\([^()]*+\)[^()]*+)*+")


def render_blocks(blocks: Sequence[Block]) -> str:
    """Return a parsed Markdown text as Discord's Markdown; empty where there is nothing to see.

    Tables stand as aligned code with their links below, images are links, small headings are bold.
    Fences are balanced whatever the text holds: runs of backticks inside code get invisible blanks.
    """
    text = "\n".join(line.text for line in _drawn(blocks, apart=True)).strip()
    return text if is_visible(text.replace(FENCE, "").replace(_RULE, "")) else ""


def is_visible(text: str) -> bool:
    """Return whether a message of `text` would show anything."""
    return any(unicodedata.category(char) not in _INVISIBLE for char in text)


def encodable(text: str) -> str:
    """Return `text` without lone surrogates, which no request can carry."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def escaped(text: str) -> str:
    """Return plain text, of any number of lines, so that Discord shows it as it is."""
    return "\n".join(_at_line_start(_MARKS.sub(r"\\\g<0>", line)) for line in text.split("\n"))


def fenced(code: str, language: str = "") -> str:
    """Return code as a block of its own, which nothing in it ends."""
    shown = _unbroken(code) if FENCE in code else code
    known = language if _LANGUAGE.fullmatch(language) else ""
    return f"{FENCE}{known}\n{shown}\n{FENCE}"


@dataclass(frozen=True, slots=True)
class _Line:
    """One line; of code nothing may be indented, as the blanks would show."""

    text: str
    is_code: bool = False

    def behind(self, prefix: str) -> _Line:
        return self if self.is_code or not self.text else _Line(prefix + self.text)

    def quoted(self) -> _Line:
        return _Line(_QUOTE + self.text, is_code=self.is_code)


def _drawn(blocks: Sequence[Block], *, apart: bool, depth: int = 0) -> list[_Line]:
    """Return the lines of blocks below each other, with an empty one between them where they stand `apart`.

    `depth` is how many lists they stand in.
    """
    lines: list[_Line] = []
    is_below_heading = False
    for block in blocks:
        drawn = _block(block, depth)
        if lines and drawn and apart and not is_below_heading:
            lines.append(_Line(""))
        lines += drawn
        is_below_heading = isinstance(block, Heading)
    return lines


def _block(block: Block, depth: int) -> list[_Line]:
    lines: list[_Line]
    match block:
        case Paragraph(children=children):
            lines = _text_lines(_inlines(children, ()))
        case Heading(level=level, children=children):
            lines = _text_lines(_heading(level, children, depth))
        case CodeBlock(language=language, text=text):
            lines = _code_lines(text.strip("\n"), language)
        case Quote(blocks=blocks):
            lines = [line.quoted() for line in _drawn(blocks, apart=True, depth=depth)]
        case List():
            lines = _list(block, depth)
        case Table():
            lines = _table(block)
        case Rule():
            lines = [_Line(_RULE)]
        case _:
            assert_never(block)
    return lines


def _heading(level: int, children: Sequence[Inline], depth: int) -> str:
    if level > _DEEPEST_HEADING or depth:
        return _marked(_STRONG, children, ())
    text = _inlines(children, ()).strip()
    return f"{'#' * level} {text}" if text else ""


def _list(block: List, depth: int) -> list[_Line]:
    lines: list[_Line] = []
    indent = _INDENT if depth < _DEEPEST_INDENT else ""
    for number, item in enumerate(block.items):
        if lines and not block.tight:
            lines.append(_Line(""))
        bullet = f"{block.start + number}." if block.ordered else "-"
        drawn = _drawn(item, apart=not block.tight, depth=depth + 1)
        if drawn and item and isinstance(item[0], Paragraph | Heading):
            # Other blocks would not be read as such behind a bullet.
            lines.append(drawn.pop(0).behind(f"{bullet} "))
        else:
            lines.append(_Line(bullet))
        lines += [line.behind(indent) for line in drawn]
    return lines


def _table(table: Table) -> list[_Line]:
    links = " · ".join(_link(link.url, link.children, (), is_apart=True) for link in links_of(table))
    return _code_lines(draw_table(table)) + _text_lines(links)


def _text_lines(text: str) -> list[_Line]:
    return [_Line(line) for line in text.split("\n")] if text else []


def _code_lines(code: str, language: str = "") -> list[_Line]:
    """Return a block of code; none for one of mere blanks, which Discord would show as its fences."""
    if not code.strip():
        return []
    return [_Line(line, is_code=True) for line in fenced(code, language).split("\n")]


def _inlines(children: Sequence[Inline], within: tuple[str, ...]) -> str:
    """Return inline content; `within` are the marks around it."""
    pieces = [""]
    for number, inline in enumerate(children, start=1):
        piece = _inline(inline, within, is_apart=_begins_apart(children[number : number + _LOOKAHEAD]))
        if not piece:
            continue
        if pieces[-1][-1:] == piece[0] and piece[0] in _JOINING:
            piece = _ZERO_WIDTH_SPACE + piece
        at_start = not pieces[-1] or pieces[-1].endswith("\n")
        pieces.append(_at_line_start(piece) if at_start and isinstance(inline, Text) else piece)
    return "".join(pieces)


def _inline(inline: Inline, within: tuple[str, ...], *, is_apart: bool) -> str:
    """Return one part; what follows is told from an address that ends it if it `is_apart`."""
    match inline:
        case Text(text=text):
            drawn = _MARKS.sub(r"\\\g<0>", text)
        case Strong(children=children):
            drawn = _marked(_STRONG, children, within)
        case Emphasis(children=children):
            drawn = _marked(_EMPHASIS, children, within)
        case Strike(children=children):
            drawn = _marked(_STRIKE, children, within)
        case Code(text=text):
            drawn = _code(text)
        case Link(url=url, children=children):
            drawn = _link(url, children, within, is_apart=is_apart)
        case Image(url=url, label=label):
            drawn = _link(url, (Text(text=label),), within, is_apart=is_apart)
        case Break():
            drawn = "\n"
        case _:
            assert_never(inline)
    return drawn


def _begins_apart(following: Sequence[Inline]) -> bool:
    """Return whether Discord ends an address that stands right before `following`."""
    for inline in following:
        match inline:
            case Text(text=text) if _PUNCTUATION.fullmatch(text):
                continue
            case Text(text=text):
                return _ENDED.match(text) is not None
            case _:
                return isinstance(inline, Break)
    return True


def _marked(mark: str, children: Sequence[Inline], within: tuple[str, ...]) -> str:
    if mark in within or _holds(children, mark[0]):
        return _inlines(children, within)
    return _wrapped(mark, _inlines(children, (*within, mark)))


def _holds(children: Sequence[Inline], char: str) -> bool:
    """Return whether code or an address holds a character, which there takes no backslash and ends the marks around."""
    for inline in children:
        match inline:
            case Code(text=verbatim) | Image(url=verbatim):
                found = char in verbatim
            case Link(url=url, children=inner):
                found = char in url or _holds(inner, char)
            case Strong(children=inner) | Emphasis(children=inner) | Strike(children=inner):
                found = _holds(inner, char)
            case Text() | Break():
                found = False
            case _:
                assert_never(inline)
        if found:
            return True
    return False


def _wrapped(mark: str, text: str) -> str:
    """Put marks around a text, inside its outer blanks, where Discord takes them for marks."""
    inner = text.strip()
    if not inner:
        return text
    start = len(text) - len(text.lstrip())
    return f"{text[:start]}{mark}{inner}{mark}{text[start + len(inner) :]}"


def _code(text: str) -> str:
    if "`" not in text:
        return f"`{text}`"
    # Discord takes a blank away again where it stands beside a backtick, and only there.
    before, after = " " * text.startswith("`"), " " * text.endswith("`")
    return f"``{before}{_unbroken(text)}{after}``"


def _unbroken(code: str) -> str:
    """Return code without two backticks beside each other."""
    return _BACKTICKS.sub(lambda run: _ZERO_WIDTH_SPACE.join(run[0]), code)


def _link(url: str, children: Sequence[Inline], within: tuple[str, ...], *, is_apart: bool) -> str:
    """Return a link: its address alone where that is all it shows, as `[url](url)` is no link on Discord."""
    label = plain_text(children).strip()
    if label in {url, url.removeprefix("mailto:")} or not is_visible(label):
        return _address(url, is_apart=is_apart)
    text = " ".join(_inlines(children, within).split())
    if _is_linkable(url) and not _spoils_label(label):
        return f"[{text}]({_balanced(url)})"
    return f"{text} ({_address(url, is_apart=False)})"


def _address(url: str, *, is_apart: bool) -> str:
    """Return a bare address, in angle brackets where Discord would take what follows for a part of it."""
    if url.startswith("mailto:"):
        return _MARKS.sub(r"\\\g<0>", url.removeprefix("mailto:"))
    return url if is_apart else f"<{url}>"


def _is_linkable(url: str) -> bool:
    """Return whether Discord makes a link of a label with that target."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and "." in host.strip(".") and not _NO_HOST.search(host)


def _spoils_label(label: str) -> bool:
    """Return whether Discord takes a text for no label: brackets end it, and an address in it is suspicious."""
    return "[" in label or "]" in label or "://" in label


def _balanced(url: str) -> str:
    """Return a link's target without parentheses that would end it too early."""
    if _FLAT_PARENTHESES.fullmatch(url):
        return url
    return url.replace("(", "%28").replace(")", "%29")


def _at_line_start(text: str) -> str:
    """Return the beginning of a line so that it is read as text."""
    return _LINE_MARK.sub(r"\1\\", text, count=1) if _LINE_MARK.match(text) else text
