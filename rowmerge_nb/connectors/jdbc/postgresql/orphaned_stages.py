"""Stages of dead drivers, recognized by name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.names import quoted, quoted_text
from rowmerge_nb.connectors.jdbc.database import DatabaseSession
from rowmerge_nb.spi import Orphan

PREFIX: Final = "rowmerge_nb_stage_"
STAGES: Final = quoted_text(PREFIX.replace("_", r"\_") + "%")
"""The pattern of LIKE for their names."""


def orphans(session: DatabaseSession) -> list[Orphan]:
    return [_described(row) for row in _orphans(session)]


def _orphans(session: DatabaseSession) -> list[dict[str, Any]]:
    rows = session.query(
        "SELECT n.nspname::text AS schema, c.relname::text AS name, obj_description(c.oid,"
        " 'pg_class') AS comment FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        f" WHERE c.relkind = 'r' AND c.relname LIKE {STAGES} ORDER BY 1, 2"
    )
    free = []
    for row in rows:
        number = re.search(r"_([0-9a-f]{16})$", row["name"])
        if number is None:
            continue
        key = int(number[1], 16)
        if session.value(f"SELECT pg_try_advisory_lock({key}) AS free"):
            session.value(f"SELECT pg_advisory_unlock({key}) AS freed")
            # The size is available only while the table exists; the query waits for a concurrent
            # removal.
            row["bytes"] = session.value(
                f"SELECT pg_total_relation_size(to_regclass({quoted_text(_quoted(row))})) AS n"
            )
            free.append(row)
    return free


def _quoted(row: Mapping[str, Any]) -> str:
    return f"{quoted(row['schema'])}.{quoted(row['name'])}"


def _described(row: Mapping[str, Any]) -> Orphan:
    comment: Any = None
    with suppress(ValueError, TypeError, RecursionError):
        comment = json.loads(row["comment"])
    # Any user may have created a table of such a name, with any comment.
    values = comment if isinstance(comment, dict) else {}
    began = values.get("began")
    statement, process = (str(values.get(key, "")) for key in ("statement", "process"))
    name = f"{row['schema']}.{row['name']}"
    return Orphan(
        name,
        row["bytes"],
        float(began) if isinstance(began, int | float) else None,
        statement,
        process,
    )


def remove_orphans(session: DatabaseSession) -> list[Orphan]:
    removed = []
    for row in _orphans(session):
        # Another user may own it, or be removing it.
        with suppress(RowMergeError):
            session.execute(f"DROP TABLE IF EXISTS {_quoted(row)}", "Removing what was left behind")
            removed.append(_described(row))
    return removed
