"""Well-known shapes of tokens and keys, so that none is kept in a memory by accident."""

from __future__ import annotations

import re

PLACEHOLDER = "[secret removed]"

# Prefixes are the issuers' own; lengths are the shortest they issue. Nothing here matches a git
# hash, a UUID, an ordinary word with a dash or plain base64.
_SHAPES = (
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
    r"(?<![A-Za-z0-9])gh[oprsu]_[A-Za-z0-9]{36,251}",
    r"(?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{40,250}",
    r"(?<![A-Za-z0-9])glpat-[A-Za-z0-9_-]{20,}",
    r"(?<![A-Za-z0-9])xox[abeoprs]-[0-9A-Za-z-]{20,}",
    r"(?<![A-Za-z0-9])xapp-\d-[0-9A-Za-z-]{20,}",
    r"(?<![A-Za-z0-9])sk-(?:ant|proj|svcacct|or|live)-[A-Za-z0-9_-]{24,}",
    r"(?<![A-Za-z0-9])sk-[A-Za-z0-9]{32,}",
    r"(?<![A-Za-z0-9])[rs]k_(?:live|test)_[A-Za-z0-9]{20,}",
    r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Za-z])",
    r"(?<![A-Za-z0-9])AIza[0-9A-Za-z_-]{35}",
    r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{34,}",
    r"(?<![A-Za-z0-9])npm_[A-Za-z0-9]{36}",
    r"(?<![A-Za-z0-9])pypi-AgE[A-Za-z0-9_-]{50,}",
    r"(?<![0-9A-Za-z])\d{8,10}:[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])",
    r"(?<![A-Za-z0-9])[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",
    r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
)
_ANY = re.compile("|".join(_SHAPES), re.DOTALL)


def scrub(text: str) -> str:
    """Return `text` with everything that has a credential's shape replaced by a placeholder."""
    return _ANY.sub(PLACEHOLDER, text)
