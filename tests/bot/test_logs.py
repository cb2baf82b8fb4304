import asyncio
import io
import json
import logging
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from bot.logs import configure, log_context
from core.secrets.redaction import ValueRedactor

TOKEN = "123456789:" + "D" * 35
PASSWORD = 'pa"ss/w%rd-of-the-database'
LEVELS = ("debug", "info", "warning", "error")


class Log:
    """What was written, and the loggers as they were before."""

    def __init__(self):
        self.stream = io.StringIO()
        self.redactor = ValueRedactor([("telegram", TOKEN), ("database", PASSWORD)])

    def start(self, level="info", form="text"):
        configure(level=level, form=form, redactor=self.redactor, stream=self.stream)

    @property
    def text(self):
        return self.stream.getvalue()

    @property
    def lines(self):
        return self.text.splitlines()


@pytest.fixture
def log():
    known = [logging.getLogger(), *(logging.getLogger(name) for name in list(logging.root.manager.loggerDict))]
    before = [(one, one.level, one.handlers[:], one.filters[:], one.propagate) for one in known]
    hooks = sys.excepthook, sys.unraisablehook, threading.excepthook
    yield Log()
    logging.captureWarnings(False)
    sys.excepthook, sys.unraisablehook, threading.excepthook = hooks
    for name in list(logging.root.manager.loggerDict):
        logging.getLogger(name).setLevel(logging.NOTSET)
    for one, level, handlers, filters, propagate in before:
        one.setLevel(level)
        one.handlers[:], one.filters[:], one.propagate = handlers, filters, propagate


class Holder:
    def __str__(self):
        return f"Holder({TOKEN})"

    __repr__ = __str__


def write_the_token_everywhere():
    logger = logging.getLogger("core.somewhere")
    httpx_logger = logging.getLogger("httpx")
    url = httpx.URL(f"https://api.telegram.org/bot{TOKEN}/getUpdates")
    for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL):
        httpx_logger.log(level, 'HTTP Request: %s %s "%s %d %s"', "POST", url, "HTTP/1.1", 200, "OK")
        logging.getLogger("httpcore.http11").log(level, "send_request_headers.started request=%r", TOKEN.encode())
        logging.getLogger("telegram.Bot").log(level, "calling %(url)s", {"url": url})
        logging.getLogger("LiteLLM").log(level, "key=%s", TOKEN)
        logger.log(level, TOKEN)
        logger.log(level, "holder %s", Holder())
        logger.log(level, "bad arguments %d %s", TOKEN)
        logger.log(level, "fact", extra={"url": str(url), "holder": Holder(), "deep": {"a": [TOKEN]}})
        logger.log(level, "encoded %s", quote(PASSWORD, safe=""))
        logger.log(level, "dumped %s", json.dumps({"p": PASSWORD}))
        logger.log(level, "stack", stack_info=True)
        try:
            raise_with_the_token()
        except RuntimeError:
            logger.log(level, "crash", exc_info=True)
    with log_context(turn_id=TOKEN):
        logger.error("in context")


def refuse():
    raise ValueError(f"GET /file/bot{TOKEN}/photo.jpg: 401")


def raise_with_the_token():
    try:
        refuse()
    except ValueError as error:
        raise RuntimeError(TOKEN) from error


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("level", LEVELS)
def test_no_token_appears_at_any_level_in_any_part_of_a_record(log, level, form):
    """C69."""
    log.start(level, form)
    write_the_token_everywhere()
    assert "[secret telegram]" in log.text
    assert TOKEN not in log.text
    assert TOKEN[-20:] not in log.text
    assert PASSWORD not in log.text
    assert quote(PASSWORD, safe="") not in log.text
    assert "[secret database]" in log.text


def test_at_debug_requests_are_still_useful(log):
    """C69: method and status are there."""
    log.start("debug")
    logging.getLogger("httpx").info(
        'HTTP Request: %s %s "%s %d %s"', "POST", f"https://x/bot{TOKEN}/y", "1.1", 200, "OK"
    )
    assert 'POST https://x/bot[secret telegram]/y "1.1 200 OK"' in log.text


@pytest.mark.parametrize("name", ["httpx", "httpcore.connection", "telegram.ext", "LiteLLM", "discord.gateway"])
def test_at_info_libraries_write_no_line_for_each_request(log, name):
    log.start("info")
    logging.getLogger(name).info("request")
    assert log.text == ""
    logging.getLogger(name).warning("trouble")
    assert len(log.lines) == 1


