import pytest

from channels.slack.emoji import emoji_of, slack_name


@pytest.mark.parametrize(
    ("emoji", "name"),
    [
        ("\N{THUMBS UP SIGN}", "+1"),
        ("\N{HEAVY BLACK HEART}\N{VARIATION SELECTOR-16}", "heart"),
        ("\N{HEAVY BLACK HEART}", "heart"),
        ("\N{EYES}", "eyes"),
        ("\N{THUMBS UP SIGN}\N{EMOJI MODIFIER FITZPATRICK TYPE-4}", "+1::skin-tone-4"),
        ("\N{BRAIN}", "brain"),
        (":tada:", "tada"),
        ("thumbsup", "+1"),
        ("wave::skin-tone-2", "wave::skin-tone-2"),
        ("two words", ""),
        ("\N{EYES}\N{EYES}", ""),
        ("", ""),
    ],
)
def test_an_emoji_has_slacks_name(emoji, name):
    assert slack_name(emoji) == name


@pytest.mark.parametrize(
    ("name", "emoji"),
    [
        ("+1", "\N{THUMBS UP SIGN}"),
        ("thumbsup", "\N{THUMBS UP SIGN}"),
        ("heart", "\N{HEAVY BLACK HEART}"),
        ("wave::skin-tone-6", "\N{WAVING HAND SIGN}\N{EMOJI MODIFIER FITZPATRICK TYPE-6}"),
        ("partyparrot", ":partyparrot:"),
    ],
)
def test_a_name_is_read_as_its_emoji_or_stays_a_name(name, emoji):
    assert emoji_of(name) == emoji
