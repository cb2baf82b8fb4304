"""What people read of a text on Discord: its marks, by the rules of Discord's clients.

A client tries its rules at each character in turn. These are the ones that could hide or change what
is written, as open parsers of Discord's Markdown have them; colours and mentions do not matter here.
"""

import re

FENCE = "```"

_BLOCK = re.compile(r"```(?:[a-z0-9_+\-.#]+?\n)?\n*([^\n][\s\S]*?)\n*```", re.IGNORECASE)
_LINE_START = re.compile(r" *(?:(?:-#|#{1,3}|>|>>>) +(?=\S)|(?:[*-]|\d+\.) +)")
_CODE = re.compile(r"(`+)([\s\S]*?[^`])\1(?!`)")
_PADDING = re.compile(r"^ (?= *`)|(?<=`) $")
_STRONG = re.compile(r"\*\*((?:\\[\s\S]|[^\\])+?)\*\*(?!\*)")
_UNDERLINE = re.compile(r"__((?:\\[\s\S]|[^\\])+?)__(?!_)")
_EMPHASIS = re.compile(
    r"_((?:__|\\[\s\S]|[^\\_])+?)_(?![0-9A-Za-z_])"
    r"|\*(?=\S)((?:\*\*|\\[\s\S]|\s+(?:\\[\s\S]|[^\s*\\]|\*\*)|[^\s*\\])+?)\*(?!\*)"
)
_RULES = (
    (re.compile(r"\\([^0-9A-Za-z\s])"), 1, False),
    (re.compile(r"<(https?://[^ >]+)>"), 1, False),
    (re.compile(r"(https?://[^\s<]+[^<.,:;\"'\]\s])"), 1, False),
    (re.compile(r"\[((?:\[[^\]]*\]|[^\[\]]|\](?=[^\[]*\]))*)\]\(<?https?://(?:\([^)]*\)|[^\s\\]|\\.)*?>?\)"), 1, True),
    (re.compile(r"~~([\s\S]+?)~~(?!_)"), 1, True),
    (re.compile(r"\|\|([\s\S]+?)\|\|"), 1, True),
)
"""Each with the group that is read on, and whether it is looked into for more.

Of the three above the longest counts.
"""


def seen(text):
    """Return the characters that people see, without the marks that became formatting."""
    read, position, at_line_start = [], 0, True
    while position < len(text):
        match, shown = _first(text, position, at_line_start)
        read.append(shown)
        position = match
        at_line_start = shown.endswith("\n") and text[position - 1] == "\n"
    return "".join(read)


def blocks_of_code(text):
    """Return what stands in blocks of code."""
    return [found[1] for found in _BLOCK.finditer(text)]


def has_broken_fence(text):
    """Whether a fence opens that nothing closes."""
    return FENCE in _BLOCK.sub("", text)


def _first(text, position, at_line_start):
    """Return where the reading goes on, and what was read."""
    if (block := _BLOCK.match(text, position)) is not None:
        return block.end(), block[1]
    if at_line_start and (mark := _LINE_START.match(text, position)) is not None:
        return mark.end(), ""
    if (code := _CODE.match(text, position)) is not None:
        return code.end(), _PADDING.sub("", code[2])
    strongest = [found for rule in (_EMPHASIS, _STRONG, _UNDERLINE) if (found := rule.match(text, position))]
    if strongest:
        found = max(strongest, key=lambda found: len(found[0]))
        return found.end(), seen(found[found.lastindex])
    for rule, group, goes_on in _RULES:
        if (found := rule.match(text, position)) is not None:
            return found.end(), seen(found[group]) if goes_on else found[group]
    return position + 1, text[position]
