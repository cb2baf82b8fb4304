"""The whole schema: importing this module knows every table."""

from __future__ import annotations

from typing import Final

from sqlalchemy import MetaData

from core.stores.tables.agents import AGENTS
from core.stores.tables.delivery import INBOX
from core.stores.tables.ledger import TURNS
from core.stores.tables.people import PEOPLE
from core.stores.tables.sessions import SESSION_LINES
from core.stores.tables.transcripts import RUNS
from core.stores.tables.work import WORK_ITEMS

METADATA: Final[MetaData] = AGENTS.metadata

ROOMS: Final = (AGENTS, RUNS, TURNS, INBOX, PEOPLE, SESSION_LINES, WORK_ITEMS)
"""The first table of each room."""
