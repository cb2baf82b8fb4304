"""Markdown as Slack shows it: the tree, written in Slack's own marks and escaped once; pure.

Slack's mrkdwn has `*bold*`, `_italic_`, `~struck~`, code, quotes of one level and `<url|label>`; it has
no headings, lists, tables or nested quotes, and nothing that makes a mark mean itself. So a text is
parsed as on all platforms and written anew, and what would be taken for a mark is kept from being
one by a zero-width space. The only `<` that goes out raw opens a link to the web or to a mail
address: nothing that an agent writes can mention anybody.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

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
    parse,
    plain_text,
)
from channels.tables import draw_table, links_of

FENCE = "```"

_STRONG, _EMPHASIS, _STRIKE = "*", "_", "~"
_ALL_MARKS = "*_~`"
_RULE = "─" * 10
_BULLET = "•"
_INDENT = "    "
_QUOTE = "> "
_DEEPEST_INDENT = 8
"""So that no line grows without bound, however deeply its list is nested."""

_ZERO_WIDTH_SPACE = "\u200b"
_BACKTICK_STAND_IN = "\u02cb"
_BACKTICKS = re.compile(r"`{3,}")
_MARKS = re.compile(
    r"(?<![0-9A-Za-z])[*_~](?!\s|\Z)"  # could open
    r"|(?<!\s)(?<!\A)[*_~](?![0-9A-Za-z])"  # could close
)
_QUOTE_SIGN = re.compile(r"^(?=&gt;)", re.MULTILINE)
_CONTROL = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\u2421", ord("\n"): "\n", ord("\t"): "\t"}
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_URL_ESCAPES = str.maketrans({"&": "&amp;", "<": "%3C", ">": "%3E", "|": "%7C", " ": "%20"})
_MENTION = re.compile(r"<(?=[!@#])")
_INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})


def render(markdown: str) -> str:
    """Return a Markdown text as Slack's mrkdwn; empty where there is nothing to see.

    Lists have bullets and numbers, headings are bold, tables stand as aligned code with their links
    below, images are links. Blocks of code stand at the margin, also inside lists and quotes.
    """
    text = "\n".join(line.text for line in _blocks(parse(encodable(markdown)), apart=True))
    return text if is_visible(text.replace(_RULE, "")) else ""


def escape(text: str) -> str:
    """Return characters that mean themselves, where marks do no harm."""
    return encodable(text).translate(_ESCAPES)


def literal(text: str) -> str:
    """Return plain text, which may have several lines, so that no character of it is a mark."""
    return _QUOTE_SIGN.sub(_ZERO_WIDTH_SPACE, _literal(encodable(text)))


def code_block(code: str) -> str:
    """Return verbatim lines between fences."""
    unfenced = _BACKTICKS.sub(lambda run: _ZERO_WIDTH_SPACE.join(run[0]), escape(code))
    return f"{FENCE}\n{unfenced}\n{FENCE}"


def defused(text: str) -> str:
    """Return a text that is not escaped with no `<` that Slack could take for a mention's."""
    return _MENTION.sub(f"<{_ZERO_WIDTH_SPACE}", encodable(text))


def encodable(text: str) -> str:
    """Return `text` as a request can carry it.

    Lone surrogates become U+FFFD, and control characters signs that can be seen: nobody approves a
    command with something in it that is not shown.
    """
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.replace("\r\n", "\n").replace("\r", "\n").translate(_CONTROL)


