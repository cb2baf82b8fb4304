"""Shell lines: when is a line exactly one plain simple command, and which commands does it spell?

A wrong "yes" runs a program that nobody allowed; a wrong "no" costs one question. So a line is
trusted only when two independent readers agree on its words: the grammar below, which knows no
operator, expansion or substitution at all, and tree-sitter-bash. Where the two disagree, or one
of them meets anything it does not know, the answer is None. The places where tree-sitter-bash
alone misreads bash are the reason for the first reader.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import tree_sitter_bash
from tree_sitter import Language, Node, Parser, Tree

LINE_LIMIT_CHARS = 4_000
NESTING_LIMIT = 4

_LANGUAGE = Language(tree_sitter_bash.language())

# Unquoted: only characters that bash never interprets inside a word. Single quotes: anything.
# Double quotes: anything but the four characters that stay special in them.
# Possessive throughout: a line that does not fit is refused in linear time, however it is made.
_SEGMENT = r"""[\w./:,=+@%-]|'[^']*+'|"[^"\\$`]*+\""""
_WORD = re.compile(rf"(?:{_SEGMENT})++")
_LINE = re.compile(rf" *+(?:{_SEGMENT})++(?: ++(?:{_SEGMENT})++)*+ *+")
_PROGRAM = re.compile(r"[A-Za-z0-9_./+-]+")
_QUOTED = re.compile(r"""'([^']*)'|"([^"]*)\"""")
_QUOTING = re.compile(r"""\$(?=["'])|["'\\]""")

_RESERVED_WORDS = "if then else elif fi case esac for select while until do done in function time coproc"
_WORD_NODES = frozenset({"command_name", "word", "number", "string", "raw_string", "concatenation"})
_NO_WORDS = frozenset({"variable_assignment", "file_redirect", "heredoc_redirect", "herestring_redirect"})


def simple_command(line: str) -> tuple[str, ...] | None:
    """Return the words of `line` when it is one plain simple command, otherwise None.

    Plain means: no operator, redirection, substitution, expansion, glob, comment, escape,
    environment prefix or reserved word, and no character that does not print. Quotes are
    allowed and removed. The words are those that bash hands to the program.
    """
    text = line.strip(" \n")
    if not text or len(text) > LINE_LIMIT_CHARS or not text.isprintable() or _LINE.fullmatch(text) is None:
        return None
    tokens = _WORD.findall(text)
    if _PROGRAM.fullmatch(tokens[0]) is None or tokens[0] in _RESERVED_WORDS.split():
        return None
    words = tuple(_unquoted(token) for token in tokens)
    return words if _tree_agrees(text, words) else None


def command_text(words: tuple[str, ...]) -> str:
    """Return a line that `simple_command` reads back as `words`, where any line does."""
    return shlex.join(words)


def every_command(line: str, *, depth: int = 0) -> tuple[tuple[str, ...], ...]:
    """Return the words of every simple command that `line` seems to spell, however deep.

    For deny rules only: quotes and escapes are dropped without care for their meaning, texts
    inside words are read as lines of their own, and nothing found proves nothing.
    """
    found: list[tuple[str, ...]] = []
    for node in _walk(_parse(line).root_node):
        if node.type != "command":
            continue
        words = [child for child in node.children if child.type not in _NO_WORDS]
        found.append(tuple(_spelling(word) for word in words))
        if depth < NESTING_LIMIT:
            nested = (text for word in words if re.search(r"\s", text := _unquoted(_source(word))))
            found.extend(command for text in nested for command in every_command(text, depth=depth + 1))
    return tuple(found)


def program_name(word: str) -> str:
    """Return the bare name of a program, by whatever path it is called."""
    return word.rsplit("/", 1)[-1]


def _parse(line: str) -> Tree:
    return Parser(_LANGUAGE).parse(line.encode("utf-8", "replace"))


def _walk(root: Node) -> Iterator[Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.children)


def _source(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _unquoted(token: str) -> str:
    return _QUOTED.sub(lambda match: match[1] if match[1] is not None else match[2], token)


def _spelling(node: Node) -> str:
    return _QUOTING.sub("", _source(node))


def _tree_agrees(text: str, words: tuple[str, ...]) -> bool:
    root = _parse(text).root_node
    if root.has_error or root.child_count != 1 or root.children[0].type != "command":
        return False
    nodes = root.children[0].children
    if any(node.type not in _WORD_NODES for node in nodes):
        return False
    return tuple(_unquoted(_source(node)) for node in nodes) == words
