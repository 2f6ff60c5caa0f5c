"""Default values of columns: those that a definition may have, and where an INSERT uses them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from rowmerge_nb.base.errors import ParseError
from rowmerge_nb.spi.alterations import AddColumn, DropDefault, SetDefault
from rowmerge_nb.sql.analyzer.analysis import (
    CreateTableAnalysis,
    DefinitionAnalysis,
    InsertAnalysis,
    MergeAnalysis,
    TableBinding,
)
from rowmerge_nb.sql.parser.statement_reader import parse
from tests.sql.support import FakeTables, meaning, refusal, spark_text

EXTENDED = "extended"


class Defaulted(FakeTables):
    """A table whose columns have defaults, in a store that keeps them."""

    def __init__(self, *, stores: bool = True, status: str | None = "'new'") -> None:
        super().__init__({"items": [("id", "bigint"), ("n", "integer"), ("status", "varchar(5)")]})
        self.stores = stores
        self.status = status

    def resolve(self, parts: Sequence[str], version: object = None) -> TableBinding | None:
        found = super().resolve(parts, version)
        if found is None:
            return None
        return replace(
            found, columns=(*found.columns[:2], replace(found.columns[2], default=self.status))
        )

    def store(self, catalog: str) -> Any:
        return SimpleNamespace(
            **{
                **vars(super().store(catalog)),
                "stores_defaults": self.stores,
                "stores_comments": True,
            }
        )


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("bigint DEFAULT 5", "5"),
        ("bigint DEFAULT -5 NOT NULL COMMENT 'x'", "-5"),
        ("double DEFAULT 1.50", "DECIMAL '1.50'"),
        ("double precision DEFAULT -1e3", "-1E3"),
        ("double DEFAULT -1.5", "DECIMAL '-1.5'"),
        ("varchar DEFAULT 'it''s'", "'it''s'"),
        ("varchar(3) DEFAULT 'abc  '", "'abc  '"),
        ("decimal(4,2) DEFAULT 12.5", "DECIMAL '12.5'"),
        ("date DEFAULT DATE '2024-02-29'", "DATE '2024-02-29'"),
        ("timestamp(3) DEFAULT TIMESTAMP '2024-02-29 01:02:03'", "TIMESTAMP '2024-02-29 01:02:03'"),
        ("boolean DEFAULT TRUE", "true"),
        ("array(bigint) DEFAULT NULL", "null"),
        ("tinyint DEFAULT 127", "127"),
        ("varbinary DEFAULT X'65'", "X'65'"),
    ],
)
def test_a_default_is_a_literal_that_the_column_can_hold(written: str, kept: str) -> None:
    made = meaning(f"CREATE TABLE made (c {written})", tables=Defaulted(), dialect=EXTENDED)
    assert isinstance(made, CreateTableAnalysis)
    assert made.metadata.columns[0].default == kept
    added = meaning(
        f"ALTER TABLE items ADD COLUMN c {written}", tables=Defaulted(), dialect=EXTENDED
    )
    assert isinstance(added, DefinitionAnalysis)
    assert isinstance(added.alteration, AddColumn)
    assert added.alteration.column.default == kept


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("bigint DEFAULT 'a'", "''a'' is not a valid BIGINT literal"),
        ("tinyint DEFAULT 128", "'128' is not a valid TINYINT literal"),
        ("integer DEFAULT 1.5", "'DECIMAL '1.5'' is not a valid INTEGER literal"),
        ("varchar(2) DEFAULT 'abc'", "''abc'' is not a valid VARCHAR(2) literal"),
        ("decimal(3,2) DEFAULT 12.5", "'DECIMAL '12.5'' is not a valid DECIMAL(3,2) literal"),
        ("decimal(5,1) DEFAULT 1.25", "'DECIMAL '1.25'' is not a valid DECIMAL(5,1) literal"),
        ("boolean DEFAULT 0", "'0' is not a valid BOOLEAN literal"),
    ],
)
def test_other_defaults_are_refused_at_their_position(written: str, message: str) -> None:
    for statement in (
        f"CREATE TABLE made (c {written})",
        f"ALTER TABLE items ADD COLUMN c {written}",
    ):
        error = refusal(statement, tables=Defaulted(), dialect=EXTENDED)
        assert (error.code, error.message) == ("INVALID_DEFAULT_COLUMN_VALUE", message)
        assert error.column == statement.index("DEFAULT ") + len("DEFAULT ") + 1
        assert error.hint


def test_alter_column_sets_a_default_and_drops_it() -> None:
    found = meaning(
        "ALTER TABLE items ALTER COLUMN n SET DEFAULT 7", tables=Defaulted(), dialect=EXTENDED
    )
    assert isinstance(found, DefinitionAnalysis)
    assert found.alteration == SetDefault("n", "7")
    found = meaning(
        "ALTER TABLE items ALTER COLUMN Status DROP DEFAULT", tables=Defaulted(), dialect=EXTENDED
    )
    assert isinstance(found, DefinitionAnalysis)
    assert found.alteration == DropDefault("status")


@pytest.mark.parametrize(
    ("rest", "code", "message"),
    [
        (
            "ALTER COLUMN n DROP DEFAULT",
            "GENERIC_USER_ERROR",
            "Column 'n' does not have a default value",
        ),
        ("ALTER COLUMN m SET DEFAULT 1", "COLUMN_NOT_FOUND", "Column 'm' does not exist"),
        ("ALTER COLUMN m DROP DEFAULT", "COLUMN_NOT_FOUND", "Column 'm' does not exist"),
        (
            "ALTER COLUMN n SET DEFAULT 'a'",
            "INVALID_DEFAULT_COLUMN_VALUE",
            "''a'' is not a valid INTEGER literal",
        ),
    ],
)
def test_unsupported_defaults_of_alter_column_are_refused(
    rest: str, code: str, message: str
) -> None:
    error = refusal(f"ALTER TABLE items {rest}", tables=Defaulted(), dialect=EXTENDED)
    assert (error.code, error.message) == (code, message)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE made (c bigint DEFAULT 1)",
        "ALTER TABLE items ADD COLUMN c bigint DEFAULT 1",
        "ALTER TABLE items ALTER COLUMN c SET DEFAULT 1",
    ],
)
def test_a_store_without_defaults_refuses_them(statement: str) -> None:
    tables = Defaulted(stores=False)
    if "ALTER COLUMN" in statement:
        statement = statement.replace("COLUMN c", "COLUMN n")
    error = refusal(statement, tables=tables, dialect=EXTENDED)
    assert error.code == "NOT_SUPPORTED"
    assert error.message.startswith(
        "Catalog 'memory' does not support default value for column name '"
    )


LITERAL = "The default of a column is a literal, such as 0, 'x' or DATE '2026-01-01'."
BEFORE_NOT_NULL = "DEFAULT stands between the type and NOT NULL: c bigint DEFAULT 1 NOT NULL."


@pytest.mark.parametrize(
    ("statement", "column", "hint"),
    [
        ("CREATE TABLE made (c bigint DEFAULT 1 + 1)", 39, None),
        ("CREATE TABLE made (c bigint DEFAULT n)", 37, LITERAL),
        ("CREATE TABLE made (c date DEFAULT current_date)", 35, LITERAL),
        ("CREATE TABLE made (c date DEFAULT (1))", 35, LITERAL),
        ("CREATE TABLE made (c date DEFAULT -'1')", 36, None),
        ("CREATE TABLE made (c bigint NOT NULL DEFAULT 1)", 38, BEFORE_NOT_NULL),
        ("ALTER TABLE items ALTER COLUMN n SET DEFAULT abs(1)", 46, LITERAL),
    ],
)
def test_a_default_that_is_not_a_literal_is_a_syntax_error(
    statement: str, column: int, hint: str | None
) -> None:
    with pytest.raises(ParseError) as caught:
        parse(statement)
    assert (caught.value.code, caught.value.column) == ("SYNTAX_ERROR", column)
    assert hint is None or caught.value.hint == hint


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE made (c bigint DEFAULT -1 NOT NULL)",
        "CREATE TABLE made (c bigint DEFAULT -9223372036854775808 NOT NULL)",
        "ALTER TABLE items ADD COLUMN c date DEFAULT DATE '2026-01-01'",
        "ALTER TABLE items ALTER COLUMN n SET DEFAULT 1",
        "ALTER TABLE items ALTER COLUMN n DROP DEFAULT",
    ],
)
def test_defaults_are_of_both_dialects(statement: str) -> None:
    assert parse(statement) == parse(statement, dialect="extended")


def test_an_insert_puts_the_default_where_it_names_no_column() -> None:
    found = meaning("INSERT INTO items (id) VALUES (1)", tables=Defaulted())
    assert isinstance(found, InsertAnalysis)
    assert "'new'" in spark_text(found)
    named = meaning("INSERT INTO items (id, status) VALUES (1, NULL)", tables=Defaulted())
    assert isinstance(named, InsertAnalysis)
    assert "'new'" not in spark_text(named)


def test_an_insert_of_a_merge_puts_the_default_where_it_names_no_column() -> None:
    merge = (
        "MERGE INTO items t USING (VALUES 1) AS s (id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 1 "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    found = meaning(merge, tables=Defaulted())
    assert isinstance(found, MergeAnalysis)
    assert [value and value.text for value in found.clauses[0].values] == [None, "1", None]
    assert [value and value.text for value in found.clauses[1].values] == ["s.id", None, "'new'"]


def test_an_unreadable_default_of_a_connector_is_reported() -> None:
    for told in ("nextval('ids')", "'too long'", "'"):
        error = refusal("INSERT INTO items (id) VALUES (1)", tables=Defaulted(status=told))
        assert error.code == "INVALID_DEFAULT_COLUMN_VALUE"
        assert error.message.startswith(
            "Invalid default value for column 'status' of 'memory.default.items': "
        )
        assert error.hint == f"Its connector reports DEFAULT {told}."
        meaning("INSERT INTO items VALUES (1, 2, 'a')", tables=Defaulted(status=told))