def is_visible(text: str) -> bool:
    """Return whether a message of `text` would show anything."""
    return any(unicodedata.category(char) not in _INVISIBLE for char in text)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A line as it goes out; one of code stands at the margin, whatever it is in."""

    text: str
    is_code: bool = False

    def behind(self, prefix: str) -> _Line:
        return self if self.is_code else replace(self, text=(prefix + self.text).rstrip())


def _blocks(blocks: Sequence[Block], *, apart: bool, depth: int = 0) -> list[_Line]:
    """Return blocks below each other, with an empty line between them where they stand apart."""
    lines: list[_Line] = []
    for block in blocks:
        drawn = _block(block, depth)
        if lines and drawn and apart:
            lines.append(_Line(text=""))
        lines += drawn
    return lines


def _block(block: Block, depth: int) -> list[_Line]:
    match block:
        case Paragraph(children=children):
            lines = _text_lines(_inlines(children, ()))
        case Heading(children=children):
            lines = _text_lines(_wrapped(_STRONG, _inlines(children, (_STRONG,))))
        case CodeBlock(text=text):
            lines = _code_lines(text)
        case Quote(blocks=blocks):
            lines = [line.behind(_QUOTE) for line in _blocks(blocks, apart=True, depth=depth)]
        case List():
            lines = _list(block, depth)
        case Table():
            links = " · ".join(_link(link.url, link.children) for link in links_of(block))
            lines = _code_lines(draw_table(block)) + _text_lines(links)
        case Rule():
            lines = [_Line(text=_RULE)]
        case _:
            assert_never(block)
    return lines


def _list(block: List, depth: int) -> list[_Line]:
    lines: list[_Line] = []
    indent = _INDENT if depth < _DEEPEST_INDENT else ""
    for number, item in enumerate(block.items):
        if number and not block.tight:
            lines.append(_Line(text=""))
        bullet = f"{block.start + number}." if block.ordered else _BULLET
        drawn = _blocks(item, apart=not block.tight, depth=depth + 1)
        if drawn and not drawn[0].is_code and isinstance(item[0], Paragraph | Heading):
            lines.append(drawn.pop(0).behind(f"{bullet} "))
        else:
            lines.append(_Line(text=bullet))
        lines += [line.behind(indent) for line in drawn]
    return lines


def _text_lines(text: str) -> list[_Line]:
    return [_Line(text=line) for line in _QUOTE_SIGN.sub(_ZERO_WIDTH_SPACE, text).split("\n")] if text else []


def _code_lines(code: str) -> list[_Line]:
    """Return a block of code; none for one of mere blanks, which Slack would show as its fences."""
    if not is_visible(code):
        return []
    return [_Line(text=line, is_code=True) for line in code_block(code.rstrip("\n")).split("\n")]


def _inlines(children: Iterable[Inline], within: tuple[str, ...]) -> str:
    """Return inline content; `within` are the marks around it."""
    text = ""
    is_marked = False
    for inline in children:
        piece = _inline(inline, within)
        marks_now = isinstance(inline, Strong | Emphasis | Strike | Code) and bool(piece)
        if text and piece:
            opens_late = marks_now and not piece[0].isspace() and _is_inside(text[-1])
            closes_early = is_marked and not text[-1].isspace() and _is_inside(piece[0])
            text += _ZERO_WIDTH_SPACE if opens_late or closes_early else ""
        text += piece
        is_marked = marks_now or (is_marked and not piece)
    return text


def _is_inside(char: str) -> bool:
    """Return whether Slack sees no mark beside a character: in the middle of a word, or at another mark."""
    return char.isalnum() or char in _ALL_MARKS


def _inline(inline: Inline, within: tuple[str, ...]) -> str:
    match inline:
        case Text(text=text):
            shown = _literal(text)
        case Strong(children=children):
            shown = _marked(_STRONG, children, within)
        case Emphasis(children=children):
            shown = _marked(_EMPHASIS, children, within)
        case Strike(children=children):
            shown = _marked(_STRIKE, children, within)
        case Code(text=text):
            shown = _code(text)
        case Link(url=url, children=children):
            shown = _link(url, children)
        case Image(url=url, label=label):
            shown = _link(url, (Text(text=label),))
        case Break():
            shown = "\n"
        case _:
            assert_never(inline)
    return shown


def _code(text: str) -> str:
    """Return verbatim characters in a line; Slack has no way to put a backtick among them."""
    shown = text.translate(_ESCAPES).replace("`", _BACKTICK_STAND_IN)
    return f"`{shown}`" if is_visible(shown) else shown


def _marked(mark: str, children: Sequence[Inline], within: tuple[str, ...]) -> str:
    if mark in within:
        return _inlines(children, within)
    return _wrapped(mark, _inlines(children, (*within, mark)))


def _wrapped(mark: str, text: str) -> str:
    """Put marks around each line of a text, inside its outer blanks, where Slack takes them for marks."""
    return "\n".join(_wrapped_line(mark, line) for line in text.split("\n"))


def _wrapped_line(mark: str, line: str) -> str:
    inner = line.strip()
    if not is_visible(inner):
        return line
    start = len(line) - len(line.lstrip())
    return f"{line[:start]}{mark}{inner}{mark}{line[start + len(inner) :]}"


def _link(url: str, children: Sequence[Inline]) -> str:
    """Return a link; its label is plain on Slack."""
    target = url.translate(_URL_ESCAPES)
    label = " ".join(plain_text(children).split())
    if not is_visible(label) or label == url:
        return f"<{target}>"
    return f"<{target}|{label.translate(_ESCAPES)}>"


def _literal(text: str) -> str:
    """Return characters of a line that mean themselves; a backtick, which nothing disarms, as one that looks alike."""
    unmarked = _MARKS.sub(rf"\g<0>{_ZERO_WIDTH_SPACE}", text.replace("`", _BACKTICK_STAND_IN))
    return unmarked.translate(_ESCAPES)
