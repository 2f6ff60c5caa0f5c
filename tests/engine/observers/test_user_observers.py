"""Observers of users get plain data, change nothing, and failures name the observer. No Spark is started."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from proof.trials.local_spark import LocalEngine, without_spark
from rowmerge_nb import Engine, ObservedStatement, Observer, RowMergeError
from rowmerge_nb.engine.observers.user_observers import HOOKS

MERGE = (
    "MERGE INTO t USING s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.name)"
)
ENDS = {"after_commit", "after_rehearsal", "on_failure"}


class Log(Observer):
    """Records the called hooks with the statement."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, ObservedStatement]] = []

    @property
    def hooks(self) -> list[str]:
        return [hook for hook, _ in self.calls]


def _logged(hook: str) -> Any:
    return lambda self, statement: self.calls.append((hook, statement))


for _hook in HOOKS:
    setattr(Log, _hook, _logged(_hook))


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def engine(log: Log) -> Iterator[Engine]:
    with without_spark(), LocalEngine(observers=[log]) as engine:
        engine.register("t", pa.table({"id": [1, 2], "name": ["a", "b"]}), primary_key=["id"])
        engine.register("s", pa.table({"id": [1, 3], "name": ["one", "three"]}))
        yield engine


def rows(engine: Engine) -> list[dict[str, Any]]:
    return engine.table("t").sort_by("id").to_pylist()


# -- what observers get


def test_a_merge_calls_the_hooks_in_order(engine: Engine, log: Log) -> None:
    result = engine.run(MERGE)
    assert log.hooks == ["before_begin", "after_action", "before_finish", "after_commit"]
    statements = [statement for _, statement in log.calls]
    first, last = statements[0], statements[-1]
    assert len({statement.id for statement in statements}) == 1
    assert (first.text, first.kind, first.table) == (MERGE, "MERGE", ("memory", "default", "t"))
    assert (first.connector, first.is_rehearsal, first.counts, first.trace) == (
        "memory",
        False,
        {},
        None,
    )
    assert statements[1].counts == {"joined": 2, "matched": 1, "changed": 2}
    assert last.trace is not None
    assert (last.trace.count, last.trace.committed, last.trace.calls) == (
        2,
        True,
        result.trace.calls,
    )
    assert set(last.seconds) >= {"plan", "run", "commit"}


def test_the_tables_that_a_statement_reads_are_its_sources(engine: Engine, log: Log) -> None:
    engine.run("CREATE TABLE u AS SELECT * FROM t")
    statement = log.calls[-1][1]
    assert (statement.kind, statement.table, statement.sources) == (
        "CREATE TABLE AS",
        ("memory", "default", "u"),
        (("memory", "default", "t"),),
    )
    assert statement.counts == {"changed": 2}
    engine.run("SELECT * FROM frame, t", namespace={"frame": pa.table({"x": [1]})})
    statement = log.calls[-1][1]
    assert (statement.kind, statement.table, set(statement.sources)) == (
        "SELECT",
        (),
        {("frame",), ("memory", "default", "t")},
    )


def test_a_rehearsal_ends_with_a_hook_of_its_own(engine: Engine, log: Log) -> None:
    engine.run(MERGE, rehearse=True)
    assert log.hooks == ["before_begin", "after_action", "before_finish", "after_rehearsal"]
    assert all(statement.is_rehearsal for _, statement in log.calls)
    assert len(rows(engine)) == 2


def test_a_failure_is_observed_with_its_error(engine: Engine, log: Log) -> None:
    with pytest.raises(RowMergeError, match="MULTIPLE_MATCHES"):
        engine.run(MERGE.replace("t.id = s.id", "t.id = s.id OR t.id < s.id"))
    assert log.hooks == ["before_begin", "after_action", "on_failure"]
    trace = log.calls[-1][1].trace
    assert trace is not None
    assert trace.error is not None
    assert trace.error.code == "MERGE_TARGET_ROW_MULTIPLE_MATCHES"
    assert not trace.committed


