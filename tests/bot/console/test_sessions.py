from datetime import timedelta

from bot.console.sessions import ConsoleSessions
from core.contracts.clock import FakeClock


def signed_in(sessions):
    return sessions.redeem(sessions.new_link_token())


async def test_a_link_signs_in_once():
    sessions = ConsoleSessions(FakeClock())
    token = sessions.new_link_token()
    cookie = sessions.redeem(token)
    assert sessions.find(cookie).csrf
    assert sessions.redeem(token) is None


async def test_a_link_that_is_too_old_signs_nobody_in():
    clock = FakeClock()
    sessions = ConsoleSessions(clock, link_lifetime=timedelta(minutes=5))
    token = sessions.new_link_token()
    await clock.advance(timedelta(minutes=5))
    assert sessions.redeem(token) is None


async def test_a_session_ends_with_its_lifetime():
    clock = FakeClock()
    sessions = ConsoleSessions(clock, session_lifetime=timedelta(hours=1))
    cookie = signed_in(sessions)
    session = sessions.find(cookie)
    await clock.advance(timedelta(minutes=59))
    assert sessions.is_open(session)
    await clock.advance(timedelta(minutes=1))
    assert not sessions.is_open(session)
    assert sessions.find(cookie) is None


def test_guesses_open_nothing():
    sessions = ConsoleSessions(FakeClock())
    sessions.new_link_token()
    cookie = signed_in(sessions)
    for guess in ("", "x", cookie[:-1], cookie + "x", "\ud800"):
        assert sessions.find(guess) is None
        assert sessions.redeem(guess) is None


def test_no_token_is_kept_as_it_is():
    sessions = ConsoleSessions(FakeClock())
    token, cookie = sessions.new_link_token(), signed_in(sessions)
    kept = repr(vars(sessions))
    assert token not in kept
    assert cookie not in kept


def test_links_and_sessions_are_bounded_and_the_oldest_goes():
    sessions = ConsoleSessions(FakeClock())
    links = [sessions.new_link_token() for _ in range(21)]
    assert sessions.redeem(links[0]) is None
    assert sessions.redeem(links[1]) is not None
    cookies = [signed_in(sessions) for _ in range(101)]
    assert sessions.find(cookies[0]) is None
    assert sessions.find(cookies[1]) is not None


def test_a_note_is_read_once_and_only_by_its_session():
    sessions = ConsoleSessions(FakeClock())
    ada, grace = sessions.find(signed_in(sessions)), sessions.find(signed_in(sessions))
    sessions.leave_note(ada, "Undone.")
    assert sessions.take_note(grace) == ""
    assert sessions.take_note(ada) == "Undone."
    assert sessions.take_note(ada) == ""


def test_signing_out_ends_the_session_and_its_note():
    sessions = ConsoleSessions(FakeClock())
    cookie = signed_in(sessions)
    session = sessions.find(cookie)
    sessions.leave_note(session, "Undone.")
    sessions.end(session)
    assert sessions.find(cookie) is None
    assert sessions.take_note(session) == ""


def test_the_login_link_names_the_bound_address():
    link = ConsoleSessions(FakeClock()).login_link("127.0.0.1:8787")
    assert link.startswith("http://127.0.0.1:8787/login?token=")
