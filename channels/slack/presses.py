"""Answers to presses, forms and commands, to whoever gave them alone."""

from __future__ import annotations

import logging

from channels.contract import Form, FormField
from channels.slack.acts import ASK, QUESTION, remembered, unpacked
from channels.slack.forms import draw_form
from channels.slack.outbound import render_notices
from channels.slack.transport import SlackApi
from core.contracts.addresses import CommandBody, PressBody
from core.contracts.errors import ChannelError, SendRejected

logger = logging.getLogger(__name__)

_ASKING = Form(
    token=ASK,
    title="Ask about this",
    fields=(FormField(name=QUESTION, label="What do you want to know?", lines=3),),
    send_label="Ask",
)


class Replies:
    """Answers acts by the address that came with each; what is too late or too often is logged and left."""

    def __init__(self, api: SlackApi) -> None:
        self._api = api

    async def answer(self, asked: PressBody | CommandBody, markdown: str) -> None:
        """Show Markdown to whoever acted. An empty text says nothing: Slack was told at once that the act arrived."""
        url = unpacked(asked.acknowledge).url
        if not url or not markdown.strip():
            return
        try:
            for part in render_notices(markdown):
                await self._api.respond(url, part)
        except ChannelError as error:
            logger.info("slack_act_not_answered", extra={"detail": error.detail})

    async def open_form(self, press: PressBody, form: Form) -> None:
        """Open a form for whoever pressed.

        Raises:
            ChannelError: It came too late, or Slack does not take it.
        """
        reply = unpacked(press.acknowledge)
        if not reply.trigger:
            raise SendRejected("a form can be opened for a press alone")
        await self._api.open_view(reply.trigger, draw_form(form, memory=remembered(reply)))

    async def ask_about(self, trigger: str, memory: str) -> None:
        """Open the form in which somebody asks about a message."""
        try:
            await self._api.open_view(trigger, draw_form(_ASKING, memory=memory, callback=ASK))
        except ChannelError as error:
            logger.info("slack_question_not_asked", extra={"detail": error.detail})
