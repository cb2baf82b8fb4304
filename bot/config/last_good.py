"""The last configuration that worked: kept as text, for a start at which its file is refused.

A refused file must not keep a host from starting: the chat from which it could be repaired would
be gone with it. So the text of every configuration that has been in force is kept where it can be
found without reading any (`Settings.last_good`), and a host starts with it, loudly.
"""

from __future__ import annotations

import logging
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bot.config.errors import ConfigError
from bot.config.load import Loaded, Surroundings, last_good_place, load, load_file

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a host starts with. `refusal` says why that is not the file as it stands, where it is not."""

    loaded: Loaded
    refusal: ConfigError | None = None

    @property
    def notice(self) -> str:
        """What an owner must know at once, without secrets; empty where the file itself is used."""
        if self.refusal is None:
            return ""
        return (
            f"The configuration is refused: {self.refusal}\n"
            "I have started with the last one that worked instead. Correct the file, then send /reload."
        )


def load_or_last_good(config: str | Path | None, around: Surroundings) -> Start:
    """Load the configuration, or the text of its file that worked last when the file is refused.

    A file that is empty or ends in the middle of a line, and is the beginning of the text that
    worked last, counts as refused: whoever wrote it was interrupted.

    Raises:
        ConfigError: The file is refused, and nothing is kept for it or that is refused, too; the
            error is the file's.
    """
    try:
        loaded = load(config, around)
        _refuse_cut_off(loaded)
    except ConfigError as refusal:
        kept = _kept(last_good_place(refusal.file, around)) if refusal.file is not None else None
        if kept is None:
            raise
        try:
            return Start(loaded=load_file(refusal.file, around, data=kept), refusal=refusal)
        except ConfigError:
            raise refusal from None
    return Start(loaded=loaded)


def load_again(source: Path | None, around: Surroundings) -> Loaded:
    """Load the file that a host runs with, or look for one where it runs with none.

    Raises:
        ConfigError: The file is refused, gone or cut off; another one that could be found does not replace it.
    """
    loaded = load(None, around) if source is None else load_file(source, around)
    _refuse_cut_off(loaded)
    return loaded


def keep_last_good(loaded: Loaded) -> None:
    """Keep the text of a configuration that is in force, for this user alone to read.

    Whole or not at all, whenever the process dies. Where it cannot be kept that is logged and
    nothing more: the host works without it.
    """
    place = loaded.settings.last_good
    if place is None:
        return
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write_whole(place, loaded.data)
    except OSError as error:
        logger.warning("last_good_not_kept", extra={"file": str(place), "reason": error.strerror})


def _refuse_cut_off(loaded: Loaded) -> None:
    """Refuse a text that is only the beginning of the one that worked last, cut anywhere but behind a line.

    It may be valid, and would then take away all that it lacks: owners, channels, rules.

    Raises:
        ConfigError: It is.
    """
    place = loaded.settings.last_good
    kept = _kept(place) if place is not None else None
    if kept is None or kept == loaded.data or loaded.data.endswith(b"\n") or not kept.startswith(loaded.data):
        return
    message = "ends in the middle of a line of what worked last" if loaded.data else "is empty, and was not before"
    raise ConfigError(
        f"the file {message}; was its writer interrupted?",
        file=loaded.settings.source,
        suggestion="if it is meant to be so, end it with a line break",
    )


def _kept(place: Path) -> bytes | None:
    try:
        return place.read_bytes()
    except OSError:
        # Unreadable is as good as not there: the error to be told is that of the file itself.
        return None


def _write_whole(path: Path, data: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".new", delete=False) as file:  # for this user alone
        new = Path(file.name)
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            new.replace(path)
        except BaseException:
            new.unlink()
            raise
