"""What stands for a file until it is downloaded: where its message is, and the link that came with it; pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHandle:
    """One attachment; `url` runs out after a day, the ids do not."""

    channel: str
    message: str
    attachment: str
    url: str

    def __str__(self) -> str:
        """Return the handle that an `Attachment` carries."""
        return f"{self.channel}/{self.message}/{self.attachment} {self.url}"


def read_handle(handle: str) -> FileHandle | None:
    """Return what a handle says; None when it is none of ours."""
    ids, _, url = handle.partition(" ")
    parts = ids.split("/")
    if len(parts) != len(("channel", "message", "attachment")) or not all(part.isdecimal() for part in parts):
        return None
    channel, message, attachment = parts
    return FileHandle(channel=channel, message=message, attachment=attachment, url=url)