@pytest.mark.parametrize(
    "statement",
    ["SELECT * FROM nowhere", "MERGE INTO", "PREPARE p FROM SELECT 1", f"EXPLAIN {MERGE}"],
)
def test_statements_that_never_begin_are_not_observed(
    engine: Engine, log: Log, statement: str
) -> None:
    with suppress(RowMergeError):
        engine.run(statement)
    engine.run(MERGE, dry_run=True)
    assert log.calls == []


def test_trials_and_comparisons_are_not_observed(engine: Engine, log: Log) -> None:
    result = engine.run(MERGE)
    count = len(log.calls)
    result.what_if(MERGE.replace("s.name", "'uno'"))
    engine.compare(MERGE, by="paradigms")
    engine.compare(MERGE, by="duplicates")
    assert len(log.calls) == count


def test_every_statement_has_one_last_hook(engine: Engine, log: Log) -> None:
    for statement in [
        "CREATE TABLE u (id bigint)",
        "INSERT INTO u VALUES 1",
        "SHOW TABLES",
        "DELETE FROM u",
        "DROP TABLE u",
    ]:
        engine.run(statement)
        assert log.hooks[0] == "before_begin"
        assert [hook for hook in log.hooks if hook in ENDS] == ["after_commit"]
        assert log.hooks[-1] == "after_commit"
        log.calls.clear()


# -- an observer changes nothing


@pytest.mark.parametrize("hook", ["before_begin", "after_action", "before_finish", "after_commit"])
@pytest.mark.parametrize("error", [ValueError("no disk"), SystemExit(3), RowMergeError("no disk")])
def test_an_error_of_an_observer_becomes_a_notice(
    engine: Engine, log: Log, hook: str, error: BaseException
) -> None:
    class Broken(Log):
        name = "Metrics"

    def fail(_: Any, statement: ObservedStatement) -> None:
        raise error

    setattr(Broken, hook, fail)
    broken = Broken()
    engine.add_observer(broken)
    result = engine.run(MERGE)
    assert result.count == 2
    assert [row["name"] for row in rows(engine)] == ["one", "b", "three"]
    (notice,) = [notice.message for notice in result.trace.notices if "Metrics" in notice.message]
    assert notice.startswith(
        f"Observer 'Metrics' failed in {hook} and gets no further calls for this statement: "
    )
    # The others get all, and the next statement starts over.
    assert log.hooks == ["before_begin", "after_action", "before_finish", "after_commit"]
    assert broken.hooks == log.hooks[: log.hooks.index(hook)]
    broken.calls.clear()
    engine.run("SELECT 1")
    assert bool(broken.calls) is (hook != "before_begin")


def test_an_error_about_a_failed_statement_is_a_notice_of_its_result(engine: Engine) -> None:
    class Broken(Observer):
        def on_failure(self, statement: ObservedStatement) -> None:
            raise ValueError("no disk")

    engine.add_observer(Broken())
    with pytest.raises(RowMergeError, match="Division by zero") as caught:
        engine.run("UPDATE t SET id = 1 / (id - 1)")
    result: Any = caught.value.result
    assert result.trace.notices[-1].message.endswith(
        "failed in on_failure and gets no further calls for this statement: ValueError: no disk"
    )
    assert len(rows(engine)) == 2


def test_changes_by_an_observer_to_its_data_reach_no_result(engine: Engine) -> None:
    class Vandal(Observer):
        def after_commit(self, statement: Any) -> None:
            statement.seconds.clear()
            statement.counts.clear()
            statement.trace.seconds.clear()
            statement.trace.rows.clear()
            for writer in statement.trace.writers:
                writer.rows.clear()

    engine.add_observer(Vandal())
    trace = engine.run(MERGE).trace
    assert trace.seconds
    assert trace.rows
    assert all(writer.rows for writer in trace.writers)


