"""The files of a fake Slack, and the methods about them: an upload in three steps, and what is known of a file.

After docs.slack.dev/messaging/working-with-files and docs.slack.dev/reference/methods/files.completeUploadExternal
as read on 2026-11-30.
"""

from __future__ import annotations

import itertools
import mimetypes
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from core.contracts.clock import Clock
from tests.platforms.slack_refusals import Refusal, invalid_arguments, required
from tests.platforms.slack_workspace import BOT_USER, TEAM, Json

UPLOAD_LIMIT_BYTES = 1_000_000_000
ALT_TEXT_LIMIT_CHARS = 1000


@dataclass
class StoredFile:
    """One file. `shares` are the places it was posted to, as (channel, ts).

    `is_stub`: events tell no more of it than its id, as of files of a connected workspace.
    """

    id: str
    name: str
    data: bytes
    media_type: str
    user: str
    base: str
    created: int
    size: int
    title: str = ""
    alt_text: str = ""
    is_uploaded: bool = True
    is_complete: bool = True
    is_stub: bool = False
    shares: list[tuple[str, str]] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"/files-pri/{TEAM}-{self.id}/{self.name.lower()}"

    @property
    def download_path(self) -> str:
        return f"/files-pri/{TEAM}-{self.id}/download/{self.name.lower()}"

    def as_json(self, *, whole: bool = False) -> Json:
        """Return the file object; `whole` as files.info does."""
        if self.is_stub and not whole:
            return {"id": self.id, "file_access": "check_file_info", "created": 0, "timestamp": 0, "user": self.user}
        filetype = PurePosixPath(self.name).suffix.lstrip(".") or "binary"
        shown = {
            "id": self.id,
            "created": self.created,
            "timestamp": self.created,
            "name": self.name,
            "title": self.title or self.name,
            "mimetype": self.media_type,
            "filetype": filetype,
            "pretty_type": filetype.upper(),
            "user": self.user,
            "user_team": TEAM,
            "mode": "hosted",
            "size": self.size,
            "is_external": False,
            "file_access": "visible",
            "url_private": f"{self.base}{self.path}",
            "url_private_download": f"{self.base}{self.download_path}",
            "permalink": f"https://lodgers.slack.com/files/{self.user}/{self.id}/{self.name.lower()}",
        }
        return shown | ({"shares": self._shares()} if whole else {})

    def _shares(self) -> Json:
        shares: Json = {}
        for channel, ts in self.shares:
            kind = "public" if channel.startswith("C") else "private"
            shares.setdefault(kind, {}).setdefault(channel, []).append({"ts": ts})
        return shares


Share = Callable[[Json, list[StoredFile]], None]
"""Posts a message with files into the channel that a call names."""


class Files:
    """Everything that was uploaded, by file id. `base` returns where this server listens."""

    def __init__(self, clock: Clock, base: Callable[[], str]) -> None:
        self.by_id: dict[str, StoredFile] = {}
        self._clock = clock
        self._base = base
        self._ids = itertools.count(1)

    def keep(self, data: bytes, name: str = "notes.txt", media_type: str = "", user: str = BOT_USER) -> StoredFile:
        """Keep a file that somebody has, and return it."""
        file = StoredFile(
            id=f"F{next(self._ids):06d}",
            name=name,
            data=data,
            media_type=media_type or mimetypes.guess_type(name)[0] or "application/octet-stream",
            user=user,
            base=self._base(),
            created=int(self._clock.now().timestamp()),
            size=len(data),
        )
        self.by_id[file.id] = file
        return file

    def delete(self, file: StoredFile) -> None:
        """Let a file be there no more."""
        del self.by_id[file.id]

    def describe(self, params: Json) -> Json:
        """Carry out files.info."""
        file = self.by_id.get(required(params, "file"))
        if file is None or not file.is_complete:
            raise Refusal("file_not_found")
        return {"file": file.as_json(whole=True), "comments": [], "response_metadata": {"next_cursor": ""}}

    def begin(self, params: Json) -> Json:
        """Carry out files.getUploadURLExternal."""
        name, size = required(params, "filename"), int(params.get("length") or 0)
        if size <= 0:
            raise Refusal("missing_argument", response_metadata={"messages": ["[ERROR] length must be at least 1"]})
        if size > UPLOAD_LIMIT_BYTES:
            raise Refusal("file_upload_size_restricted")
        alt_text = str(params.get("alt_txt") or "")
        if len(alt_text) > ALT_TEXT_LIMIT_CHARS:
            raise Refusal("alt_txt_too_large")
        file = self.keep(b"", name)
        file.size, file.alt_text, file.is_uploaded, file.is_complete = size, alt_text, False, False
        return {"upload_url": f"{self._base()}/upload/v1/{file.id}", "file_id": file.id}

    def take(self, file_id: str, data: bytes) -> None:
        """Take the bytes of an upload that was begun.

        Raises:
            Refusal: None was begun, or it is not as long as it was told.
        """
        file = self.by_id.get(file_id)
        if file is None or file.is_complete:
            raise Refusal("invalid_upload_url", status=404)
        if len(data) != file.size:
            raise Refusal("invalid_length", status=400)
        file.data, file.is_uploaded = data, True

    def complete(self, params: Json, share: Share) -> Json:
        """Carry out files.completeUploadExternal: without a channel the files stay the app's own."""
        asked = params.get("files")
        if not isinstance(asked, list) or not asked:
            raise invalid_arguments("missing required field: files [json-pointer:/files]")
        files = [self._uploaded(item) for item in asked]
        channels = str(params.get("channel_id") or params.get("channels") or "")
        for channel in filter(None, channels.split(",")):
            share(params | {"channel": channel}, files)
        for file in files:
            file.is_complete = True
        return {"files": [file.as_json(whole=True) for file in files]}

    def _uploaded(self, asked: Json) -> StoredFile:
        file = self.by_id.get(str(asked.get("id")))
        if file is None or not file.is_uploaded or file.is_complete:
            raise Refusal("file_not_found")
        file.title = str(asked.get("title") or "")
        return file
