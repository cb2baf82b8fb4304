"""An agent's memory: files, history, one commit's diff, and undoing it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from bot.console.context import Console
from bot.console.sessions import Session
from bot.console.submissions import Fields, page_route, submission_route
from channels.web.markdown import to_html
from core.contracts.errors import MemoryConflict, MemoryRefused


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """One line of a unified diff. `kind` is `file`, `place`, `added`, `removed` or `same`."""

    kind: str
    text: str


def diff_lines(diff: str) -> list[DiffLine]:
    """Sort the lines of a unified diff by what they mean."""
    lines = []
    inside_hunk = False
    for text in diff.split("\n"):
        inside_hunk = text.startswith("@@") or (inside_hunk and not text.startswith("diff --git "))
        lines.append(DiffLine(kind=_diff_kind(text, inside_hunk=inside_hunk), text=text))
    return lines[:-1] if lines and not lines[-1].text else lines


def memory_routes(console: Console) -> list[BaseRoute]:
    """Return the routes of memory."""
    pages = _MemoryPages(console)
    return [
        page_route("/memory", pages.first_agent),
        page_route("/memory/{agent}", pages.show),
        page_route("/memory/{agent}/file", pages.file),
        page_route("/memory/{agent}/commits/{revision}", pages.commit),
        submission_route("/memory/{agent}/commits/{revision}/undo", pages.undo),
    ]


class _MemoryPages:
    def __init__(self, console: Console) -> None:
        self._console = console

    async def first_agent(self, request: Request, session: Session) -> Response:
        agents = await self._console.api.agents()
        if not agents:
            return await self._console.page(request, session, "memory_none.html")
        return RedirectResponse(_path(agents[0].name), status_code=303)

    async def show(self, request: Request, session: Session) -> Response:
        agent = _agent(request)
        files = await self._console.api.memory_files(agent)
        return await self._console.page(
            request,
            session,
            "memory.html",
            agent=agent,
            agents=[known.name for known in await self._console.api.agents()],
            base=_path(agent),
            files=[file for file in files if not file.hidden],
            commits=await self._console.api.memory_log(agent),
        )

    async def file(self, request: Request, session: Session) -> Response:
        agent, path = _agent(request), request.query_params.get("path", "")
        for file in await self._console.api.memory_files(agent):
            if file.path == path and not file.hidden:
                return await self._console.page(
                    request, session, "memory_file.html", base=_path(agent), file=file, body=to_html(file.body)
                )
        raise HTTPException(404, "There is no such file in this memory.")

    async def commit(self, request: Request, session: Session) -> Response:
        agent, revision = _agent(request), str(request.path_params["revision"])
        diff = await self._console.api.memory_diff(agent, revision)
        known = [commit for commit in await self._console.api.memory_log(agent) if commit.revision.startswith(revision)]
        return await self._console.page(
            request,
            session,
            "memory_commit.html",
            base=_path(agent),
            revision=revision,
            commit=known[0] if len(known) == 1 else None,
            lines=diff_lines(diff),
        )

    async def undo(self, request: Request, session: Session, _fields: Fields) -> Response:
        agent, revision = _agent(request), str(request.path_params["revision"])
        try:
            note = await self._console.api.memory_undo(agent, revision, by=self._console.owner.name)
        except MemoryConflict as conflict:
            files = ", ".join(conflict.paths)
            note = f"Not undone: later changes touch the same lines of {files}."
        except MemoryRefused as refused:
            note = f"Not undone: {refused.path}: {refused.rule}. {refused.fix}"
        return self._console.back(session, _path(agent), note)


def _diff_kind(text: str, *, inside_hunk: bool) -> str:
    if text.startswith("@@"):
        return "place"
    if not inside_hunk:
        return "file"
    return {"+": "added", "-": "removed"}.get(text[:1], "same")


def _agent(request: Request) -> str:
    return str(request.path_params["agent"])


def _path(agent: str) -> str:
    return f"/memory/{quote(agent, safe='')}"
