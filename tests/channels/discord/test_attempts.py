"""A message is posted once, whatever became of the answers; the rules alone, without Discord."""

from datetime import timedelta

import pytest

from channels.discord.attempts import Attempts, Trace, trace_of
from channels.discord.limits import NONCE_LIFE
from core.contracts.clock import FakeClock
from core.contracts.errors import SendLimited, SendRejected, SendUnknown

TRACE = Trace(nonce="n", author="8", text="hello", answers=None, tokens=(), files=())


class Platform:
    """Answers posts and looks as told; `log` is what was asked of it."""

    def __init__(self):
        self.posts = []
        self.looks = []
        self.log = []

    async def post(self):
        return self._next("post", self.posts, "new")

    async def look(self):
        return self._next("look", self.looks, None)

    def _next(self, name, answers, otherwise):
        self.log.append(name)
        answer = answers.pop(0) if answers else otherwise
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def attempts(clock):
    return Attempts(clock)


@pytest.fixture
def platform():
    return Platform()


async def try_once(attempts, platform, tried=0):
    return await attempts.post("n", platform.post, platform.look, tried=tried)


async def test_a_first_send_is_made_at_once(attempts, platform):
    assert await try_once(attempts, platform) == "new"
    assert platform.log == ["post"]


async def test_a_send_of_unknown_outcome_is_made_again_while_the_nonce_counts(attempts, platform, clock):
    platform.posts = [SendUnknown("lost"), SendUnknown("lost")]
    waits = []
    for tried in (0, 1):
        with pytest.raises(SendLimited) as raised:
            await try_once(attempts, platform, tried)
        waits.append(raised.value.retry_after)
        assert attempts.is_open("n")
        await clock.advance(raised.value.retry_after)

    assert await try_once(attempts, platform, 2) == "new"
    assert platform.log == ["post"] * 3
    assert waits == [timedelta(seconds=2), timedelta(seconds=4)]
    assert not attempts.is_open("n")


async def test_when_the_nonce_counts_no_more_it_is_looked_for_first(attempts, platform, clock):
    platform.posts = [SendUnknown("lost")]
    platform.looks = [SendUnknown("down"), "found"]
    with pytest.raises(SendLimited):
        await try_once(attempts, platform)
    await clock.advance(NONCE_LIFE)
    with pytest.raises(SendLimited):
        await try_once(attempts, platform, 1)

    assert await try_once(attempts, platform, 2) == "found"
    assert platform.log == ["post", "look", "look"]


async def test_what_is_not_found_is_sent_anew_and_its_nonce_counts_again(attempts, platform, clock):
    platform.posts = [SendUnknown("lost"), SendUnknown("lost again")]
    with pytest.raises(SendLimited):
        await try_once(attempts, platform)
    await clock.advance(2 * NONCE_LIFE)
    with pytest.raises(SendLimited):
        await try_once(attempts, platform, 1)

    assert await try_once(attempts, platform, 2) == "new"
    assert platform.log == ["post", "look", "post", "post"]


async def test_an_outcome_that_is_open_when_the_nonce_ends_is_told_as_open(attempts, platform, clock):
    async def slow():
        await clock.advance(NONCE_LIFE)
        raise SendUnknown("lost")

    with pytest.raises(SendUnknown):
        await attempts.post("n", slow, platform.look, tried=0)


async def test_what_another_process_began_is_looked_for_first(attempts, platform):
    platform.looks = ["found"]

    assert await try_once(attempts, platform, 1) == "found"
    assert platform.log == ["look"]


async def test_what_surely_was_not_sent_is_not_looked_for(attempts, platform):
    platform.posts = [SendLimited("slow", retry_after=timedelta(seconds=1)), SendRejected("no")]
    for tried, error in ((0, SendLimited), (1, SendRejected)):
        with pytest.raises(error):
            await try_once(attempts, platform, tried)

    assert await try_once(attempts, platform, 2) == "new"
    assert "look" not in platform.log


