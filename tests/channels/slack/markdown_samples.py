"""Markdown for the tests of what Slack is sent, and what has to hold for all of it."""

import re

from hypothesis import strategies as st

MENTIONS = (
    "notify @everyone and @here, <!channel>, <!here>, <!subteam^S0TEAM>, <@U0BOB>, <@&9300>, role <@&9301>;"
    " if a < b && b > c: see https://example.org/x?y=1&z=2"
)
"""The answer of case C17."""

DOCUMENT = """# Plan for **today**

Some *text* with `code`, a [link](https://example.org/a_(b)?c=d&e=f) and ~~old~~ words: 2*3*4, **open. <!here> @channel

1. First
   ```python
   def f(x):
       return "\U0001f600" if x < 1 & 2 else "<@U0BOB>"
   ```
2. Second
   - inner **bold `x`**
   > quoted <#C0ROOM|room>

| a | b |
|--:|---|
| 1 | [t](https://example.org/t) <!everyone> |

---
![image](https://example.org/i.png) <https://example.org> é 👩‍💻 &lt;!channel&gt;
```
never closed ` `` <!channel>"""

_BLOCKS = ["```\n", "```python\n", "~~~\n", "- ```py\n  ", "> ```\n> ", "- item\n", "  - inner\n", "1. ", "> ", "# h\n"]
_WORDS = ["word ", "字", "\n", "\n\n", "   ", "    ", "\t", "|a|b\n|-|-|\n", "|1|2\n", "x" * 40, "\r\n", "---\n"]
_MARKS = ["*", "**", "_", "~~", "~", "`", "``", "`in line`", "**bold**", "*it*", "***", "\\*", "\\`", "a*b*c", "\\"]
_WHOLES = ["[a b](https://c.d/e_(f))", "[](https://e.f)", "[`c`|d](mailto:a@b.c)", "https://q.r/s?t=u&v=w|x", "e\u0301"]
_RISKS = [
    "<",
    ">",
    "&",
    "&lt;",
    "&amp;lt;",
    "<!channel>",
    "<@U0BOB>",
    "<#C0ROOM>",
    "!",
    "@",
    "#",
    "@here",
    "\U0001f600",
]
_ODD = ["\ud83d", "\ude00", "\x00", "\x1b", "\u200b", "\u2028", "\ufeff"]

MARKDOWN = st.lists(st.sampled_from(_BLOCKS + _WORDS + _MARKS + _WHOLES + _RISKS + _ODD), max_size=60).map("".join)

_TAG = re.compile(r"<(?:https?://|mailto:)[^<>|\s]*(?:\|[^<>\n]*)?>")
_ENTITIES = re.compile(r"&(?!amp;|lt;|gt;)")


def assert_safe_mrkdwn(text):
    """Nothing is raw but links to the web or to a mail address; every `&` is of an escape; fences stand in pairs."""
    bare = _TAG.sub("", text)
    assert "<" not in bare, text
    assert not _ENTITIES.search(text), text
    assert text.count("```") % 2 == 0, text
    fences = [line for line in text.split("\n") if "```" in line]
    assert set(fences) <= {"```"}, text
    assert not re.search("[\ud800-\udfff\x00-\x08\x0b-\x1f]", text)


def assert_no_mention(payload):
    """No text of a payload opens a mention."""
    told = str(payload)
    assert not re.search(r"<[!@#]", told), told
