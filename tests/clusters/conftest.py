"""Clusters for the tests of this folder; each driver runs in its own process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clusters.servers import ClusterDriver, connect_server, standalone_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterDriver]:
    """A driver on a standalone cluster of two workers."""
    folder = tmp_path_factory.mktemp("standalone")
    with standalone_cluster(folder) as address, ClusterDriver(address, folder) as driver:
        yield driver


@pytest.fixture(scope="module")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterDriver]:
    """A driver with a session of a Spark Connect server."""
    folder = tmp_path_factory.mktemp("connect")
    with connect_server(folder) as address, ClusterDriver(address, folder) as driver:
        yield driver


@pytest.fixture(params=["standalone", "connect"])
def both(request: pytest.FixtureRequest) -> ClusterDriver:
    """A driver on each cluster."""
    driver: ClusterDriver = request.getfixturevalue(request.param)
    return driver


@pytest.fixture(params=["connect", pytest.param("standalone", marks=pytest.mark.long)])
def cluster(request: pytest.FixtureRequest) -> ClusterDriver:
    """A driver on each cluster; on the standalone cluster only with --long."""
    driver: ClusterDriver = request.getfixturevalue(request.param)
    return driver
