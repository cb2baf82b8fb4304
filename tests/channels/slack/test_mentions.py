"""Case C17 on every path by which an agent's text reaches Slack: what goes over the wire mentions nobody."""

import json
from dataclasses import replace

from channels.contract import Form, FormField, HomeSection
from channels.slack.forms import draw_form
from channels.slack.home import draw_home
from channels.slack.outbound import render_notices
from core.contracts.addresses import Button, CardContent, FileContent, OutboundItem
from tests.channels.slack.markdown_samples import MENTIONS, assert_no_mention, assert_safe_mrkdwn
from tests.channels.slack.sending import CHANNEL, opened, text
from tests.platforms.slack_workspace import ALICE, ROOM

VARIANT = f"{MENTIONS}\n\n[docs](https://example.org/d_(1)) and **bold**"


def posts(scene):
    return [call.params for call in scene.server.calls if call.method in {"chat.postMessage", "chat.update"}]


async def test_a_final_an_edit_and_what_is_said_unasked():
    async with opened() as scene:
        thread = scene.asked(CHANNEL)
        shown = await scene.deliver(text(MENTIONS, thread))
        await scene.deliver(text(VARIANT, thread, shown))
        await scene.deliver(text(VARIANT, CHANNEL, item_id="job/1"))

        assert len(posts(scene)) == 3
        for params in posts(scene):
            assert_safe_mrkdwn(params["text"])
            assert params["link_names"] is False
        for params in posts(scene)[1:]:
            assert params["text"].endswith("<https://example.org/d_(1)|docs> and *bold*")
        for call in scene.server.calls_of("chat.postMessage"):
            assert (call.params["unfurl_links"], call.params["unfurl_media"]) == (False, False)


async def test_a_preview_streamed_and_edited():
    async with opened() as scene:
        thread = scene.asked(CHANNEL)
        for address in (thread, CHANNEL):
            async with scene.reply(address) as reply:
                for end in range(1, len(VARIANT), 9):
                    await reply.show(VARIANT[:end])
                    await scene.pass_time(1.5, step=0.75)
        pieces = [call.params["markdown_text"] for call in scene.server.calls if "markdown_text" in call.params]

        assert len(pieces) > 5
        assert len(posts(scene)) > 5
        for told in (*pieces, "".join(pieces)):
            assert_no_mention(told)
        for params in posts(scene):
            assert_safe_mrkdwn(params["text"])


async def test_cards_their_buttons_and_what_notifications_say_of_them():
    async with opened() as scene:
        rows = ((Button(token="t", label=MENTIONS),),)
        card = CardContent(text=MENTIONS, code=MENTIONS, rows=rows)
        item = OutboundItem(id="t/card", address=CHANNEL, content=card)
        shown = await scene.deliver(item)
        await scene.deliver(replace(item, external_id=shown, content=replace(card, rows=())))

        for params in posts(scene):
            assert_safe_mrkdwn(params["text"])
            assert_no_mention(params["blocks"])
            assert "&amp;amp;" not in json.dumps(params["blocks"])


async def test_captions_answers_to_acts_homes_forms_and_statuses(tmp_path):
    (tmp_path / "a.txt").write_text("content")
    async with opened() as scene:
        content = FileContent(path=str(tmp_path / "a.txt"), name="a.txt", media_type="text/plain", caption=MENTIONS)
        await scene.deliver(OutboundItem(id="t/f", address=CHANNEL, content=content))
        command = scene.server.runs_command("/lodger", "status").payload
        for notice in render_notices(VARIANT):
            await scene.api.respond(command["response_url"], notice)
        form = Form(token="t", title=MENTIONS, fields=(FormField(name="a", label=MENTIONS),))
        await scene.api.open_view(command["trigger_id"], draw_form(form, memory=""))
        await scene.api.publish_view(ALICE, draw_home((HomeSection(title=MENTIONS, text=VARIANT),)))
        await scene.statuses.show(scene.asked(CHANNEL), MENTIONS)

        assert {call.error for call in scene.server.calls} == {""}
        assert_safe_mrkdwn(scene.server.visible(ROOM)[0].text)
        assert_safe_mrkdwn(scene.server.ephemeral(ROOM)[0].text)
        assert_no_mention([call.params for call in scene.server.calls])
