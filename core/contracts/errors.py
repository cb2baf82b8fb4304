"""Every error that crosses a boundary inside Lodger.

LodgerError
├── NotFound                 a row, file or revision that does not exist
├── InvalidInput             the caller broke the contract of an operation
├── ConversationBusy         another run of the conversation is active
├── ApprovalPending          a user input came over parked calls
├── StaleClaim               the writer lost its conversation to a newer claim
├── DirectoryInUse           another process owns the data directory
├── StoreError
│   ├── StorageFull          no space left; nothing of the operation was kept
│   └── StoreUnavailable     the database cannot be read or written now
├── MemoryRefused            admission refused a change: file, rule and fix
├── MemoryConflict           a three-way merge left conflicts
├── ModelError
│   ├── ModelOverflow        the request does not fit the model's window
│   │   └── ModelPayloadTooLarge  it is too large in bytes, or holds too many images
│   ├── ModelBusy            rate limit or overload; may carry retry_after
│   ├── ModelUnreachable     connection, timeout, 5xx or a stream that was cut
│   └── ModelRejected        key, model name or request refused: never retried
│       └── ModelImageRefused     an image in it cannot be taken: not retried with that image
├── SpeechError
│   ├── SpeechRefused        a recording that cannot be transcribed, for good
│   └── SpeechFailed         one that could not be transcribed now
├── ToolError                text for the model; the turn goes on
├── SandboxUnavailable       no way to isolate a command on this machine
└── ChannelError
    ├── SendRejected         the platform refused; the same send will fail again
    ├── TextTooLong          refused for its length; split smaller
    ├── SendLimited          the platform asks to wait
    ├── SendUnknown          it is not known whether the send took effect
    ├── ChatMoved            the chat goes on under another id
    ├── DownloadRefused      a file that cannot be had, for good
    ├── DownloadFailed       a file that could not be had now
    └── ChannelDown          the platform cannot be reached or the token is refused

Errors carry fields; text for a chat is written in `bot`.
"""

from __future__ import annotations

from datetime import timedelta


class LodgerError(Exception):
    """Root of all errors that Lodger raises on purpose."""


class NotFound(LodgerError):
    """A named thing does not exist."""

    def __init__(self, kind: str, key: str) -> None:
        self.kind = kind
        self.key = key
        super().__init__(f"no {kind} {key!r}")


class InvalidInput(LodgerError):
    """The caller broke an operation's contract; nothing was changed."""


class ConversationBusy(LodgerError):
    """Another run of this conversation is active."""

    def __init__(self, conversation_id: str, run_id: str) -> None:
        self.conversation_id = conversation_id
        self.run_id = run_id
        super().__init__(f"conversation {conversation_id!r} is busy with run {run_id!r}")


class ApprovalPending(LodgerError):
    """A `UserInput` was sent while calls wait for a decision."""

    def __init__(self, conversation_id: str, call_ids: tuple[str, ...]) -> None:
        self.conversation_id = conversation_id
        self.call_ids = call_ids
        super().__init__(f"conversation {conversation_id!r} waits for calls {call_ids!r}")


class StaleClaim(LodgerError):
    """A newer claim holds the conversation; the holder of the old one stops at once."""

    def __init__(self, conversation_id: str, epoch: int) -> None:
        self.conversation_id = conversation_id
        self.epoch = epoch
        super().__init__(f"claim {epoch} of conversation {conversation_id!r} is no longer valid")


class DirectoryInUse(LodgerError):
    """Another process owns the data directory."""

    def __init__(self, path: str, pid: int | None) -> None:
        self.path = path
        self.pid = pid
        super().__init__(f"{path!r} is in use by process {pid!r}")


class StoreError(LodgerError):
    """The database could not do it; the transaction was rolled back."""


class StorageFull(StoreError):
    """No space left on the device, or the quota is used up."""


class StoreUnavailable(StoreError):
    """The database cannot be read or written now: locked, read-only, damaged or gone."""


class MemoryRefused(LodgerError):
    """Admission refused a change; the text of all three fields is for the model."""

    def __init__(self, *, path: str, rule: str, fix: str) -> None:
        self.path = path
        self.rule = rule
        self.fix = fix
        super().__init__(f"{path}: {rule}. {fix}")


class MemoryConflict(LodgerError):
    """The base moved and a three-way merge left conflicts in `paths`."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        self.paths = paths
        super().__init__(f"conflicting changes in {', '.join(paths)}")


class ModelError(LodgerError):
    """A model step failed. `detail` is the provider's wording with secrets masked."""

    def __init__(self, detail: str, *, status: int | None = None) -> None:
        self.detail = detail
        self.status = status
        super().__init__(detail)


class ModelOverflow(ModelError):
    """The request does not fit the model's window."""


class ModelPayloadTooLarge(ModelOverflow):
    """The request is too large in bytes, or holds more images than are taken, whatever its tokens."""


class ModelBusy(ModelError):
    """Rate limited or overloaded; `retry_after` is the provider's wish, if it named one."""

    def __init__(self, detail: str, *, status: int | None = None, retry_after: timedelta | None = None) -> None:
        super().__init__(detail, status=status)
        self.retry_after = retry_after


class ModelUnreachable(ModelError):
    """Connection failure, timeout, 5xx, or a stream that ended without a finish."""


class ModelRejected(ModelError):
    """The key, the model's name or the request itself was refused; never retried."""


class ModelImageRefused(ModelRejected):
    """An image of the request cannot be taken: unreadable, too large by itself, or the model sees none."""


class SpeechError(LodgerError):
    """A recording was not transcribed. `detail` is for its sender and the model, without secrets."""

    def __init__(self, detail: str) -> None:
        self.detail = detail
        super().__init__(detail)


class SpeechRefused(SpeechError):
    """It cannot be transcribed; trying again would fail again."""


class SpeechFailed(SpeechError):
    """It could not be transcribed now; another try may succeed."""


class ToolError(LodgerError):
    """A tool cannot do what was asked; its text is what the model reads."""


class SandboxUnavailable(LodgerError):
    """No sandbox works here; `reason` says what was tried, for the person who can fix it."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class ChannelError(LodgerError):
    """A platform call failed. `detail` holds no token."""

    def __init__(self, detail: str) -> None:
        self.detail = detail
        super().__init__(detail)


class SendRejected(ChannelError):
    """The platform refused; sending the same again would fail again."""


class TextTooLong(SendRejected):
    """The platform counts the text as too long; split it smaller."""


class SendLimited(ChannelError):
    """The platform asks to wait `retry_after` before the next call to this chat."""

    def __init__(self, detail: str, *, retry_after: timedelta) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class SendUnknown(ChannelError):
    """The answer was lost: the send may or may not have taken effect."""


class ChatMoved(ChannelError):
    """Nothing was sent: the chat goes on under the id `chat`."""

    def __init__(self, detail: str, *, chat: str) -> None:
        super().__init__(detail)
        self.chat = chat


class DownloadRefused(ChannelError):
    """The file cannot be had: too big, not allowed, gone. `detail` is for the person who sent it."""


class DownloadFailed(ChannelError):
    """The file could not be had now; another try may succeed."""


class ChannelDown(ChannelError):
    """The platform cannot be reached, or it refuses the token."""
