"""Fixtures and options of all tests: one Spark session serves the whole run."""

from __future__ import annotations

import gc
import os
import zlib
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from rowmerge_nb.spi.operations import Era
from rowmerge_nb.testing.contract.store_under_test import Way
from tests.report.explorer_browser import end_browser

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from pyspark.sql import SparkSession

    from rowmerge_nb.connectors.jdbc.database import DatabaseSession


# The home directory of the user must neither affect tests nor change. A requested cache is
# elsewhere, as in scripts/test.
os.environ.setdefault("ROWMERGE_CLASS_CACHE", "off")

# The time of an example depends on the machine, not on the code.
settings.register_profile(
    "rowmerge_nb", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("rowmerge_nb")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Our own local session with two cores: one Java process serves the whole run.

    Its Java has the options of users. A compiler with more optimization takes a quarter of the processors' time and saves nothing.
    """
    from rowmerge_nb.engine.spark.spark_session import create_session, stop_session

    session = create_session(cores=2)
    yield session
    stop_session(session)


@pytest.fixture(autouse=True)
def _engines_without_spark(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run seven of eight tests marked ``stand_in`` without Java, unless all tests run."""
    node = request.node
    if (
        node.get_closest_marker("stand_in") is None
        or node.get_closest_marker("on_spark") is not None
        or request.config.getoption("--long")
        or zlib.crc32(node.nodeid.encode()) % 8 == 0
    ):
        yield
        return
    from proof.trials.local_spark import engines_without_spark

    with engines_without_spark():
        yield


@pytest.fixture(autouse=True)
def _inserts_without_spark(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fill the tables of three of four tests marked ``local_inserts`` without Java, unless all tests run."""
    node = request.node
    if (
        node.get_closest_marker("local_inserts") is None
        or request.config.getoption("--long")
        or zlib.crc32(node.nodeid.encode()) % 4 == 2
    ):
        yield
        return
    from proof.trials.local_spark import inserts_without_spark

    with inserts_without_spark():
        yield


@pytest.fixture(autouse=True)
def _compiled_expressions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Spark compile the expressions of one test in eight, as it does for many rows; with --long, those of the others."""
    node = request.node
    if "spark" not in request.fixturenames:
        return
    if (zlib.crc32(node.nodeid.encode()) % 8 == 1) != request.config.getoption("--long"):
        from rowmerge_nb.plan import rules

        monkeypatch.setattr(rules, "_FEW_COMBINATIONS", -1)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The connection string of a private PostgreSQL server; without a server, the test is skipped with a reason."""
    from proof.engines.postgresql import find_server, private_server
    from rowmerge_nb.base.errors import SetupError

    try:
        find_server()
    except SetupError as error:
        pytest.skip(str(error))
    with private_server() as uri:
        yield uri


@pytest.fixture(scope="session")
def postgresql_session(postgresql: str) -> Iterator[DatabaseSession]:
    """A session of another user on that server, with which tests create and inspect tables."""
    from rowmerge_nb import PostgresConnector

    session = PostgresConnector(postgresql).store.connect(writing=True)
    # Like sessions of other programs.
    session.execute('SET search_path TO "$user", public')
    yield session
    session.close()


@pytest.fixture(scope="session")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Hive Metastore: that of ROWMERGE_METASTORE, or a private one if it is ``private``."""
    named = os.environ.get("ROWMERGE_METASTORE")
    if not named:
        pytest.skip(
            "ROWMERGE_METASTORE is not set: 'private' starts a Hive Metastore, thrift://host:port names one"
        )
    if named != "private":
        yield named
        return
    from tests.connectors.hive_acid.metastore.server import private_metastore

    with private_metastore(tmp_path_factory.mktemp("metastore")) as uri:
        yield uri


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Disable garbage collection while tests are collected, and exclude the objects of that time afterwards.

    All tests and their modules are millions of objects that live until the end. Scanning them repeatedly
    takes a third of the time of the collection, and more than a twentieth of the time of tests without Spark.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_sessionfinish() -> None:
    """Let the end of the process collect all garbage, as expected by libraries that report unreleased objects."""
    gc.unfreeze()
    # Here, since a process of xdist ends without its exit handlers.
    end_browser()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report in one line how many tests with plugins of Trino were skipped, and why."""
    reasons = Counter(
        report.longrepr[-1].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", ())
        if report.nodeid.startswith("tests/connectors/trino/")
        or "13_a_trino_plugin" in report.nodeid
    )
    if reasons:
        listed = "; ".join(f"{count} since {reason}" for reason, count in reasons.most_common())
        terminalreporter.write_line(
            f"Plugins of Trino: {reasons.total()} tests were skipped: {listed}"
        )


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that select tests by their marks."""
    parser.addoption(
        "--long",
        action="store_true",
        help="run every test, also those marked long, which take minutes, and the trials",
    )
    parser.addoption(
        "--trials", action="store_true", help="run the tests marked trial and no others"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests that use Spark, so that ``-m "not spark"`` selects the quick ones, and tests that need a Hive Metastore.

    Tests marked ``long`` or ``trial`` run only on request, as do combinations that the marks of parametrized tests omit. Where processes share the work, each takes the next file when it has done
    one: those that take long come first, so that no process is left alone with one of them at the end.
    """
    chosen = [item for item in items if _is_chosen(item, config)]
    if not config.getoption("--long"):
        chosen = _reduce_combinations(chosen)
    is_chosen = set(chosen)
    config.hook.pytest_deselected(items=[item for item in items if item not in is_chosen])
    items[:] = chosen
    for item in items:
        names = getattr(item, "fixturenames", ())
        if "spark" in names:
            item.add_marker(pytest.mark.spark)
        if "metastore" in names:
            item.add_marker(pytest.mark.metastore)
        if "postgresql" in names:
            item.add_marker(pytest.mark.server)
    if hasattr(config, "workerinput"):
        costs: Counter[str] = Counter()
        for item in items:
            costs[_file(item)] += _cost(item)
        items.sort(key=lambda item: -costs[_file(item)])


def _is_chosen(item: pytest.Item, config: pytest.Config) -> bool:
    is_long, is_trial = (item.get_closest_marker(name) is not None for name in ("long", "trial"))
    if config.getoption("--trials"):
        return is_trial and not is_long
    return bool(config.getoption("--long")) or not (is_long or is_trial or _is_in_turn(item))


EVERY_NOTEBOOK = 4
"""The notebooks of a default run: each starts its own Spark, and tests prove the content of the others."""


def _is_in_turn(item: pytest.Item) -> bool:
    """Return whether a notebook runs only with ``--long``."""
    return item.path.suffix == ".ipynb" and int(item.path.name[:2]) % EVERY_NOTEBOOK != 0


SIBLINGS: defaultdict[str, set[str]] = defaultdict(set)
"""The ids of the parameters of each test."""


def _reduce_combinations(items: list[pytest.Item]) -> list[pytest.Item]:
    """Drop combinations of parameters whose values all occur in other combinations.

    Tests with Spark or a server run each value once, and of many values a sample unless they are marked ``each_case``; tests marked
    ``each_pair`` run each pair of values. Other tests run the product of their parameters unless they are marked ``each_value``.
    """
    omitted: set[pytest.Item] = set()
    SIBLINGS.clear()
    for item in items:
        if hasattr(item, "callspec"):
            SIBLINGS[item.nodeid.partition("[")[0]].update(item.callspec._idlist)
    groups: defaultdict[tuple[str, int], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if not hasattr(item, "callspec"):
            continue
        only = item.get_closest_marker("only")
        if (
            (only is not None and not set(item.callspec.id.split("-")) & set(only.args))
            or (only is None and _is_of_the_other_store(item))
            or _is_of_the_other_era(item)
        ):
            omitted.add(item)
        elif item.get_closest_marker("each_pair"):
            groups[item.nodeid.partition("[")[0], 2].append(item)
        elif item.get_closest_marker("each_value") or _is_costly(item):
            groups[item.nodeid.partition("[")[0], 1].append(item)
    for (_, size), group in groups.items():
        kept = sorted(_cover([_occurrences(item, size) for item in group]))
        if size == 1 and _is_sampled(group[0]):
            kept = _sample(kept, group[0].path.name)
        omitted.update(item for index, item in enumerate(group) if index not in kept)
    return [item for item in items if item not in omitted]


STORES_OF_A_KIND = (
    ("hive", "iceberg"),
    ("hive", "ice"),
    ("hive", "lake"),
    ("sqlite", "postgresql"),
    ("lite", "pg"),
)
ABOUT_STORES = {"connectors", "contract"}
"""Folders whose tests run on every store."""


def _is_of_the_other_store(item: pytest.Item) -> bool:
    """Return whether a test of the engine runs on the second of two similar stores, which depends on the test's name."""
    if ABOUT_STORES & set(item.path.parts) or not _is_costly(item):
        return False
    ids = set(item.callspec._idlist)  # type: ignore[attr-defined]
    turn = zlib.crc32(item.originalname.encode()) % 2  # type: ignore[attr-defined]
    if len(item.callspec.params) != 1:  # type: ignore[attr-defined]
        return False
    siblings = SIBLINGS[item.nodeid.partition("[")[0]]
    return any(pair[turn] in ids and pair[1 - turn] in siblings for pair in STORES_OF_A_KIND)


def _is_of_the_other_era(item: pytest.Item) -> bool:
    """Return whether a check of a contract marked ``era_in_turn`` uses pages of the other era, which depends on its name."""
    way = _way(item)
    if way is None or item.get_closest_marker("era_in_turn") is None:
        return False
    eras = list(Era)
    turn = zlib.crc32(item.originalname.encode()) % len(eras)  # type: ignore[attr-defined]
    twin = str(replace(way, era=eras[turn]))
    return way.era != eras[turn] and twin in SIBLINGS[item.nodeid.partition("[")[0]]


def _way(item: pytest.Item) -> Way | None:
    params = item.callspec.params  # type: ignore[attr-defined]
    way = params.get("way", params.get("subject"))
    return way if isinstance(way, Way) else None


def _is_costly(item: pytest.Item) -> bool:
    names = getattr(item, "fixturenames", ())
    return "spark" in names or "postgresql" in names or item.get_closest_marker("spark") is not None


def _is_sampled(item: pytest.Item) -> bool:
    return _is_costly(item) and not any(map(item.get_closest_marker, ("each_case", "trial")))


def _occurrences(item: pytest.Item, size: int) -> set[tuple[tuple[str, str], ...]]:
    # An id for each call of ``parametrize``: the indices of pytest count combinations.
    ids = list(item.callspec._idlist)  # type: ignore[attr-defined]
    if (way := _way(item)) is not None:
        # The contract kit varies three things within one parameter.
        ids.remove(str(way))
        ids += [way.layout, str(way.era), str(way.paradigm)]
    return set(
        combinations([(str(index), name) for index, name in enumerate(ids)], min(size, len(ids)))
    )


def _cover(candidates: list[set[tuple[tuple[str, str], ...]]]) -> set[int]:
    """Return the indexes of candidates that together cover all values of all candidates, with little repetition."""
    missing = set().union(*candidates)
    uses: Counter[tuple[tuple[str, str], ...]] = Counter()
    kept: set[int] = set()
    while missing:
        best = max(
            range(len(candidates)),
            key=lambda index: (
                len(candidates[index] & missing),
                -sum(uses[value] for value in candidates[index]),
            ),
        )
        kept.add(best)
        uses.update(candidates[best])
        missing -= candidates[best]
    return kept


FEW_CASES, SAMPLED_SHARE = 2, 6
LOSSES = frozenset(
    [
        "test_commit.py",
        "test_committed.py",
        "test_delta_interrupts.py",
        "test_failure_protocol.py",
        "test_failures.py",
        "test_injected_faults.py",
        "test_overtaken.py",
        "test_plugin_ends.py",
        "test_protocol.py",
        "test_side_by_side.py",
        "test_trino_faults.py",
        "test_undo.py",
    ]
)
"""Files about faults, interrupts and commits, which could lose data: more of their cases run."""


def _sample(cases: list[int], file: str) -> list[int]:
    """Return the first of many cases and a share of the others."""
    few, share = (3, 4) if file in LOSSES else (FEW_CASES, SAMPLED_SHARE)
    return cases[:few] + cases[few::share]


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _cost(item: pytest.Item) -> int:
    """Estimate the duration of a test in hundredths of a second."""
    marked = {"long": 3000, "trial": 1500, "slow": 1000, "spark": 60}
    if item.path.suffix == ".ipynb":
        return 200
    return max((cost for name, cost in marked.items() if item.get_closest_marker(name)), default=1)
