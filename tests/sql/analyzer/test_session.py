"""SET TIME ZONE: UTC under each of its names; what else it may say and what is refused is in the cases of queries."""

from __future__ import annotations

from typing import Any

import pytest

from rowmerge_nb import Engine

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def engine(spark: Any) -> Engine:
    return Engine(spark=spark)


@pytest.mark.parametrize(
    "zone", ["LOCAL", "'UTC'", "'+00:00'", "INTERVAL '0' HOUR", "'Etc/' || 'GMT'", "INTERVAL '1' HOUR - INTERVAL '60' MINUTE"]
)
def test_a_session_may_be_told_the_zone_that_it_has(engine: Engine, zone: str) -> None:
    result = engine.run(f"SET TIME ZONE {zone}")
    assert result.table is None
    assert "The time zone of the session is UTC" in str(result)


def test_a_transaction_may_say_it_too(engine: Engine) -> None:
    engine.run_script("START TRANSACTION; SET TIME ZONE 'Z'; SHOW SESSION; COMMIT")
