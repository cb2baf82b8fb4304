import os

import pytest

from core.contracts.addresses import FileContent, OutboundItem, Removal
from core.contracts.errors import SendLimited, SendRejected, SendUnknown, TextTooLong
from tests.channels.slack.markdown_samples import MENTIONS, assert_safe_mrkdwn
from tests.channels.slack.sending import DIRECT, opened
from tests.platforms.slack_faults import Fault
from tests.platforms.slack_server import TOKEN
from tests.platforms.slack_workspace import ALICE_DM


def item(path, address=DIRECT, name="report.txt", caption=""):
    content = FileContent(path=str(path), name=name, media_type="text/plain", caption=caption)
    return OutboundItem(id="turn-1/file", address=address, content=content)


@pytest.fixture
def report(tmp_path):
    path = tmp_path / "on-disk"
    path.write_text("what it says")
    return path


async def test_a_file_goes_out_in_three_steps_into_its_thread(report):
    async with opened() as scene:
        thread = scene.asked()
        external_id = await scene.deliver(item(report, thread, caption="*Read* this"))
        (message,) = scene.server.visible(ALICE_DM)
        (file,) = message.files

        assert (file.name, file.title, file.data) == ("report.txt", "report.txt", b"what it says")
        assert message.text == "*\u200bRead*\u200b this"
        assert external_id == f"{thread.thread}:{message.ts}"
        assert [call.token for call in scene.server.calls_of("upload")] == [""]


async def test_where_slack_is_slow_to_show_a_file_it_is_waited_for(report):
    async with opened() as scene:
        scene.server.refuse_next("files.info", "file_not_found")
        scene.server.fail_next("files.info", 200, {"ok": True, "file": {"id": "F1", "shares": {}}})
        external_id = await scene.deliver(item(report))

        assert external_id == scene.server.visible(ALICE_DM)[0].ts
        assert scene.clock.monotonic() >= 2 * scene.timing.share_interval.total_seconds()


async def test_a_file_that_does_not_appear_is_sent_all_the_same_and_can_be_removed_later(report):
    async with opened() as scene:
        scene.server.refuse_next("files.info", "file_not_found", times=9)
        external_id = await scene.deliver(item(report))
        assert external_id.startswith("file:F")
        gone = OutboundItem(id="t/x", address=DIRECT, content=Removal(), external_id=external_id)

        assert await scene.deliver(gone) == external_id
        assert scene.server.visible(ALICE_DM) == []


async def test_the_removal_of_a_file_that_never_appeared_is_refused(report):
    async with opened() as scene:
        scene.server.refuse_next("files.info", "file_not_found", times=9)
        external_id = await scene.deliver(item(report))
        scene.server.fail_next("files.info", 200, {"ok": True, "file": {"id": "F1"}})
        with pytest.raises(SendRejected):
            await scene.deliver(OutboundItem(id="t/x", address=DIRECT, content=Removal(), external_id=external_id))


@pytest.mark.parametrize(
    ("method", "fault"),
    [
        ("files.getUploadURLExternal", Fault.LOST_RESPONSE),
        ("files.getUploadURLExternal", Fault.ANSWERED),
        ("upload", Fault.LOST_RESPONSE),
        ("upload", Fault.LOST_REQUEST),
        ("upload", Fault.ANSWERED),
    ],
)
async def test_before_it_is_posted_a_file_may_be_begun_again(report, method, fault):
    async with opened() as scene:
        scene.server.fault(method, fault)
        with pytest.raises(SendLimited):
            await scene.deliver(item(report))
        await scene.deliver(item(report))

        assert len(scene.server.visible(ALICE_DM)) == 1


async def test_a_post_whose_answer_is_lost_is_known_by_its_file(report):
    async with opened() as scene:
        scene.server.fault("files.completeUploadExternal", Fault.LOST_RESPONSE)
        external_id = await scene.deliver(item(report))

        assert external_id == scene.server.visible(ALICE_DM)[0].ts


async def test_a_post_that_was_lost_leaves_the_outcome_open(report):
    async with opened() as scene:
        scene.server.fault("files.completeUploadExternal", Fault.LOST_REQUEST)
        with pytest.raises(SendUnknown):
            await scene.deliver(item(report))

        assert await scene.lookups.find(item(report)) is None
        assert scene.server.visible(ALICE_DM) == []


async def test_a_thread_whose_root_is_gone_gets_its_file_in_the_channel(report):
    async with opened() as scene:
        thread = scene.asked()
        scene.server.refuse_next("files.completeUploadExternal", "thread_not_found")
        external_id = await scene.deliver(item(report, thread))

        assert ":" not in external_id


async def test_a_caption_mentions_nobody_and_is_never_cut_c17(report):
    async with opened() as scene:
        await scene.deliver(item(report, caption=MENTIONS))
        assert_safe_mrkdwn(scene.server.visible(ALICE_DM)[0].text)
        with pytest.raises(TextTooLong):
            await scene.deliver(item(report, caption="a" * 3801))

        assert len(scene.server.calls_of("files.getUploadURLExternal")) == 1


async def test_what_is_no_file_is_refused_before_anything_is_asked(tmp_path):
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "pipe")
    async with opened() as scene:
        for name in ("missing", "empty", "pipe", ".", "nul\x00"):
            with pytest.raises(SendRejected):
                await scene.deliver(item(tmp_path / name))

        assert scene.server.calls == []


async def test_a_file_over_slacks_limit_is_refused_with_that_limit(tmp_path):
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1_000_000_001)
    async with opened() as scene:
        with pytest.raises(SendRejected, match="1000 MB"):
            await scene.deliver(item(tmp_path / "huge"))


async def test_only_so_many_uploads_are_remembered(report):
    async with opened() as scene:
        for number in range(201):
            scene.uploads._remember(f"t/{number}", f"F{number}")

        assert scene.uploads.file_of("t/0") is None
        assert scene.uploads.file_of("t/200") == "F200"


async def test_no_error_holds_the_token(report):
    async with opened() as scene:
        scene.server.fault("files.getUploadURLExternal", Fault.LOST_REQUEST)
        with pytest.raises(SendLimited) as raised:
            await scene.deliver(item(report))

    assert TOKEN not in repr(raised.value)
