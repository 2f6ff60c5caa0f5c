"""What all tests share: one Spark session for the whole run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Our own local session with two cores: one Java process serves the whole run."""
    from rowmerge_nb.engine.spark import create_session, stop_session

    session = create_session(cores=2)
    yield session
    stop_session(session)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """A private PostgreSQL server's connection string; where there is no server, the test is skipped with the reason."""
    from rowmerge_nb.errors import SetupError
    from rowmerge_nb.testing.postgresql import find_server, private_server

    try:
        find_server()
    except SetupError as error:
        pytest.skip(str(error))
    with private_server() as uri:
        yield uri


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that uses Spark, so that ``-m "not spark"`` gives the quick ones."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
