from channels.discord.quiet import quieted, quieted_answer

NOBODY = {"parse": [], "replied_user": False}


def test_every_message_mentions_nobody_whatever_it_says_c17():
    assert quieted({"content": "@everyone <@&9300>", "allowed_mentions": {"parse": ["everyone"]}}) == {
        "content": "@everyone <@&9300>",
        "allowed_mentions": NOBODY,
    }


def test_links_are_not_unfolded_and_other_flags_stay_c17():
    assert quieted({"content": "see https://x.org", "flags": 4096})["flags"] == 4100
    assert "flags" not in quieted({"content": "no link"})
    assert quieted({"content": None, "flags": 64})["flags"] == 64


def test_answers_to_interactions_are_quiet_where_they_are_messages_c17():
    assert quieted_answer({"type": 4, "data": {"content": "https://x.org"}})["data"] == {
        "content": "https://x.org",
        "allowed_mentions": NOBODY,
        "flags": 4,
    }
    assert quieted_answer({"type": 7, "data": {"components": []}})["data"]["allowed_mentions"] == NOBODY
    assert quieted_answer({"type": 6}) == {"type": 6}
    assert quieted_answer({"type": 9, "data": {"title": "T"}}) == {"type": 9, "data": {"title": "T"}}
