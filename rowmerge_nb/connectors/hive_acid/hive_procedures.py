"""The procedures of ``CALL hive.system.<name>(...)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.spi import ConnectorSession, Procedure, ProcedureArgument, Type, parse_type
from rowmerge_nb.spi.types import BIGINT, VARCHAR, array_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowmerge_nb.connectors.hive_acid.hive_connector import HiveAcidConnector

_TABLE: Final = (
    ProcedureArgument("schema_name", VARCHAR),
    ProcedureArgument("table_name", VARCHAR),
)
_NAMES: Final = array_of(VARCHAR)
_INVALID: Final = "INVALID_PROCEDURE_ARGUMENT"


def procedures_of(connector: HiveAcidConnector) -> Sequence[Procedure]:
    """Return the procedures of a connector.

    >>> import tempfile
    >>> from rowmerge_nb import HiveAcidConnector
    >>> [procedure.name for procedure in HiveAcidConnector(tempfile.mkdtemp()).get_procedures()]
    ['compact', 'remove_obsolete', 'register_table', 'unregister_table', 'abort_transaction', 'remove_orphans']
    """
    bodies = _Procedures(connector)
    registered = (
        *_TABLE,
        ProcedureArgument("table_location", VARCHAR),
        ProcedureArgument("columns", _NAMES),
        _optional("partitioned_by", _NAMES),
        _optional("bucketed_by", _NAMES),
        _optional("bucket_count", BIGINT),
        _optional("bucketing_version", BIGINT),
    )
    return (
        Procedure(
            "system", "compact", (*_TABLE, _optional("type", VARCHAR, "major")), bodies.compact
        ),
        Procedure("system", "remove_obsolete", _TABLE, _of_table(connector.remove_obsolete)),
        Procedure("system", "register_table", registered, bodies.register_table),
        Procedure("system", "unregister_table", _TABLE, _of_table(connector.unregister_table)),
        Procedure(
            "system",
            "abort_transaction",
            (ProcedureArgument("transaction_id", BIGINT),),
            bodies.abort_transaction,
        ),
        Procedure("system", "remove_orphans", (), bodies.remove_orphans),
    )


def _of_table(call: Callable[[str, str], object]) -> Callable[..., None]:
    def body(session: ConnectorSession, schema_name: str, table_name: str) -> None:  # noqa: ARG001 - every procedure gets it
        _require(schema_name=schema_name, table_name=table_name)
        call(schema_name, table_name)

    return body


class _Procedures:
    def __init__(self, connector: HiveAcidConnector) -> None:
        self._connector = connector

    def compact(
        self,
        session: ConnectorSession,
        schema_name: str,
        table_name: str,
        type: str,  # noqa: A002
    ) -> None:
        _require(schema_name=schema_name, table_name=table_name, type=type)
        if type.lower() not in {"major", "minor"}:
            raise ConnectorError(
                f"Invalid compaction type: {type}",
                code=_INVALID,
                hint="It is 'major', which makes bases, or 'minor', which joins deltas.",
            )
        self._connector.compact(schema_name, table_name, major=type.lower() == "major")

    def register_table(
        self,
        session: ConnectorSession,
        schema_name: str,
        table_name: str,
        table_location: str,
        columns: list[str],
        **more: Any,
    ) -> None:
        _require(
            schema_name=schema_name,
            table_name=table_name,
            table_location=table_location,
            columns=columns,
        )
        self._connector.register_table(
            schema_name,
            table_name,
            table_location,
            columns=[_column(text) for text in columns],
            partitioned_by=more["partitioned_by"] or (),
            bucketed_by=more["bucketed_by"] or (),
            bucket_count=more["bucket_count"],
            bucketing_version=more["bucketing_version"] or 1,
        )

    def abort_transaction(self, session: ConnectorSession, transaction_id: int) -> None:
        _require(transaction_id=transaction_id)
        if transaction_id not in {
            transaction.number for transaction in self._connector.open_transactions()
        }:
            raise ConnectorError(
                f"No such open transaction: {transaction_id}",
                code=_INVALID,
                hint="connector.open_transactions() lists them.",
            )
        self._connector.abort_transaction(transaction_id)

    def remove_orphans(self, session: ConnectorSession) -> None:
        self._connector.remove_orphans()


def _optional(name: str, sql_type: Type, default: Any = None) -> ProcedureArgument:
    return ProcedureArgument(name, sql_type, required=False, default=default)


def _require(**values: Any) -> None:
    for name, value in values.items():
        if value is None:
            raise ConnectorError(f"{name} cannot be null", code=_INVALID, hint="Give a value.")


def _column(text: str | None) -> tuple[str, Type]:
    """Parse a column's name and type.

    >>> name, column_type = _column("price decimal(12,2)")
    >>> name, str(column_type)
    ('price', 'decimal(12,2)')
    """
    name, _, type_text = (text or "").strip().partition(" ")
    try:
        return name, parse_type(type_text)
    except ValueError as error:
        raise ConnectorError(
            f"'{text}' is not a column: {error}",
            code=_INVALID,
            hint="Write name and type: ARRAY['id bigint', 'name varchar'].",
        ) from None
