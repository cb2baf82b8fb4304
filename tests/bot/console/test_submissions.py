import pytest

from tests.bot.console.console_kit import running_console

JSON = {"content-type": "application/json"}
FORM = {"content-type": "application/x-www-form-urlencoded"}


async def submit(content, headers):
    async with running_console() as kit, kit.signed_in() as browser:
        token = kit.csrf()
        if isinstance(content, str):
            content = content.replace("TOKEN", token).encode()
        answer = await browser.post(
            "/chat/main/messages", content=content, headers=headers | {"accept": "application/json"}
        )
        return answer, kit.host.events


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"{", JSON, 400),
        (b"[]", JSON, 400),
        (b"\xff", JSON, 400),
        (b"[" * 100_000, JSON, 400),
        (b"csrf=\xff", FORM, 400),
        (b"&".join(b"a=b" for _ in range(50)), FORM, 400),
        (b"csrf=x", {"content-type": "multipart/form-data; boundary=x"}, 415),
        (b"csrf=x", {"content-type": "text/plain"}, 415),
        (b"", {}, 415),
    ],
)
async def test_a_body_that_cannot_be_read_is_refused(content, headers, status):
    answer, events = await submit(content, headers)
    assert answer.status_code == status
    assert answer.json()["error"]
    assert events == []


async def test_fields_that_are_no_text_count_as_missing():
    answer, events = await submit('{"csrf": "TOKEN", "text": ["hi"], "key": "key-12345678"}', JSON)
    assert answer.status_code == 400
    assert events == []


async def test_half_a_character_that_json_can_spell_becomes_a_question_mark():
    answer, events = await submit('{"csrf": "TOKEN", "text": "a\\ud800b", "key": "key-12345678"}', JSON)
    assert answer.status_code == 202
    assert [event.body.text for event in events] == ["a?b"]
