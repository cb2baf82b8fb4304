"""The folders of a host that may turn out to be unusable, told so that a person can act."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.contracts.errors import LodgerError


class UnusableFolder(LodgerError):
    """A configured folder cannot be created or written."""

    def __init__(self, setting: str, path: Path, reason: str) -> None:
        self.setting = setting
        self.path = path
        self.reason = reason
        super().__init__(f"cannot use {str(path)!r}: {reason}. Set {setting} to a folder that this user may write.")


@contextmanager
def usable(setting: str, path: Path) -> Iterator[None]:
    """Translate what the operating system says in the block about the folder of a setting."""
    try:
        yield
    except FileExistsError as error:
        raise UnusableFolder(setting, path, "it is a file") from error
    except OSError as error:
        raise UnusableFolder(setting, path, error.strerror or str(error)) from error


def open_data_dir(path: Path) -> None:
    """Create the host's own folder if it is missing; nobody else may look into it.

    Raises:
        UnusableFolder: It cannot be created or written.
    """
    with usable("[host] data_dir", path):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        is_read_only = os.statvfs(path).f_flag & os.ST_RDONLY
        raise UnusableFolder("[host] data_dir", path, os.strerror(errno.EROFS if is_read_only else errno.EACCES))
