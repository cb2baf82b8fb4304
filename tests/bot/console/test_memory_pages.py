from dataclasses import replace

import pytest

from bot.console.memory_pages import diff_lines
from core.contracts.errors import MemoryConflict, MemoryRefused
from core.contracts.memory import MemoryFile
from tests.bot.console.console_kit import running_console
from tests.bot.console.fake_host import AGENT, REVISION, commit

ATTACK = "<script>alert(1)</script>"


async def test_memory_opens_at_the_first_agent():
    async with running_console() as kit, kit.signed_in() as browser:
        assert (await browser.get("/memory")).headers["location"] == "/memory/lodger"


async def test_files_and_history_are_listed_but_hidden_files_are_not():
    async with running_console() as kit, kit.signed_in() as browser:
        page = (await browser.get("/memory/lodger")).text
        assert "human.md" in page
        assert "Who Ada is" in page
        assert "secret.md" not in page
        assert "Note that Ada likes short answers" in page
        assert f'action="/memory/lodger/commits/{REVISION}/undo"' in page
        assert (await browser.get("/memory/lodger/file", params={"path": "secret.md"})).status_code == 404


async def test_a_file_is_shown_as_text_that_cannot_run():
    async with running_console() as kit, kit.signed_in() as browser:
        kit.host.files = (MemoryFile(path=f"{ATTACK}.md", description=ATTACK, body=f"# Hi\n{ATTACK}"),)
        answer = await browser.get("/memory/lodger/file", params={"path": f"{ATTACK}.md"})
        assert answer.status_code == 200
        assert "<h3>Hi</h3>" in answer.text
        assert "<script>" not in answer.text
        assert "<script>" not in (await browser.get("/memory/lodger")).text


async def test_a_commit_shows_its_diff_by_kind_of_line():
    async with running_console() as kit, kit.signed_in() as browser:
        kit.host.diff = f"@@ -1 +1 @@\n-old {ATTACK}\n+new\n"
        page = (await browser.get("/memory/lodger/commits/3f2a91c0")).text
        assert '<span class="removed">-old &lt;script&gt;' in page
        assert '<span class="added">+new' in page
        assert "<h1>Note that Ada likes short answers</h1>" in page


async def test_a_commit_older_than_the_list_still_shows_its_diff():
    async with running_console() as kit, kit.signed_in() as browser:
        kit.host.commits = [commit(), commit(revision="3f2a91c0" + "1" * 32)]
        page = await browser.get("/memory/lodger/commits/3f2a91c0")
        assert page.status_code == 200
        assert "<h1>Change 3f2a91c0</h1>" in page.text


async def test_undo_is_done_in_the_owners_name_and_told():
    async with running_console() as kit, kit.signed_in() as browser:
        answer = await browser.post(
            f"/memory/lodger/commits/{REVISION}/undo", data={"csrf": kit.csrf()}, follow_redirects=True
        )
        assert kit.host.undone == [("lodger", REVISION, "Ada")]
        assert "Undone." in answer.text


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MemoryConflict(("human.md",)), "Not undone: later changes touch the same lines of human.md."),
        (
            MemoryRefused(path="human.md", rule="it is read-only", fix="Ask its owner."),
            "human.md: it is read-only. Ask",
        ),
    ],
)
async def test_an_undo_that_cannot_be_done_says_why(error, told):
    async with running_console() as kit, kit.signed_in() as browser:
        kit.host.undo_error = error
        url = f"/memory/lodger/commits/{REVISION}/undo"
        answer = await browser.post(url, data={"csrf": kit.csrf()}, follow_redirects=True)
        assert told in answer.text


@pytest.mark.parametrize("path", ["/memory/nobody", "/memory/lodger/commits/ffff", "/memory/lodger/file?path=no.md"])
async def test_what_is_not_there_is_not_found(path):
    async with running_console() as kit, kit.signed_in() as browser:
        assert (await browser.get(path)).status_code == 404


async def test_an_agent_of_any_name_has_working_links():
    async with running_console() as kit, kit.signed_in() as browser:
        kit.host.known_agents = (replace(AGENT, name="Frau Käthe & <co>"), AGENT)
        place = (await browser.get("/memory")).headers["location"]
        page = await browser.get(place)
        assert page.status_code == 200
        assert "Memory of Frau Käthe &amp; &lt;co&gt;" in page.text
        assert f'href="{place}/commits/{REVISION}"' in page.text
        assert (await browser.get(f"{place}/file?path=human.md")).status_code == 200


async def test_without_an_agent_the_page_says_so():
    async with running_console() as kit, kit.signed_in() as browser:
        kit.host.known_agents = ()
        assert "There is no agent yet" in (await browser.get("/memory")).text


def test_a_line_of_content_that_looks_like_a_header_is_content():
    kinds = [
        (line.kind, line.text) for line in diff_lines("--- a/x\n+++ b/x\n@@ -1 +1 @@\n--- was a rule\n+++ now\n x\n")
    ]
    assert kinds == [
        ("file", "--- a/x"),
        ("file", "+++ b/x"),
        ("place", "@@ -1 +1 @@"),
        ("removed", "--- was a rule"),
        ("added", "+++ now"),
        ("same", " x"),
    ]


def test_a_second_file_of_a_diff_begins_with_its_header():
    assert [line.kind for line in diff_lines("@@ -1 +1 @@\n-a\ndiff --git a/y b/y\n--- a/y\n")] == [
        "place",
        "removed",
        "file",
        "file",
    ]
