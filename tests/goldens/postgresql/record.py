"""Records the results of MERGE statements in PostgreSQL in ``merge.json`` beside this file.

``python tests/goldens/postgresql/record.py -h host -p port -U user database`` passes its arguments to ``psql``. A case is recorded in a
transaction that is rolled back; rows are in the order of their text.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

TARGET = [[1, 10, "a"], [2, 20, "b"], [3, 30, None], [4, 40, "d"], [None, 50, "n"]]
SOURCE = [[2, 200, "x"], [3, None, "y"], [4, 400, "z"], [9, 900, "w"], [None, 1000, None]]
CLAUSES = {
    "source-update": "WHEN NOT MATCHED BY SOURCE AND t.v > 20 THEN UPDATE SET v = t.v + 1, p = 'kept'",
    "source-delete": "WHEN NOT MATCHED BY SOURCE AND true THEN DELETE",
    "matched-delete": "WHEN MATCHED AND s.v IS NULL THEN DELETE",
    "matched-update": "WHEN MATCHED AND true THEN UPDATE SET v = s.v, p = s.p",
    "nothing": "WHEN MATCHED AND s.id = 4 THEN DO NOTHING",
    "insert": "WHEN NOT MATCHED BY TARGET AND s.id IS NOT NULL THEN INSERT (id, v, p) VALUES (s.id, s.v, s.p)",
    "insert-nothing": "WHEN NOT MATCHED AND true THEN DO NOTHING",
    "source-nothing": "WHEN NOT MATCHED BY SOURCE AND t.id = 1 THEN DO NOTHING",
}
"""Every clause has a condition, since PostgreSQL refuses a clause after one without."""
RETURNING = "RETURNING merge_action(), t.id, t.v, t.p, s.id AS sid, old.v AS old_v, new.v AS new_v"
ORDERS = [
    *itertools.permutations(["source-update", "source-delete", "matched-update"]),
    *itertools.islice(
        itertools.permutations(["source-delete", "nothing", "matched-update", "insert"]), 0, None, 4
    ),
    *itertools.islice(
        itertools.permutations(["source-nothing", "source-update", "matched-delete"]), 0, None, 2
    ),
    ("insert-nothing", "insert", "source-update"),
    (
        "insert",
        "insert-nothing",
        "matched-delete",
        "matched-update",
        "nothing",
        "source-nothing",
        "source-update",
        "source-delete",
    ),
]
MERGE = "MERGE INTO t USING s ON"
OTHERS = {
    "on-two-keys": f"{MERGE} t.id = s.id AND s.v > 300 WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED THEN DO NOTHING "
    "RETURNING merge_action(), t.id",
    "on-false": f"{MERGE} false WHEN NOT MATCHED BY SOURCE THEN UPDATE SET p = 'alone' WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, s.p) "
    "RETURNING merge_action(), t.*",
    "on-computed": f"{MERGE} t.id + 5 = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED BY SOURCE THEN DELETE "
    "RETURNING merge_action(), old.id, new.id",
    "empty-source": "MERGE INTO t USING (SELECT * FROM s WHERE false) s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.v < 35 THEN DELETE "
    "RETURNING merge_action(), t.id, s.id",
    "with": "WITH q AS (SELECT id, v * 2 AS v FROM s), few AS (SELECT id FROM q WHERE v > 500) MERGE INTO t USING q ON t.id = q.id "
    "WHEN MATCHED AND t.id IN (SELECT id FROM few) THEN UPDATE SET v = q.v WHEN NOT MATCHED BY SOURCE THEN DELETE "
    "RETURNING merge_action(), t.id, t.v, q.v AS qv",
    "star": f"{MERGE} t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, s.p) RETURNING *",
    "old-and-new-star": f"{MERGE} t.id = s.id WHEN MATCHED AND s.v > 300 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v "
    "WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v, s.p) RETURNING old.*, new.*",
    "expressions": f"{MERGE} t.id = s.id WHEN MATCHED THEN UPDATE SET v = t.v + s.v WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = -t.v "
    "RETURNING coalesce(new.v, 0) - coalesce(old.v, 0) AS gain, CASE WHEN s.id IS NULL THEN 'alone' ELSE 'met' END AS word",
    "an-alias-hides-old": "MERGE INTO t AS new USING s AS old ON new.id = old.id WHEN MATCHED THEN UPDATE SET v = old.v "
    "RETURNING old.v AS source_v, new.v AS target_v",
    "delete-returns-old": f"{MERGE} t.id = s.id WHEN MATCHED THEN DELETE RETURNING t.*, new.id, old.id",
    "nothing-returns-nothing": f"{MERGE} t.id = s.id WHEN MATCHED THEN DO NOTHING RETURNING t.id",
    "twice": "MERGE INTO t USING (SELECT * FROM s UNION ALL SELECT 2, 7, 'q') s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v "
    "WHEN NOT MATCHED BY SOURCE THEN DELETE RETURNING t.id",
}


def cases() -> dict[str, str]:
    """Return all statements by name."""
    ordered = {
        "+".join(order): " ".join(
            [f"{MERGE} t.id = s.id", *(CLAUSES[name] for name in order), RETURNING]
        )
        for order in ORDERS
    }
    return {**ordered, **OTHERS}


def main(arguments: list[str]) -> None:
    """Record all cases."""
    recorded = [
        {"id": name, "sql": sql, "expect": record(sql, arguments)} for name, sql in cases().items()
    ]
    version = psql("SELECT current_setting('server_version')", arguments).strip()
    content = {"postgresql": version, "target": TARGET, "source": SOURCE, "cases": recorded}
    Path(__file__).with_name("merge.json").write_text(
        json.dumps(content, indent=1) + "\n", encoding="utf-8"
    )


def record(sql: str, arguments: list[str]) -> dict[str, Any]:
    """Run one statement and return its rows and those of the table, or the error's code."""
    script = f"""
        BEGIN;
        CREATE TEMP TABLE t (id bigint, v bigint, p text); CREATE TEMP TABLE s (id bigint, v bigint, p text);
        INSERT INTO t VALUES {values(TARGET)}; INSERT INTO s VALUES {values(SOURCE)};
        \\echo ---
        {sql};
        \\echo :SQLSTATE
        \\echo ---
        SELECT * FROM t;
        ROLLBACK;
    """
    _, returned, table = psql(script, arguments).split("---\n")
    *rows, state = returned.splitlines()
    return (
        {"error": state}
        if state != "00000"
        else {"returned": read(rows), "table": read(table.splitlines())}
    )


def psql(script: str, arguments: list[str]) -> str:
    """Run a script; NULL is written as a separate word."""
    command = ["psql", "-X", "-q", "-A", "-t", "-F", "|", "-P", "null=NULL", *arguments]
    return subprocess.run(command, input=script, capture_output=True, text=True, check=True).stdout


def read(lines: list[str]) -> list[list[Any]]:
    """Read rows: integers, texts, NULL."""
    rows = [
        [
            None if cell == "NULL" else int(cell) if cell.lstrip("-").isdigit() else cell
            for cell in line.split("|")
        ]
        for line in lines
    ]
    return sorted(rows, key=str)


def values(rows: list[list[Any]]) -> str:
    """Write rows as SQL."""
    return ", ".join(
        f"({', '.join('NULL' if v is None else repr(v) for v in row)})" for row in rows
    )


if __name__ == "__main__":
    main(sys.argv[1:])