async def test_a_real_failing_request_leaks_nothing(log):
    """C69: a connection error, with httpx and its own loggers."""
    log.start("debug")

    def refuse(request):
        raise httpx.ConnectError(f"cannot reach {request.url}", request=request)

    async with httpx.AsyncClient(transport=httpx.MockTransport(refuse)) as client:
        try:
            await client.get(f"https://api.telegram.org/bot{TOKEN}/getMe", headers={"Authorization": f"Bearer {TOKEN}"})
        except httpx.ConnectError:
            logging.getLogger("channels.telegram").exception("poll_failed")
    assert "ConnectError" in log.text
    assert TOKEN[-20:] not in log.text


def test_a_value_added_later_is_masked_from_then_on(log):
    log.start()
    log.redactor.add("late", "a-late-secret")
    logging.getLogger("x").info("a-late-secret")
    assert "[secret late]" in log.text
    assert "a-late-secret" not in log.text


def test_a_library_that_brings_its_own_handler_writes_through_ours_alone(log, capsys):
    before, later = logging.getLogger("brings.handlers"), logging.getLogger("LiteLLM")
    before.addHandler(logging.StreamHandler(sys.stderr))
    log.start()
    later.addHandler(logging.StreamHandler(sys.stderr))
    before.warning("one %s", TOKEN)
    later.warning("two %s", TOKEN)
    assert len(log.lines) == 2
    assert capsys.readouterr().err == ""


def test_a_json_line_has_the_event_the_ids_and_the_facts(log):
    log.start(form="json")
    with log_context(turn_id="t1"), log_context(run_id="r1"):
        logging.getLogger("core.turns.loop").info("turn_started", extra={"steps": 3})
    logging.getLogger("x").error("after")
    first, second = (json.loads(line) for line in log.lines)
    assert first.pop("at").endswith("Z")
    assert first == {
        "level": "info",
        "logger": "core.turns.loop",
        "event": "turn_started",
        "turn_id": "t1",
        "run_id": "r1",
        "steps": "3",
    }
    assert "turn_id" not in second


def test_a_text_line_has_the_same(log):
    log.start()
    with log_context(turn_id="t1"):
        logging.getLogger("a.b").info("turn_started", extra={"steps": 3})
    assert log.lines[0].endswith("Z INFO a.b turn_started turn_id=t1 steps=3")


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_others_wrote_cannot_forge_a_line(log, form):
    log.start(form=form)
    logging.getLogger("x").info("name %s", "a\n2026-01-01 INFO forged\r\x1b[2J", extra={"who": "b\nc"})
    assert len(log.lines) == 1
    assert "\x1b" not in log.text


async def test_ids_follow_the_tasks_that_a_context_starts_and_no_others(log):
    log.start()

    async def work(turn):
        with log_context(turn_id=turn):
            await asyncio.sleep(0)
            logging.getLogger("x").info("worked", extra={"expected": turn})

    async with asyncio.TaskGroup() as group:
        group.create_task(work("t1"))
        group.create_task(work("t2"))
    assert sorted(line.split("worked ")[1] for line in log.lines) == [
        "turn_id=t1 expected=t1",
        "turn_id=t2 expected=t2",
    ]


def test_a_record_that_cannot_be_written_is_told_without_its_content(log, capsys):
    class Broken:
        def __str__(self):
            raise ZeroDivisionError(TOKEN)

    log.start()
    logging.getLogger("x").info("value %s", Broken())
    assert "log_record_lost logger=x" in log.text
    assert TOKEN not in log.text + capsys.readouterr().err


def test_lone_surrogates_do_not_lose_a_line(log):
    log.start()
    logging.getLogger("x").info("name \ud800")
    assert "\\ud800" in log.text


def test_warnings_are_log_lines(log):
    log.start()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(False)
        logging.captureWarnings(True)
        warnings.warn(f"careless {TOKEN}", stacklevel=1)
        logging.captureWarnings(False)
    assert "careless [secret telegram]" in log.text


_CRASH = """
import sys, threading
from bot.logs import configure
from core.secrets.redaction import ValueRedactor
token = "123456789:" + "D" * 35
configure(level="info", form="text", redactor=ValueRedactor([("telegram", token)]))
def fail():
    raise RuntimeError("GET /bot" + token)
class Dying:
    def __del__(self):
        fail()
Dying()
thread = threading.Thread(target=fail)
thread.start()
thread.join()
fail()
"""


def test_crashes_leave_a_masked_traceback_on_standard_error():
    """C69: a crash of the program, of a thread, and one in a finalizer."""
    ran = subprocess.run(
        [sys.executable, "-c", _CRASH],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stderr.count("RuntimeError: GET /bot[secret telegram]") == 3
    assert "D" * 20 not in ran.stderr + ran.stdout
