"""What a command sees as its environment: nothing of the host, and nothing that waits for a person."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from core.contracts.errors import InvalidInput

HOME_FOLDER = ".home"
"""The home folder inside the workspace; it ignores itself in git."""

TEMPORARY = Path("/tmp")  # noqa: S108 - private inside a namespace, refused as a workspace, else unused

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# Programs that would open an editor, a pager or a password prompt get one that ends at once. Editors
# are `true`, not `false`: `git merge` and `git rebase --continue` then take the text they proposed.
_NOBODY_THERE: Mapping[str, str] = {
    "TERM": "dumb",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "/bin/false",
    "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
    "SSH_ASKPASS": "/bin/false",
    "SSH_ASKPASS_REQUIRE": "never",
    "SUDO_ASKPASS": "/bin/false",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}


def inside_environment(workspace: Path, extra: Mapping[str, str], *, temporary: Path) -> dict[str, str]:
    """Return the whole environment of a command; `extra` wins over what is set here.

    Raises:
        InvalidInput: A name or value cannot be in an environment. Bubblewrap's options are
            separated by NUL, so one in a value would add options.
    """
    for name, value in extra.items():
        if not name or "=" in name or "\0" in name + value:
            raise InvalidInput(f"{name!r} cannot be an environment variable")
    return {
        "PATH": SEARCH_PATH,
        "HOME": str(workspace / HOME_FOLDER),
        "TMPDIR": str(temporary),
        "LANG": "C.UTF-8",
        "SHELL": "/bin/sh",
        "USER": "agent",
        "LOGNAME": "agent",
        **_NOBODY_THERE,
        **extra,
    }