async def test_a_limit_after_an_open_outcome_leaves_it_open(attempts, platform, clock):
    platform.posts = [SendUnknown("lost"), SendLimited("slow", retry_after=timedelta(seconds=1))]
    for tried in (0, 1):
        with pytest.raises(SendLimited):
            await try_once(attempts, platform, tried)
    await clock.advance(NONCE_LIFE)
    platform.looks = ["found"]

    assert await try_once(attempts, platform, 2) == "found"


async def test_what_was_looked_for_in_vain_is_sent_without_another_look(attempts, platform):
    attempts.settle_as_absent("n")

    assert await try_once(attempts, platform, 1) == "new"
    assert platform.log == ["post"]


async def test_where_nobody_may_look_it_is_sent(attempts, platform):
    platform.looks = [SendRejected("may not read")]

    assert await try_once(attempts, platform, 1) == "new"


def message(number, text="hello", author="8", **more):
    return {"id": str(number), "author": {"id": author}, "content": text, "type": 0, "attachments": [], **more}


async def test_the_newest_own_message_that_shows_the_same_is_the_one(attempts):
    assert attempts.match([message(1, "other"), message(2), message(3, "hi", author="7")], TRACE) == "2"
    assert attempts.match([message(1), message(2, "other")], TRACE) is None
    assert attempts.match([message(1, author="7")], TRACE) is None
    assert attempts.match([], TRACE) is None


async def test_a_nonce_that_is_told_decides(attempts):
    messages = [message(1, nonce="n"), message(2, "other")]

    assert attempts.match(messages, TRACE) == "1"


async def test_what_discord_notes_in_the_bots_name_is_no_message_of_its(attempts):
    assert attempts.match([message(1), message(2, type=18)], TRACE) == "1"


async def test_a_message_that_is_known_to_be_another_is_not_taken_for_it(attempts, platform):
    platform.posts = ["5"]
    await attempts.post("other", platform.post, platform.look, tried=0)

    assert attempts.match([message(5)], TRACE) is None


@pytest.mark.parametrize(
    ("payload", "shown", "is_it"),
    [
        ({"content": " hello "}, message(1), True),
        ({"content": "hello", "message_reference": {"message_id": "4"}}, message(1), True),
        (
            {"content": "hello", "message_reference": {"message_id": "4"}},
            message(1, message_reference={"message_id": "4"}),
            True,
        ),
        ({"content": "hello"}, message(1, message_reference={"message_id": "4"}), False),
        (
            {"content": "hello", "message_reference": {"message_id": "5"}},
            message(1, message_reference={"message_id": "4"}),
            False,
        ),
        (
            {"content": "hello", "components": [{"components": [{"custom_id": "a"}]}]},
            message(1, components=[{"components": [{"custom_id": "b"}]}]),
            False,
        ),
        (
            {"content": "hello", "components": [{"components": [{"custom_id": "a"}]}]},
            message(1, components=[{"id": 1, "components": [{"id": 2, "custom_id": "a"}]}]),
            True,
        ),
        ({"content": "hello"}, message(1, attachments=[{"filename": "a"}]), False),
    ],
)
async def test_text_buttons_files_and_reference_have_to_be_the_same(attempts, payload, shown, is_it):
    trace = trace_of({"nonce": "n"} | payload, author="8")

    assert (attempts.match([shown], trace) is not None) is is_it


async def test_a_file_is_known_by_its_name_however_discord_spells_it(attempts):
    trace = trace_of({"nonce": "n", "content": ""}, author="8", files=["my file (1).txt"])

    assert attempts.match([message(1, "", attachments=[{"filename": "my_file_1_.txt"}])], trace) == "1"


async def test_memory_of_what_was_sent_does_not_grow_without_bound(attempts, platform):
    for number in range(3_000):
        platform.posts = [str(number)]
        await attempts.post(f"n{number}", platform.post, platform.look, tried=0)
        attempts.settle_as_absent(f"m{number}")

    assert len(attempts._known) == len(attempts._open_since) == 1_000
