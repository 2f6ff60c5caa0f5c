"""The process of the trials, which runs statements with the real engine as ordered."""

from __future__ import annotations

import json
import signal
import sys
import time
from contextlib import suppress
from typing import Any

from proof.trials.driver import obey
from proof.trials.points.statements import STATEMENTS, Acting, observe, version_of
from proof.trials.points.stores import FURTHER, reopened, table_of
from rowmerge_nb.base.errors import RowMergeError

_time, _time_ns = time.time, time.time_ns


class SystemDriver:
    """Obeys orders.

    Args:
        store: the kind of store.
        where: its directory; for PostgreSQL the connection string.
    """

    def __init__(self, store: str, where: str) -> None:
        self._store = reopened(store, where)
        self._engine: Any = None
        self._acting: Any = None
        self._statement = ""

    def start(self) -> dict[str, Any]:
        """Start Spark, which lives as long as this process."""
        import rowmerge_nb as rm

        self._engine = rm.Engine(cores=2)
        self._engine.run("SELECT count(*) FROM (VALUES 1, 2) AS t(x)")
        return {"ready": True}

    def prepare(self, statement: str) -> dict[str, Any]:
        """Open the store, and run the preparation of a statement."""
        import rowmerge_nb as rm

        if self._acting is not None:
            self._acting.engine.close()
        connector = self._store.connector()
        engine = rm.Engine(catalog="store", schema=self._store.schema, cores=2)
        engine.add_catalog("store", connector)
        self._acting = Acting(
            self._store, connector, engine, version_of(connector, self._store.schema)
        )
        self._statement = statement
        STATEMENTS[statement].prepare(self._acting)
        return {}

    def run(self) -> dict[str, Any]:
        """Run the statement; return its report, as one word and as text."""
        return self._said(lambda: STATEMENTS[self._statement].run(self._acting))

    def further(self) -> dict[str, Any]:
        """Run another statement, which must work."""
        content = observe(self._acting.connector, self._store.schema)
        if content["t"] is None:
            return {"said": "done", "words": "the table does not exist"}
        return self._said(
            lambda: self._acting.sql(
                "MERGE INTO t USING news s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = t.v",
                namespace={"news": table_of(FURTHER)},
            )
        )

    def look(self) -> dict[str, Any]:
        """Return the content of the store."""
        content: dict[str, Any] = json.loads(
            json.dumps(observe(self._acting.connector, self._store.schema))
        )
        return content

    def clock(self, seconds: float) -> dict[str, Any]:
        """Move the clock of this process forward, or back for negative seconds; 0 resets it."""
        time.time = lambda: _time() + seconds
        time.time_ns = lambda: _time_ns() + int(seconds * 1e9)
        return {}

    def _said(self, run: Any) -> dict[str, Any]:
        try:
            run()
        except RowMergeError as error:
            return {
                "said": {False: "failed", True: "changed", None: "unknown"}[error.changed],
                "words": str(error),
                "code": error.code,
            }
        except BaseException as error:  # noqa: BLE001 - the parent tells
            return {"said": "nothing", "words": repr(error), "code": "raw"}
        return {"said": "done", "words": "", "code": ""}


def main() -> None:
    """Obey until the orders end."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    answers, sys.stdout = sys.stdout, sys.stderr
    with suppress(BrokenPipeError):
        obey(SystemDriver(*sys.argv[1:3]), answers)


if __name__ == "__main__":
    main()
