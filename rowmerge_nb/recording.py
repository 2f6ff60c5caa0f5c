"""The process that records or tests a class cache: ``python -m rowmerge_nb.recording``.

It reads a JSON line from standard input, and exits when the other end of that pipe closes. It runs
the statements of typical first cells, whose classes Java writes to the cache when it ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any, Final

# 40,000 rows: too many to be read during planning.
_NUMBERS: Final = (
    "(SELECT (a - 1) * 200 + b AS n FROM UNNEST(sequence(1, 200)) AS u (a) CROSS JOIN"
    " UNNEST(sequence(1, 200)) AS v (b)) AS w"
)

_STATEMENTS: Final = (
    "INSERT INTO accounts VALUES ('Eve', 7, 'Enfield')",
    "UPDATE accounts SET purchases = purchases + 1 WHERE customer <> 'Eve'",
    "DELETE FROM accounts WHERE customer = 'Eve'",
    (
        "SELECT address, count(*) AS customers, sum(purchases) AS purchases FROM accounts GROUP BY"
        " address ORDER BY address LIMIT 3"
    ),
    (
        "CREATE TABLE many AS SELECT n AS id, n % 7 AS part, cast(n AS varchar) AS note FROM"
        f" {_NUMBERS}"
    ),
    f"CREATE TABLE news AS SELECT n * 2 AS id, cast(n AS varchar) AS note FROM {_NUMBERS}",
    """MERGE INTO many t USING news s ON t.id = s.id
        WHEN MATCHED AND t.part = 1 THEN DELETE
        WHEN MATCHED THEN UPDATE SET note = concat(s.note, '!') WHEN NOT MATCHED THEN INSERT VALUES (s.id, 0, s.note)""",
)


def main() -> None:
    """Run the command line, and exit with code 0 on success."""
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
            # Also with Spark's own operators, which some expressions require.
            for text in (*first, *(text for text in _STATEMENTS if not text.startswith("CREATE"))):
                engine.run(text, rules_off={"change_in_task"})


def _end_with_the_other_end() -> None:
    while os.read(0, 1024):
        pass
    # Java is in the same process group; its output is no longer needed.
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
