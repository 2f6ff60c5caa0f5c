"""Views of one table as targets: the rows of PostgreSQL, and refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rowmerge_nb import Engine, RowMergeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowmerge_nb.connectors.jdbc.database import DatabaseSession

pytestmark = pytest.mark.spark

TABLES = (
    "CREATE TABLE t (a integer, b integer DEFAULT 7, c varchar)",
    "CREATE TABLE s (a integer, b integer)",
    "INSERT INTO t VALUES (1, 10, 'x'), (2, 20, 'x'), (3, 30, 'y'), (4, NULL, NULL)",
    "INSERT INTO s VALUES (1, 11), (3, 33), (5, 55)",
)
VIEWS = (
    "CREATE VIEW v AS SELECT c AS kind, a AS id, b FROM t WHERE c = 'x'",
    "CREATE VIEW w AS SELECT id, z.b AS amount FROM v AS z WHERE z.b < 15",
    "CREATE VIEW every AS SELECT * FROM t",
    "CREATE VIEW loud AS SELECT a AS id, upper(c) AS big, b, t.b * 2 AS twice FROM t WHERE b > 0",
    "CREATE VIEW deep AS SELECT id, big || '!' AS shout, z.b, z.twice FROM loud AS z WHERE twice < 50",
    "CREATE VIEW deeper AS SELECT id, shout, b, twice + 1 AS odd FROM deep",
)
REFUSED = {
    "has GROUP BY": "SELECT a, count(*) AS n FROM t GROUP BY a",
    "has DISTINCT": "SELECT DISTINCT a FROM t",
    "reads more than one table": "SELECT t.a FROM t, s",
    "reads no table": "SELECT 1 AS a",
    "has WITH, ORDER BY, LIMIT": "SELECT a FROM t LIMIT 1",
    "'a', which is not an expression of its row": "SELECT max(a) AS a FROM t",
    "'m', which is a subquery": "SELECT a, (SELECT max(a) FROM s) AS m FROM t",
    "is not a SELECT of one table": "SELECT a FROM t UNION SELECT a FROM s",
    "has a column of its table twice": "SELECT a, a AS a2 FROM t",
}
STATEMENTS = (
    "UPDATE v SET b = id * 100",
    "UPDATE v SET b = b + 1, kind = 'q' WHERE kind = 'x' AND id = 1",
    "UPDATE v SET b = 0 WHERE id IN (SELECT a FROM s)",
    "UPDATE w SET amount = 1 WHERE id < 3 OR id > 0",
    "UPDATE v SET b = s.b FROM s WHERE s.a = v.id",
    "UPDATE every SET b = 0 WHERE c IS NULL",
    "DELETE FROM v",
    "DELETE FROM v x WHERE x.id >= 2",
    "DELETE FROM v USING s WHERE v.id = s.a",
    "DELETE FROM w WHERE amount = 10",
    "INSERT INTO v VALUES ('z', 9, 99)",
    "INSERT INTO v (id) VALUES (9)",
    "INSERT INTO w VALUES (9, 99)",
    "INSERT INTO v VALUES (DEFAULT, 9, DEFAULT)",
    "INSERT INTO v SELECT 'k', a, b FROM s",
    "UPDATE loud SET b = twice + 1 WHERE big = 'X'",
    "UPDATE loud SET b = s.b FROM s WHERE s.a = loud.id AND loud.twice > 10",
    "UPDATE loud x SET b = 0 WHERE EXISTS (SELECT 1 FROM s WHERE s.a * 20 = x.twice)",
    "DELETE FROM loud WHERE twice >= 40",
    "INSERT INTO loud (id, b) VALUES (9, 99)",
    "UPDATE deeper SET b = odd + 1 WHERE shout = 'X!'",
    "DELETE FROM deeper USING s WHERE deeper.id = s.a AND shout LIKE '%X%'",
)
MERGE = "MERGE INTO v USING s ON v.id = s.a "
MERGES = {
    # PostgreSQL sets NULL, the default of the view's column.
    "UPDATE v SET b = DEFAULT WHERE id = 1": [
        [1, 7, "x"],
        [2, 20, "x"],
        [3, 30, "y"],
        [4, None, None],
    ],
    # The row (3, 30, 'y') is not in the view, so that it is inserted again.
    MERGE
    + "WHEN MATCHED THEN UPDATE SET b = s.b WHEN NOT MATCHED THEN INSERT (id, b) VALUES (s.a, s.b)": [
        [1, 11, "x"],
        [2, 20, "x"],
        [3, 30, "y"],
        [3, 33, None],
        [4, None, None],
        [5, 55, None],
    ],
    "MERGE INTO loud USING s ON loud.id = s.a AND big = 'X' WHEN MATCHED AND twice = 20 THEN UPDATE SET b = s.b + twice"
    " WHEN NOT MATCHED BY SOURCE AND twice > 50 THEN DELETE"
    " WHEN NOT MATCHED AND s.a = 5 THEN INSERT (id, b) VALUES (s.a, s.b)": [
        [1, 31, "x"],
        [2, 20, "x"],
        [4, None, None],
        [5, 55, None],
    ],
    MERGE + "WHEN NOT MATCHED BY SOURCE THEN DELETE": [
        [1, 10, "x"],
        [3, 30, "y"],
        [4, None, None],
    ],
    MERGE + "WHEN NOT MATCHED BY SOURCE AND v.b = 20 THEN UPDATE SET kind = 'q'": [
        [1, 10, "x"],
        [2, 20, "q"],
        [3, 30, "y"],
        [4, None, None],
    ],
    "MERGE INTO v USING (SELECT 2 AS id, 'q' AS kind, 5 AS b) n ON v.id = n.id WHEN MATCHED THEN UPDATE SET *": [
        [1, 10, "x"],
        [2, 5, "q"],
        [3, 30, "y"],
        [4, None, None],
    ],
}


@pytest.fixture(scope="module")
def engine(spark: Any) -> Iterator[Engine]:
    with Engine(spark=spark, dialect="extended") as engine:
        yield engine


def _here(engine: Engine, *statements: str) -> list[list[Any]]:
    for name in ("w", "v", "every", "deeper", "deep", "loud"):
        engine.run(f"DROP VIEW IF EXISTS {name}")
    for name in "ts":
        engine.run(f"DROP TABLE IF EXISTS {name}")
    for sql in (*TABLES, *VIEWS, *statements):
        engine.run(sql)
    return _rows(engine.table("t").to_pylist())


def _rows(rows: Any) -> list[list[Any]]:
    return sorted((list(row.values()) for row in rows), key=str)


@pytest.mark.parametrize("sql", STATEMENTS)
def test_a_view_is_changed_as_in_postgresql(
    engine: Engine, postgresql_session: DatabaseSession, sql: str
) -> None:
    there = postgresql_session
    there.execute("DROP TABLE IF EXISTS t, s CASCADE")
    for text in (*TABLES, *VIEWS, sql):
        there.execute(text)
    expected = _rows(there.query("SELECT * FROM t"))
    there.execute("DROP TABLE t, s CASCADE")
    assert _here(engine, sql) == expected


@pytest.mark.parametrize("sql", MERGES)
def test_a_statement_sees_only_the_rows_of_the_view(engine: Engine, sql: str) -> None:
    assert _here(engine, sql) == sorted(MERGES[sql], key=str)


def test_returning_and_the_report_have_the_names_of_the_view(engine: Engine) -> None:
    _here(engine)
    result = engine.run("UPDATE v SET b = b + 1 WHERE id = 1 RETURNING *, old.b AS was")
    assert result.table is not None
    assert result.table.to_pylist() == [{"kind": "x", "id": 1, "b": 11, "was": 10}]
    text = " ".join(str(result).split())
    assert "The view v shows rows of memory.default.t, which is changed" in text
    assert "kind is c, id is a" in text
    inserted = engine.run("INSERT INTO v (id) VALUES (9) RETURNING *")
    assert inserted.table is not None
    assert inserted.table.to_pylist() == [{"kind": None, "id": 9, "b": 7}]


def test_returning_has_the_computed_columns_of_each_version(engine: Engine) -> None:
    _here(engine)
    result = engine.run("UPDATE loud SET b = b + 1 WHERE id = 1 RETURNING *, old.twice AS was")
    assert result.table is not None
    assert result.table.to_pylist() == [{"id": 1, "big": "X", "b": 11, "twice": 22, "was": 20}]
    assert "twice is `t.b * 2`" in " ".join(str(result).split())
    inserted = engine.run("INSERT INTO deeper (id, b) VALUES (9, 4) RETURNING shout, odd")
    assert inserted.table is not None
    assert inserted.table.to_pylist() == [{"shout": None, "odd": 9}]


@pytest.mark.parametrize(
    ("sql", "column", "message"),
    [
        ("UPDATE loud SET b = 1, Big = 'q'", 24, "Column 'big' of the view loud cannot be changed"),
        ("INSERT INTO loud (id, twice) VALUES (1, 2)", 23, "it is t.b * 2"),
        ("INSERT INTO loud VALUES (1, 'X', 2, 4)", 13, "need a list of columns, since 'big'"),
        (
            "MERGE INTO loud USING s ON id = s.a WHEN MATCHED THEN UPDATE SET twice = 1",
            66,
            "it is t.b * 2",
        ),
        (
            "MERGE INTO loud USING s ON id = s.a WHEN NOT MATCHED THEN INSERT VALUES (1, 2)",
            37,
            "need a list of columns",
        ),
    ],
)
def test_a_computed_column_is_not_assigned(
    engine: Engine, sql: str, column: int, message: str
) -> None:
    before = _here(engine)
    with pytest.raises(RowMergeError) as caught:
        engine.run(sql)
    assert (caught.value.code, caught.value.line, caught.value.column) == (
        "NOT_SUPPORTED",
        1,
        column,
    )
    assert message in caught.value.message
    assert _rows(engine.table("t").to_pylist()) == before


@pytest.mark.parametrize("why", REFUSED)
def test_an_unchangeable_view_names_the_reason(engine: Engine, why: str) -> None:
    before = _here(engine)
    engine.run(f"CREATE OR REPLACE VIEW every AS {REFUSED[why]}")
    for sql in ("UPDATE every SET a = 1", "DELETE FROM every", "INSERT INTO every (a) VALUES (1)"):
        with pytest.raises(RowMergeError, match="views is not supported") as caught:
            engine.run(sql)
        assert caught.value.code == "NOT_SUPPORTED"
        assert why in caught.value.message
    assert _rows(engine.table("t").to_pylist()) == before


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("UPDATE v SET a = 1", "COLUMN_NOT_FOUND"),
        ("DELETE FROM v WHERE c = 'x'", "COLUMN_NOT_FOUND"),
        ("INSERT INTO v (a) VALUES (1)", "COLUMN_NOT_FOUND"),
        ("INSERT INTO v VALUES (1)", "TYPE_MISMATCH"),
        ("REPLACE INTO v VALUES ('x', 1, 1)", "NOT_SUPPORTED"),
        ("INSERT INTO v (id) VALUES (1) ON CONFLICT (id) DO NOTHING", "NOT_SUPPORTED"),
        (
            MERGE.replace("MERGE", "MERGE WITH SCHEMA EVOLUTION") + "WHEN MATCHED THEN DELETE",
            "NOT_SUPPORTED",
        ),
        ("TRUNCATE TABLE v", "NOT_SUPPORTED"),
    ],
)
def test_wrong_statements_on_views_are_errors(engine: Engine, sql: str, code: str) -> None:
    before = _here(engine)
    with pytest.raises(RowMergeError) as caught:
        engine.run(sql)
    assert (caught.value.code, caught.value.line) == (code, 1)
    assert _rows(engine.table("t").to_pylist()) == before


CHECKED = (
    "CREATE VIEW v AS SELECT c AS kind, a AS id, b FROM t WHERE c = 'x'{}",
    "CREATE VIEW w AS SELECT id, b, kind FROM v AS z WHERE z.b < 25{}",
)
OPTIONS = [
    ("", " WITH CHECK OPTION"),
    ("", " WITH LOCAL CHECK OPTION"),
    (" WITH LOCAL CHECK OPTION", ""),
    (" WITH CASCADED CHECK OPTION", " WITH LOCAL CHECK OPTION"),
]
WRITES = (
    "UPDATE w SET b = b + 10",
    "UPDATE w SET b = NULL WHERE id = 1",
    "UPDATE w SET kind = 'z' WHERE id = 1",
    "UPDATE w SET kind = 'z'  WHERE id = 99",
    "UPDATE v SET kind = CAST(s.b AS varchar) FROM s WHERE s.a = v.id",
    "INSERT INTO w (id, b) VALUES (9, 99)",
    "INSERT INTO w VALUES (9, 24, 'x'), (10, 25, 'x')",
    "INSERT INTO w VALUES (9, 24, 'x')",
    "INSERT INTO w SELECT a, b, 'y' FROM s",
    "DELETE FROM w",
)


@pytest.mark.parametrize("options", OPTIONS)
def test_the_check_option_refuses_the_rows_that_postgresql_refuses(
    engine: Engine,
    postgresql_session: DatabaseSession,
    options: tuple[str, str],
    pytestconfig: pytest.Config,
) -> None:
    there = postgresql_session
    views = [text.format(option) for text, option in zip(CHECKED, options, strict=True)]
    first, step = (0, 1) if pytestconfig.getoption("--long") else (OPTIONS.index(options) % 2, 2)
    for sql in WRITES[first::step]:
        there.execute("DROP TABLE IF EXISTS t, s CASCADE")
        for text in (*TABLES, *views):
            there.execute(text)
        before = _here(engine)
        engine.run_script("DROP VIEW w; DROP VIEW v")
        for text in views:
            engine.run(text)
        violation: RowMergeError | None = None
        try:
            there.execute(sql)
        except RowMergeError as error:
            violation = error
        if violation is not None:
            assert violation.code == "CONSTRAINT_VIOLATION"
            view = violation.message.split('"')[1]
            with pytest.raises(RowMergeError, match=f"check option of the view {view}: ") as caught:
                engine.run(sql)
            assert caught.value.code == "CONSTRAINT_VIOLATION"
            assert "It happened in a row for memory.default.t. The first such row has" in str(
                caught.value
            )
            assert _rows(engine.table("t").to_pylist()) == before
        else:
            engine.run(sql)
            expected = _rows(there.query("SELECT * FROM t"))
            assert _rows(engine.table("t").to_pylist()) == expected
    there.execute("DROP TABLE t, s CASCADE")


def test_the_check_option_holds_for_the_clauses_of_a_merge(engine: Engine) -> None:
    before = _here(engine)
    engine.run(f"CREATE OR REPLACE VIEW v AS {VIEWS[0].partition(' AS ')[2]} WITH CHECK OPTION")
    assert "\nWITH CASCADED CHECK OPTION" in str(engine.run("SHOW CREATE VIEW v").explained)
    insert = MERGE + "WHEN NOT MATCHED THEN INSERT (id, b, kind) VALUES (s.a, s.b, {})"
    for sql, row in (
        (insert.format("'q'"), "new.a = 3"),
        (insert.format("NULL"), "new.a = 3"),
        (MERGE + "WHEN MATCHED THEN UPDATE SET kind = CAST(s.b AS varchar)", "new.a = 1"),
    ):
        with pytest.raises(RowMergeError, match="check option of the view v") as caught:
            engine.run(sql)
        assert caught.value.code == "CONSTRAINT_VIOLATION"
        assert "(c = 'x')" in caught.value.message
        assert row in str(caught.value.hint)
        assert _rows(engine.table("t").to_pylist()) == before
    assert engine.run(insert.format("'x'")).counts["INSERT"] == 2
    assert engine.run(MERGE + "WHEN MATCHED THEN DELETE").counts["DELETE"] == 3


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT a, count(*) AS n FROM t GROUP BY a", "has GROUP BY"),
        ("SELECT a FROM t WHERE a IN (SELECT a FROM s)", "has a subquery"),
        ("SELECT a FROM t WHERE random() < 2", "or a random value"),
    ],
)
def test_an_unenforceable_check_option_is_refused_at_its_view(
    engine: Engine, query: str, why: str
) -> None:
    _here(engine)
    create = f"CREATE VIEW checked AS {query} WITH CHECK OPTION"
    with pytest.raises(RowMergeError, match="WITH CHECK OPTION") as caught:
        engine.run(create)
    assert (caught.value.code, caught.value.line, caught.value.column) == ("NOT_SUPPORTED", 1, 1)
    assert why in caught.value.message
    assert "checked" not in engine.names("memory", "default")
    with pytest.raises(RowMergeError, match="mismatched input 'WITH'") as caught:
        engine.run(create, dialect="trino")
    assert "--dialect extended" in str(caught.value.hint)


def test_trinos_dialect_changes_no_view(engine: Engine) -> None:
    _here(engine)
    with pytest.raises(RowMergeError, match="Updating views is not supported"):
        engine.run("UPDATE v SET b = 1", dialect="trino")
