"""Goals and peers' figures, copied from DESIGN 18.

Peers were run on one 2-core machine against an instant fake model and a fake Telegram, some time
ago and not here. What compares is a ratio to the floor bot of the same run, so the ratios here are
those figures divided by the floor of their run. The floor bot is written anew: only its parts are
the same (python-telegram-bot, sqlite3, httpx).
"""

from __future__ import annotations

from typing import Final

from benchmarks.figures import Target

TURN: Final = Target(
    goal="p50 <= 15 ms direct, <= 30 ms litellm; p99 <= 4x",
    peers="floor 6.5 (21 with litellm), letta-code over stdin 31, hermes 261, nanobot 278, openclaw 1,163 ms",
)
CPU: Final = Target(
    goal="<= 15 ms direct, <= 30 ms litellm",
    peers="floor 10 (20 with litellm), letta-code 70, hermes 80, nanobot 80, openclaw 470 ms",
)
STREAM: Final = Target(
    goal="<= 40 ms direct", peers="floor 10 (302 with litellm), hermes 435, nanobot 506, openclaw 2,353 ms"
)
MEMORY: Final = Target(
    goal="<= 100 MB direct with one channel",
    peers="floor 48 (212 with litellm), nanobot 149, hermes 175, letta-code 564, openclaw 1,000-1,650 MB",
)
THREE_CHANNELS: Final = Target(goal="<= 150 MB with three channels")
HELP: Final = Target(goal="<= 150 ms", peers="openclaw 136, hermes 351, letta-code 900, nanobot 1,640 ms")
READY: Final = Target(goal="<= 1 s with one channel")
PREFIX: Final = Target(
    goal="1.000 but for recorded breaks",
    peers="plain chat: nanobot, hermes, letta-code 1.00, openclaw 0.97; on a memory write: nanobot 0.91",
)
FIRST_REQUEST: Final = Target(goal=">= 0.999 within an audience", peers="hermes 0.999, nanobot 0.998, letta-code 0.93")
PROMPT_CHARS: Final = Target(
    goal="<= 14,000 characters", peers="nanobot 33k, openclaw 50k, hermes 62k, letta-code 105k characters"
)
PROMPT_TOKENS: Final = Target(goal="<= 3,500 tokens")
COMPILE: Final = Target(goal="<= 30 ms", peers="pygit2 alone 25 ms, one git process a file (letta-code's way) 1,835 ms")
UNCHANGED: Final = Target(goal="0 ms")
COMMIT: Final = Target(
    goal="<= 10 ms with fsync",
    peers="pygit2's TreeBuilder alone 0.7, git program 11.5, letta-code's memory step 368 ms",
)
PARKED_MEMORY: Final = Target(goal="10,000 conversations: <= 20 MB more than none")
PARKED_CPU: Final = Target(goal="< 1 %")
COMMITS: Final = Target(goal="at most 6")
FLAT: Final = Target(goal="flat over 10,000 turns (+- 5 %)")
LATE_TURN: Final = Target(goal="<= 1.1x")

TURN_RATIO: Final = Target(goal="2.3 direct, 1.4 litellm", peers="letta-code 4.8, hermes 40, nanobot 43, openclaw 179")
CPU_RATIO: Final = Target(goal="1.5", peers="letta-code 7, hermes 8, nanobot 8, openclaw 47")
MEMORY_RATIO: Final = Target(goal="2.1 direct", peers="nanobot 3.1, hermes 3.6, letta-code 12, openclaw 21-34")
STREAM_RATIO: Final = Target(goal="4.0", peers="hermes 44, nanobot 51, openclaw 235")
