"""The reference that queries a Trino server, with a fake server that has a few answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from proof.engines.backends import InexpressibleError, Trino
from proof.engines.trino import TrinoClient, TrinoError
from proof.fuzz import main
from proof.oracle.oracle import DUPLICATE, Outcome, multiset
from proof.statements.model import (
    Assignment,
    Call,
    Clause,
    Column,
    ColumnDefinition,
    DeleteStatement,
    Literal,
    MergeStatement,
    Scenario,
    Settings,
    Table,
    UpdateAction,
    ValuesSource,
)
from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.spi.types import BOOLEAN, INTEGER, decimal_of, parse_type


class Server(ThreadingHTTPServer):
    """Returns the answers for the beginning of a statement, page by page; every first page succeeds only at the second attempt."""

    def __init__(self, answers: dict[str, list[dict[str, Any]]]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = answers
        self.pages: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str | None]] = []
        self.busy = True

    @property
    def url(self) -> str:
        return f"http://me@127.0.0.1:{self.server_port}/iceberg"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        sql = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.busy = not self.server.busy
        if not self.server.busy:
            self._answer(503, {})
            return
        self.server.asked.append((sql, self.headers["X-Trino-Schema"]))
        found = next(
            (pages for begin, pages in self.server.answers.items() if sql.startswith(begin)), [{}]
        )
        self.server.pages = list(found)
        self._next()

    def do_GET(self) -> None:
        self._next()

    def _next(self) -> None:
        page = self.server.pages.pop(0)
        if self.server.pages:
            page = page | {"nextUri": f"http://127.0.0.1:{self.server.server_port}/next"}
        self._answer(200, page)

    def _answer(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server({}) as made:
        Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.shutdown()


TABLE = Table(
    "target",
    (
        ColumnDefinition("k", INTEGER, nullable=False),
        ColumnDefinition("a", decimal_of(5, 2)),
        ColumnDefinition("b", parse_type("timestamp(6)")),
    ),
    ((1, Decimal("1.50"), None),),
)
DELETE = Scenario((TABLE,), DeleteStatement("target", None), Settings(partitioned_by=("k",)))


def test_pages_of_rows_are_put_together(server: Server) -> None:
    server.answers = {"SELECT": [{}, {"data": [[1]]}, {"data": [[2]], "updateCount": 2}]}
    answer = TrinoClient(server.url).run("SELECT 1")
    assert (answer.rows, answer.count) == ([[1], [2]], 2)


@pytest.mark.not_quick
def test_tables_are_created_in_a_schema_that_is_dropped_at_the_end(server: Server) -> None:
    server.answers = {
        "DELETE": [{"updateCount": 1}],
        "SELECT": [{"data": [[2, "0.25", "2024-02-29 10:00:00.500000"], [3, None, None]]}],
    }
    backend = Trino(server.url)
    outcome = backend.run(DELETE)
    backend.close()
    left = [(2, Decimal("0.25"), datetime.fromisoformat("2024-02-29 10:00:00.5")), (3, None, None)]
    assert outcome == Outcome(multiset(left), 1)
    schema = server.asked[-1][0].split()[2]
    assert server.asked == [
        (f"CREATE SCHEMA {schema}", None),
        ("DROP TABLE IF EXISTS target", schema),
        (
            "CREATE TABLE target (k integer NOT NULL, a decimal(5,2), b timestamp(6)) WITH (partitioning = ARRAY['k'])",
            schema,
        ),
        ("INSERT INTO target VALUES (1, 1.50, CAST(NULL AS timestamp(6)))", schema),
        ("DELETE FROM target", schema),
        ("SELECT * FROM target", schema),
        (f"DROP SCHEMA {schema} CASCADE", schema),
    ]


@pytest.mark.not_quick
def test_an_error_has_the_class_that_its_code_means(server: Server) -> None:
    message = "One MERGE target table row matched more than one source row"
    server.answers = {
        "DELETE": [
            {},
            {"error": {"errorName": "MERGE_TARGET_ROW_MULTIPLE_MATCHES", "message": message}},
        ]
    }
    assert Trino(server.url).run(DELETE).errors == {DUPLICATE}
    with pytest.raises(TrinoError, match="One MERGE target"):
        TrinoClient(server.url).run("DELETE FROM target")


@pytest.mark.not_quick
def test_failures_of_trino_itself_prove_nothing(server: Server) -> None:
    server.answers = {
        "DELETE": [{"error": {"errorName": "GENERIC_INTERNAL_ERROR", "message": "Invalid node"}}]
    }
    with pytest.raises(InexpressibleError, match="Invalid node"):
        Trino(server.url).run(DELETE)


def test_two_versions_of_a_row_are_not_compared_if_single_columns_are_changed(
    server: Server,
) -> None:
    same = Call("=", (Column("t", "k"), Column("s", "k")))
    update = UpdateAction((Assignment("a", Literal(None, decimal_of(5, 2), bare=True)),))
    source = ValuesSource(
        "s",
        (ColumnDefinition("k", INTEGER), ColumnDefinition("b", BOOLEAN)),
        ((1, True), (1, False)),
    )
    merge = MergeStatement(
        "target", "t", source, same, (Clause(Column("s", "b"), update), Clause(None, update))
    )
    settings = Settings(paradigm="CHANGE_ONLY_UPDATED_COLUMNS")
    with pytest.raises(InexpressibleError, match="two versions"):
        Trino(server.url).run(Scenario((TABLE,), merge, settings))


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8080", "http://127.0.0.1:8080", "http://127.0.0.1:8080/iceberg/default", ""]
)
def test_an_unknown_catalog_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(SetupError, match="Not the URL of a catalog"):
        TrinoClient(url)


def test_a_missing_server_is_reported(server: Server) -> None:
    url = server.url
    server.shutdown()
    server.server_close()
    with pytest.raises(SetupError, match="No Trino server answers"):
        Trino(url)


def test_trino_requires_the_address_of_its_server() -> None:
    with pytest.raises(SystemExit, match="--trino http"):
        main(["--against", "trino", "--statements", "1"])
