"""The end of a plugin's process while Spark works: the driver notices it and cancels the tasks."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import rowmerge_nb as rm
from rowmerge_nb.base.errors import ConnectorError
from tests.connectors.trino.fake_connector import FakeTrinoConnector

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.spark

ENDLESS = (
    "(SELECT count(*) AS n FROM UNNEST(sequence(1, 9000)) a(x) CROSS JOIN"
    " UNNEST(sequence(1, 9000)) b(y) CROSS JOIN UNNEST(sequence(1, 9000)) c(z) WHERE x + y <> z)"
)
"""A source that Spark counts for minutes."""


@pytest.fixture
def shop(spark: Any, tmp_path: Path) -> Iterator[tuple[rm.Engine, FakeTrinoConnector]]:
    connector = FakeTrinoConnector(tmp_path)
    engine = rm.Engine(spark=spark)
    engine.add_catalog("shop", connector)
    yield engine, connector
    connector.close()


def test_tasks_that_do_not_call_the_ended_process_are_cancelled(
    shop: tuple[rm.Engine, FakeTrinoConnector],
) -> None:
    engine, connector = shop
    create = "CREATE TABLE shop.default.accounts AS SELECT * FROM (VALUES 1, 2) t(id)"
    engine.run(create)
    (host,) = connector.hosts.running
    folder = os.path.dirname(host.socket_path)  # noqa: PTH120 - a text
    moments: list[float] = []

    def kill() -> None:
        moments.append(time.monotonic())
        os.kill(host.pid, signal.SIGKILL)

    threading.Timer(3, kill).start()
    with pytest.raises(ConnectorError, match=r"ended \((SIGKILL|during .*)\)") as caught:
        engine.run(
            f"MERGE INTO shop.default.accounts t USING {ENDLESS} s ON t.id = s.n"
            " WHEN MATCHED THEN DELETE"
        )
    assert time.monotonic() - moments[0] < 2
    assert (caught.value.code, caught.value.changed) == ("HOST_TERMINATED", False)
    assert caught.value.hint == "Run the statement again; a new process starts."
    # This plugin keeps its tables in its process.
    assert engine.run(create).count == 2
    assert not os.path.exists(folder)  # noqa: PTH110 - a text
