"""A host that answers from a script: a streamed answer, an approval, a memory commit line."""

from __future__ import annotations

import asyncio

from core.contracts.addresses import (
    Button,
    ButtonStyle,
    CardContent,
    MessageBody,
    OutboundItem,
    PressBody,
    TextContent,
)
from tests.bot.console.fake_host import FakeHost

COMMAND = "npm ci && npm run build -- --mode production\nrsync -a --delete dist/ deploy@example.org:/srv/www/"
ANSWER = """Done: the site is built and published.

| step | seconds |
|---|--:|
| install | 11.2 |
| build | 4.8 |

```python
for step in ("install", "build", "publish"):
    run(step)  # <b>not bold</b>
```

- The log is at <https://example.org/log>, and I noted how you like your *deploys*.
"""

APPROVAL = CardContent(
    text="May I run this?\nIt reaches a machine outside the workspace. Always would add: shell: rsync *",
    code=COMMAND,
    rows=(
        (
            Button(token="yes", label="Approve", style=ButtonStyle.GOOD),
            Button(token="conv", label="Approve for this conversation"),
        ),
        (Button(token="always", label="Always"), Button(token="no", label="Deny", style=ButtonStyle.DANGER)),
    ),
)
COMMIT = CardContent(
    text="Memory: note how deploys are done (human.md)",
    rows=((Button(token="diff", label="Diff"), Button(token="undo", label="Undo")),),
    silent=True,
)


class ScriptedHost(FakeHost):
    """Plays one turn for each message. `step` lets a test hold the script between its parts."""

    def __init__(self, web) -> None:
        super().__init__()
        self.web = web
        self.arrivals = asyncio.Queue()
        self.go_on = asyncio.Queue()

    async def accept(self, event) -> None:
        known = len(self.events)
        await super().accept(event)
        if len(self.events) > known:
            self.arrivals.put_nowait(event)

    async def play(self) -> None:
        """Answer what arrives until cancelled."""
        while True:
            event = await self.arrivals.get()
            match event.body:
                case MessageBody(text="hello"):
                    await self.show(
                        event.address, "hi", TextContent(markdown="Hello! This is a conversation of its own.")
                    )
                case MessageBody():
                    await self.turn(event.address)
                case PressBody(token="diff"):
                    await self.show(event.address, "diff", CardContent(text="What changed:", code="-old\n+new"))
                case PressBody():
                    await self.web.acknowledge(event.body, "Nothing to undo.")

    async def turn(self, address) -> None:
        async def sent(external_id):
            self.preview_id = external_id

        async with self.web.reply(address, sent) as reply:
            await self.go_on.get()
            await reply.show("Let me look. **Bui")
            await self.go_on.get()
            await reply.show("Let me look. **Building** now.")
            await reply.set_status("running shell")
            await self.show(address, "card", APPROVAL)
            while not isinstance((press := await self.arrivals.get()).body, PressBody):
                pass
            settled = f"Approved by {press.sender.name}."
            await self.show(address, "card", CardContent(text=settled, code=COMMAND), external_id="card")
            await self.go_on.get()
        await self.show(address, "answer", TextContent(markdown=ANSWER), external_id=self.preview_id)
        await self.show(address, "commit", COMMIT)

    async def show(self, address, item_id, content, *, external_id=None) -> None:
        item = OutboundItem(id=item_id, address=address, content=content, external_id=external_id)
        shown = await self.web.deliver(item)
        self.remember(address.key, shown, "", content)