@pytest.mark.parametrize("hook", ["before_begin", "before_finish", "after_commit"])
def test_a_hook_cannot_run_statements(engine: Engine, hook: str) -> None:
    class Nested(Observer):
        pass

    setattr(Nested, hook, lambda _, statement: engine.run("DELETE FROM t"))
    engine.add_observer(Nested())
    result = engine.run(MERGE)
    assert len(rows(engine)) == 3
    (notice,) = [notice.message for notice in result.trace.notices if "Nested" in notice.message]
    assert f"An observer cannot run statements in its hook {hook}" in notice
    engine.run("DELETE FROM t WHERE id = 3")


def test_an_interrupt_in_a_hook_ends_the_statement(engine: Engine) -> None:
    class Stopping(Observer):
        def before_finish(self, statement: ObservedStatement) -> None:
            raise KeyboardInterrupt

    engine.add_observer(Stopping())
    with pytest.raises(RowMergeError, match="The statement was interrupted"):
        engine.run(MERGE)
    assert len(rows(engine)) == 2


# -- registering


@pytest.mark.parametrize("observers", [Log(), [Log], [print], "Log"])
def test_only_observers_can_be_registered(observers: Any) -> None:
    with pytest.raises(RowMergeError, match="INVALID_ARGUMENTS: observer") as caught:
        Engine(observers=observers)
    assert "rowmerge_nb.Observer" in str(caught.value.hint)


def test_a_method_that_only_resembles_a_hook_is_refused(engine: Engine) -> None:
    class Misspelled(Observer):
        def after_comit(self, statement: ObservedStatement) -> None:
            """Never called."""

    with pytest.raises(
        RowMergeError, match="has a method 'after_comit', but no such hook exists"
    ) as caught:
        engine.add_observer(Misspelled())
    assert "after_commit" in str(caught.value.hint)


def test_an_observer_is_registered_once(engine: Engine, log: Log) -> None:
    with pytest.raises(RowMergeError, match="ALREADY_EXISTS: Observer 'Log' is registered already"):
        engine.add_observer(log)
    with pytest.raises(RowMergeError, match="ALREADY_EXISTS"):
        Engine(observers=[log, log])
    other = Log()
    engine.add_observer(other)
    engine.run("SELECT 1")
    assert other.hooks == log.hooks


def test_an_observer_that_was_removed_gets_no_more(engine: Engine, log: Log) -> None:
    engine.remove_observer(log)
    engine.run("SELECT 1")
    assert log.calls == []
    with pytest.raises(RowMergeError, match="NOT_FOUND: Observer 'Log' is not registered"):
        engine.remove_observer(log)


def test_a_hook_of_an_instance_is_called(engine: Engine) -> None:
    kinds: list[str] = []
    observer = Observer()
    observer.after_commit = lambda statement: kinds.append(statement.kind)  # type: ignore[method-assign]
    engine.add_observer(observer)
    engine.run("SHOW TABLES")
    assert kinds == ["SHOW TABLES"]


def test_runs_without_observers_have_no_observers_of_users() -> None:
    from rowmerge_nb.engine.observers.user_observers import ObserverRegistry

    assert ObserverRegistry().of_run() is None


def test_the_examples_of_the_page_run(engine: Engine) -> None:
    page = (Path(__file__).parents[3] / "docs" / "observers.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        exec(block, names)
    events: list[dict[str, Any]] = []
    engine.add_observer(names["metrics"])
    engine.add_observer(names["Lineage"](events.append))
    engine.run("SELECT * FROM t")
    engine.run(MERGE)
    assert (names["metrics"].statements, names["metrics"].changed, names["metrics"].failures) == (
        2,
        2,
        0,
    )
    (event,) = events
    assert event["inputs"] == [{"namespace": "rowmerge_nb", "name": "memory.default.s"}]
    assert event["outputs"] == [{"namespace": "rowmerge_nb", "name": "memory.default.t"}]


def test_the_page_names_every_hook() -> None:
    page = (Path(__file__).parents[3] / "docs" / "observers.md").read_text(encoding="utf-8")
    assert [hook for hook in HOOKS if f"| `{hook}` |" not in page] == []
