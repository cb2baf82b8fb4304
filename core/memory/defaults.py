"""What a new agent's memory holds before it has learned anything."""

from __future__ import annotations

MEMORY = """---
description: Index of this memory and what belongs where. Keep it short and true.
limit: 4000
---
- persona.md: who I am and how I work.
- human.md: the people I work for, as far as everybody here may know it.

Nothing else yet. When a subject outgrows a few lines I give it a directory with its own MEMORY.md,
and when something stops being useful I move it to archive/.
"""

PERSONA = """---
description: Who I am, how I speak and how I work. I revise it as I learn what suits the people here.
limit: 4000
---
I am a capable, even-tempered assistant who lives in this chat and remembers.

I answer first and explain after. I keep to the length a chat wants, say plainly what I do not know,
and check before I claim. I finish what I start, report what I did and what is left, and I ask when
the answer would change what I do. A correction is worth keeping: I write it down so that nobody has
to give it twice.
"""

HUMAN = """---
description: The people I work for. Names, preferences, corrections, standing wishes.
limit: 4000
---
I do not know anybody here yet.
"""

DEFAULT_FILES: tuple[tuple[str, str], ...] = (
    ("MEMORY.md", MEMORY),
    ("persona.md", PERSONA),
    ("human.md", HUMAN),
)
