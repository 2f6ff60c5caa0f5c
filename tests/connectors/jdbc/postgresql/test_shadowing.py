"""Names of other users and settings of a session do not affect the connector's statements; a table's own code runs unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rowmerge_nb import PostgresConnector, RowMergeError
from rowmerge_nb.base.conninfo import with_safe_path
from rowmerge_nb.engine.observers.verify.engines import PostgreSQLVerifier
from tests.connectors.jdbc.support import Database, Statement, merge

ROLE = "rowmerge_victim"

TRAP = "BEGIN INSERT INTO evil.hits VALUES ('{2} {0} {1}'); RETURN true; END"
TRAPS = (
    f"CREATE FUNCTION evil.{{3}}({{0}}, {{1}}) RETURNS boolean LANGUAGE plpgsql AS $$ {TRAP} $$",
    "CREATE OPERATOR evil.{2} (LEFTARG = {0}, RIGHTARG = {1}, FUNCTION = evil.{3})",
)
OPERANDS = (
    ("varchar", "text", "="), ("varchar", "varchar", "="), ("smallint", "integer", "="), ("text", "varchar", "="), ("name", "text", "="),
    ("regproc", "integer", "<>"), ("bigint", "integer", "="), ("integer", "bigint", "="), ("bigint", "integer", ">"),
    ("name", "varchar", "="), ("varchar", "text", ">="), ("integer", "bigint", ">="), ("smallint", "bigint", "="), ("bpchar", "text", "="),
)  # fmt: skip
FUNCTIONS = (
    "lower(name)",
    "lower(varchar)",
    "count(integer)",
    "isfinite(bigint)",
    "quote_literal(varchar)",
)


@pytest.fixture
def victim(pg: Database) -> Iterator[Database]:
    """Yield the database of a role on whose search path another user has created objects."""
    pg.sql(
        f"DROP ROLE IF EXISTS {ROLE}",
        f"CREATE ROLE {ROLE} LOGIN",
        f"GRANT CREATE, USAGE ON SCHEMA public TO {ROLE}",
        "CREATE SCHEMA evil",
        f"GRANT USAGE ON SCHEMA evil TO {ROLE}",
        "CREATE TABLE evil.hits (what text)",
        f"GRANT INSERT, SELECT ON evil.hits TO {ROLE}",
        f"ALTER ROLE {ROLE} SET search_path = evil, public, pg_catalog",
        "CREATE TABLE public.t (k varchar(10), n smallint, v varchar(20) NOT NULL DEFAULT 'd'::varchar || '!', PRIMARY KEY (k, n))",
        "INSERT INTO public.t VALUES ('a', 1, 'x'), ('b', 2, 'y')",
        f"ALTER TABLE public.t OWNER TO {ROLE}",
    )
    dsn = pg.connector.store.dsn.replace("user=postgres", f"user={ROLE}")  # type: ignore[attr-defined]
    connector = PostgresConnector(dsn)
    yield Database("postgresql", connector, "public")
    connector.close()
    pg.sql(
        f"DROP OWNED BY {ROLE} CASCADE",
        "DROP SCHEMA evil CASCADE",
        "DROP TABLE IF EXISTS public.t",
        f"DROP ROLE {ROLE}",
    )


def set_traps(pg: Database) -> None:
    for number, (left, right, operator) in enumerate(OPERANDS):
        pg.sql(*(trap.format(left, right, operator, f"trap{number}") for trap in TRAPS))
    for signature in FUNCTIONS:
        name, kind = signature[:-1].split("(")
        body = f"BEGIN INSERT INTO evil.hits VALUES ('{signature}'); RETURN NULL; END"
        pg.sql(f"CREATE FUNCTION evil.{name}({kind}) RETURNS text LANGUAGE plpgsql AS $$ {body} $$")
    pg.sql(
        "CREATE TABLE evil.pg_class (oid int)",
        "CREATE VIEW evil.pg_attribute AS SELECT 1 AS attrelid",
        "CREATE DOMAIN evil.int8 AS text",
        "CREATE DOMAIN evil.uuid AS text",
    )


def statements(database: Database) -> None:
    """Read, condition, insert, update, delete, exchange keys, fill a default, truncate."""
    statement = Statement(database, "t")
    assert statement.read().num_rows == 2
    statement.rollback()
    merge(database, "t", [("a", 1, "xx", 3, 0, ("a", 1)), ("c", 3, None, 1, 0, None)], {0: ["v"]})
    merge(
        database,
        "t",
        [("b", 2, "q", 3, 0, ("a", 1)), ("a", 1, "p", 3, 0, ("b", 2))],
        {0: ["k", "n", "v"]},
    )
    merge(database, "t", [(None, None, None, 2, 0, ("b", 2))], {0: ["v"]})


def test_no_name_of_another_user_is_called(pg: Database, victim: Database) -> None:
    set_traps(pg)
    statements(victim)
    assert pg.rows("SELECT k, n, v FROM public.t ORDER BY k") == [("a", 1, "p"), ("c", 3, "d!")]
    assert pg.rows("SELECT * FROM evil.hits") == []
    transaction = victim.connector.begin_transaction()
    metadata = victim.connector.get_metadata(transaction)
    handle = metadata.get_table_handle(Any, victim.name("t"))
    metadata.truncate_table(Any, handle)
    victim.connector.commit(transaction)
    assert pg.rows("SELECT count(*) AS n FROM public.t") == [(0,)]
    assert victim.connector.orphans() == []
    assert pg.rows("SELECT * FROM evil.hits") == []


def test_the_traps_would_take_effect_with_the_search_path_of_the_role(
    pg: Database, victim: Database
) -> None:
    set_traps(pg)
    session = victim.connector.store.connect(writing=True)
    try:
        session.execute("SET search_path = evil, public, pg_catalog")
        session.query("SELECT k FROM public.t WHERE k = 'a'::text")
    finally:
        session.close()
    assert pg.rows("SELECT DISTINCT what FROM evil.hits") == [("= varchar text",)]


def test_code_of_a_users_table_has_the_roles_own_search_path_and_zone(
    pg: Database, victim: Database
) -> None:
    pg.sql(
        "CREATE TABLE public.audit (what text, zone text, path text)",
        f"GRANT ALL ON public.audit TO {ROLE}",
        f"ALTER ROLE {ROLE} SET search_path = public",
        f"ALTER ROLE {ROLE} SET timezone = 'Asia/Tokyo'",
        # Unqualified, as usually written.
        "CREATE FUNCTION public.noted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "INSERT INTO audit VALUES (TG_OP, current_setting('timezone'), current_setting('search_path')); RETURN NULL; END $$",
        "CREATE TRIGGER noted AFTER INSERT OR UPDATE OR DELETE ON public.t FOR EACH ROW EXECUTE FUNCTION public.noted()",
        "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON public.t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.noted()",
        "CREATE TRIGGER emptied AFTER TRUNCATE ON public.t FOR EACH STATEMENT EXECUTE FUNCTION public.noted()",
        "CREATE FUNCTION public.fits(text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM 1 FROM audit; RETURN true; END $$",
        "ALTER TABLE public.t ADD CHECK (public.fits(v))",
    )
    rows = [
        ("a", 1, "xx", 3, 0, ("a", 1)),
        (None, None, None, 2, 0, ("b", 2)),
        ("c", 3, "z", 1, 0, None),
    ]
    merge(victim, "t", rows, {0: ["v"]})
    found = pg.rows("SELECT what, zone, path FROM public.audit")
    assert sorted(row[0] for row in found) == ["DELETE", "INSERT", "INSERT", "UPDATE"]
    assert {row[1:] for row in found} == {("Asia/Tokyo", "public")}
    pg.sql(
        "DROP TABLE public.audit CASCADE",
        "DROP FUNCTION public.noted CASCADE",
        "DROP FUNCTION public.fits CASCADE",
    )


@pytest.mark.parametrize("written", ["role", "database", "both", "options", "PGOPTIONS", "nothing"])
def test_the_own_search_path_is_that_of_other_sessions(
    pg: Database, victim: Database, written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pg.sql(f"ALTER ROLE {ROLE} RESET search_path")
    expected, store = '"$user", public', victim.connector.store
    if written in {"database", "both"}:
        pg.sql("ALTER DATABASE postgres SET search_path = a, public")
        expected = "a, public"
    if written in {"role", "both"}:
        pg.sql(f"ALTER ROLE {ROLE} IN DATABASE postgres SET search_path = b, public")
        expected = "b, public"
    if written == "options":
        store = type(store)(f"{store.dsn} options='-c search_path=o\\\\,\\\\ public'")  # type: ignore[attr-defined, call-arg]
        expected = "o, public"
    if written == "PGOPTIONS":
        monkeypatch.setenv("PGOPTIONS", "-c search_path=e,public")
        expected = "e,public"
    try:
        session = store.connect(writing=True)
        session.execute("BEGIN")
        with session.own_settings():  # type: ignore[attr-defined]
            own = session.value("SELECT pg_catalog.current_setting('search_path') AS v")
        assert session.value("SELECT current_setting('search_path') AS v") == "pg_catalog, pg_temp"
        session.execute("COMMIT")
        session.close()
    finally:
        pg.sql("ALTER DATABASE postgres RESET search_path")
    assert own == expected


SETTINGS = {
    "quote_all_identifiers": "on",
    "standard_conforming_strings": "off",
    "default_transaction_isolation": "serializable",
    "default_transaction_deferrable": "on",
    "datestyle": "'SQL, DMY'",
    "intervalstyle": "sql_standard",
    "bytea_output": "escape",
    "extra_float_digits": "-15",
    "timezone": "'America/New_York'",
    "lc_monetary": "'C'",
    "lc_numeric": "'C'",
    "lc_time": "'C'",
    "lc_messages": "'C'",
    "statement_timeout": "'60s'",
    "idle_in_transaction_session_timeout": "'1ms'",
    "row_security": "off",
    "check_function_bodies": "off",
    "client_encoding": "'LATIN1'",
    "transform_null_equals": "on",
    "backslash_quote": "on",
    "array_nulls": "off",
    "xmloption": "document",
    "enable_seqscan": "off",
    "default_tablespace": "''",
    "search_path": "nowhere",
}
"""Settings of a role or a database, each with an unusual value."""


@pytest.mark.parametrize("owner", [f"ROLE {ROLE}", "DATABASE postgres"])
def test_settings_of_role_and_database_change_nothing(
    pg: Database, victim: Database, owner: str
) -> None:
    pg.sql(
        "CREATE TYPE public.mood AS ENUM ('sad', 'glad')",
        "CREATE TABLE public.s (id bigint PRIMARY KEY, d date, ts timestamptz, b bytea, f float8, m public.mood, j jsonb, u uuid, "
        "t text NOT NULL DEFAULT E'it''s \\\\ ' || 'é')",
        f"ALTER TABLE public.s OWNER TO {ROLE}",
        f"GRANT USAGE ON TYPE public.mood TO {ROLE}",
    )
    values = (
        1,
        "2024-02-03",
        "2024-02-03 12:00:00.123456+00",
        "\\x00ff",
        0.1,
        "sad",
        '{"a": 1}',
        "00000000-0000-0000-0000-000000000001",
    )
    listed = ", ".join("'" + str(value) + "'" for value in values)
    try:
        for name, value in SETTINGS.items():
            pg.sql(f"ALTER {owner} SET {name} = {value}")
        pg.sql(f"INSERT INTO public.s VALUES ({listed}, 'é \\ ''')")
        before = Statement(victim, "s")
        row = before.read().to_pylist()[0]
        before.rollback()
        assert (str(row["d"]), row["b"], row["f"], row["m"], row["t"]) == (
            "2024-02-03",
            b"\x00\xff",
            0.1,
            "sad",
            "é \\ '",
        )
        new = tuple(row[name] for name in ("d", "ts", "b", "f", "m", "j", "u"))
        merge(victim, "s", [(1, *new, "ü \\ '", 3, 0, 1), (2, *new, None, 1, 0, None)], {0: ["t"]})
        rows = pg.rows(
            "SELECT t, s.d = '2024-02-03' AND b = '\\x00ff' AND ts = '2024-02-03 12:00:00.123456+00' AS same FROM public.s s ORDER BY id"
        )
        assert rows == [("ü \\ '", True), ("it's \\ é", True)]
    finally:
        for name in SETTINGS:
            pg.sql(f"ALTER {owner} RESET {name}")
        pg.sql("DROP TABLE public.s", "DROP TYPE public.mood")


def test_a_read_only_role_gets_an_error_that_names_it(pg: Database, victim: Database) -> None:
    pg.sql(f"ALTER ROLE {ROLE} SET default_transaction_read_only = on")
    with pytest.raises(RowMergeError) as caught:
        merge(victim, "t", [("a", 1, "xx", 3, 0, ("a", 1))], {0: ["v"]})
    assert caught.value.code == "PERMISSION_DENIED"
    assert "default_transaction_read_only" in (caught.value.hint or "")


def test_a_type_of_another_schema_named_like_a_builtin_is_not_mistaken_for_it(
    pg: Database,
) -> None:
    pg.sql(
        "CREATE SCHEMA other",
        "CREATE TYPE other.int4 AS (a int)",
        "CREATE DOMAIN other.uuid AS text",
    )
    try:
        for declared in ("other.int4", "other.uuid"):
            pg.sql(
                "DROP TABLE IF EXISTS public.t",
                f"CREATE TABLE public.t (id int PRIMARY KEY, v {declared})",
            )
            with pytest.raises(RowMergeError, match="has no counterpart"):
                Statement(pg, "t")
    finally:
        pg.sql("DROP TABLE public.t", "DROP SCHEMA other CASCADE")


def test_verification_has_a_search_path_of_its_own(pg: Database, victim: Database) -> None:
    verifier = PostgreSQLVerifier(victim.connector.store.dsn)  # type: ignore[attr-defined]
    try:
        assert verifier.rows("SELECT pg_catalog.current_setting('search_path')") == [
            ("pg_catalog, pg_temp",)
        ]
    finally:
        verifier.close()


@pytest.mark.parametrize(
    ("dsn", "safe"),
    [
        (
            "",
            "options='-csearch_path=pg_catalog,pg_temp -cclient_encoding=UTF8 -cquote_all_identifiers=off'",
        ),
        (
            "host=db options='-c a=\\'b\\''",
            "host=db options='-c a=\\'b\\'' options='-c a=\\'b\\' -csearch_path=pg_catalog,pg_temp -cclient_encoding=UTF8 -cquote_all_identifiers=off'",
        ),
        (
            "postgresql://db/shop",
            "postgresql://db/shop?options=-csearch_path%3Dpg_catalog%2Cpg_temp%20-cclient_encoding%3DUTF8%20-cquote_all_identifiers%3Doff",
        ),
        (
            "postgresql://db/shop?options=-c%20a%3Db",
            "postgresql://db/shop?options=-c%20a%3Db&options=-c%20a%3Db%20-csearch_path%3Dpg_catalog%2Cpg_temp%20-cclient_encoding%3DUTF8%20-cquote_all_identifiers%3Doff",
        ),
    ],
)
def test_options_of_a_connection_string_stay(
    dsn: str, safe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGOPTIONS", raising=False)
    assert with_safe_path(dsn) == safe
