import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.slack.inbound_text import mentioned, readable
from channels.slack.mrkdwn import literal

NAMES = {"U0ALICE": "Alice", "W0BOB": "Bob"}


def read(text, own="U0BOT"):
    return readable(text, own=own, names=NAMES)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ask <@U0ALICE> and <@W0BOB>", "ask @Alice and @Bob"),
        ("ask <@U0ALICE|al>", "ask @Alice"),
        ("ask <@U0CAROL|carol>", "ask @carol"),
        ("ask <@U0CAROL>", "ask @U0CAROL"),
        ("in <#C0ROOM|room>", "in #room"),
        ("in <#C0ROOM|> and <#C0ROOM>", "in #C0ROOM and #C0ROOM"),
        ("<!here> and <!channel> and <!everyone>", "@here and @channel and @everyone"),
        ("<!here|@here> <!subteam^S0OPS|@ops>", "@here @ops"),
        ("<!subteam^S0OPS>", "@subteam"),
        ("at <!date^1392734382^{date}|Feb 18, 2014>", "at Feb 18, 2014"),
    ],
)
def test_people_channels_and_groups_are_read_by_their_names(text, shown):
    assert read(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<@U0BOT> hello", "hello"),
        ("<@U0BOT>   \thello", "hello"),
        ("<@U0BOT>\n hello", "hello"),
        ("<@U0BOT|lodger> hello", "hello"),
        ("hello <@U0BOT>", "hello"),
        ("hey <@U0BOT> you", "hey you"),
        ("<@U0BOT> <@U0BOT> hello", "hello"),
        ("<@U0BOT> /status", "/status"),
        ("<@U0BOT>", ""),
        ("<@U0BOT2> hello", "@U0BOT2 hello"),
        ("line\n<@U0BOT> line", "line\nline"),
    ],
)
def test_the_mention_of_the_agent_is_left_out_and_nothing_else(text, shown):
    assert read(text) == shown


def test_without_an_agent_every_mention_is_read():
    assert read("<@U0BOT> <@> hello", own="") == "@U0BOT @ hello"


def test_an_id_is_taken_for_what_it_is_and_no_pattern():
    assert read("<@UXBOT> hello", own="U.BOT") == "@UXBOT hello"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see <https://example.com/a>", "see https://example.com/a"),
        ("see <https://example.com/a|the page>", "see the page (https://example.com/a)"),
        ("see <https://example.com/a|https://example.com/a>", "see https://example.com/a"),
        ("see <https://example.com/a|>", "see https://example.com/a"),
        ("run <http://main.py|main.py>", "run main.py"),
        ("see <https://example.com/?a=1&amp;b=2|example.com/?a=1&amp;b=2>", "see example.com/?a=1&b=2"),
        ("see <https://evil.example|example.com>", "see example.com (https://evil.example)"),
        ("see <https://example.com/a?b=1&amp;c=2>", "see https://example.com/a?b=1&c=2"),
        ("write to <mailto:al@example.com|al@example.com>", "write to al@example.com"),
        ("write to <mailto:al@example.com>", "write to al@example.com"),
        ("write to <mailto:al@example.com|Al>", "write to Al (mailto:al@example.com)"),
        ("call <tel:+4930123|+4930123>", "call +4930123"),
    ],
)
def test_a_link_is_read_as_it_was_written_and_never_hides_where_it_goes(text, shown):
    assert read(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1 &lt; 2 &amp;&amp; 3 &gt; 2", "1 < 2 && 3 > 2"),
        ("&amp;lt;", "&lt;"),
        ("&amp;amp;", "&amp;"),
        ("&quot;&#39;&nbsp;", "&quot;&#39;&nbsp;"),
        ("&lt;@U0ALICE&gt;", "<@U0ALICE>"),
        ("a &lt;b|c&gt;", "a <b|c>"),
        ("<unclosed", "<unclosed"),
        ("<>", "<>"),
        ("<two\nlines>", "<two\nlines>"),
        ("  hello \n", "hello"),
        ("", ""),
    ],
)
def test_entities_are_read_once_and_what_they_hide_is_no_mention(text, shown):
    assert read(text) == shown


@given(st.text())
def test_any_text_that_was_escaped_is_read_as_it_was(text):
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

    assert read(escaped) == text.strip()


@given(st.text(alphabet="<>@#!|&;ltmp:/UW0BOT \n"))
def test_any_text_can_be_read(text):
    assert isinstance(read(text), str)
    assert set(map(type, mentioned(text))) <= {str}


def test_what_the_agent_writes_is_read_back_as_it_was_meant():
    assert read(literal("a < b & <@U0ALICE>")) == "a < b & <@U0ALICE>"


def test_everybody_who_is_mentioned_is_named_once_and_in_order():
    text = "<@W0BOB> <@U0ALICE|al> <@W0BOB> <#C0ROOM> <!here> &lt;@U0NOT&gt; <@B0OTHER> <@U0BOT>"

    assert mentioned(text) == ("W0BOB", "U0ALICE", "U0BOT")
    assert mentioned("nobody") == ()
