"""The process that starts a Java to record a class cache, or to prove one: ``python -m rowmerge_nb.recording``.

It reads what to do from its standard input, a line of JSON, and ends with whoever holds the other end. What it runs is what first cells
do: so the classes of a first cell are in the cache, which Java writes when it ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any, Final

# 40,000 rows: tables that are too large to be read where the statement is planned.
_NUMBERS: Final = (
    "(SELECT (a - 1) * 200 + b AS n FROM UNNEST(sequence(1, 200)) AS u (a) CROSS JOIN UNNEST(sequence(1, 200)) AS v (b)) AS w"
)

_STATEMENTS: Final = (
    "INSERT INTO accounts VALUES ('Eve', 7, 'Enfield')",
    "UPDATE accounts SET purchases = purchases + 1 WHERE customer <> 'Eve'",
    "DELETE FROM accounts WHERE customer = 'Eve'",
    "SELECT address, count(*) AS customers, sum(purchases) AS purchases FROM accounts GROUP BY address ORDER BY address LIMIT 3",
    f"CREATE TABLE many AS SELECT n AS id, n % 7 AS part, cast(n AS varchar) AS note FROM {_NUMBERS}",
    f"CREATE TABLE news AS SELECT n * 2 AS id, cast(n AS varchar) AS note FROM {_NUMBERS}",
    """MERGE INTO many t USING news s ON t.id = s.id
        WHEN MATCHED AND t.part = 1 THEN DELETE
        WHEN MATCHED THEN UPDATE SET note = concat(s.note, '!') WHEN NOT MATCHED THEN INSERT VALUES (s.id, 0, s.note)""",
)


def main() -> None:
    """Run the command line, and exit with code 0 if all went well."""
    order = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_the_other_end, daemon=True).start()
    if order["gently"]:
        os.nice(19)
    from pyspark import SparkContext

    from rowmerge_nb.engine.spark.spark_session import start_for_class_cache, stop_session

    directory = Path(order["directory"])
    session = start_for_class_cache(order["purpose"], directory, order["name"], order["conf"])
    _run_statements(once=order["purpose"] == "prove")
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - Java's end is what this is about: then the cache is written
    stop_session(session)
    gateway.proc.stdin.close()
    sys.exit(gateway.proc.wait())


def _run_statements(*, once: bool) -> None:
    from rowmerge_nb.demo import SETUP, STATEMENT
    from rowmerge_nb.engine.engine import Engine
    from rowmerge_nb.sql.parser.statement_reader import split_statements

    first = [text for text, _ in split_statements(SETUP + ";" + STATEMENT)]
    with Engine() as engine:
        for text in first:
            engine.run(text)
        if not once:
            for text in _STATEMENTS:
                engine.run(text)
            # By Spark's own operators, too: whether a statement is done in the task depends on its expressions.
            for text in (*first, *(text for text in _STATEMENTS if not text.startswith("CREATE"))):
                engine.run(text, rules_off={"change_in_task"})


def _end_with_the_other_end() -> None:
    while os.read(0, 1024):
        pass
    # With Java, which is of the same group: nobody waits for what it would write.
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
