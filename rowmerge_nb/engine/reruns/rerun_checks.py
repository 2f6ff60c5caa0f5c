"""What is checked before statements run again elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowmerge_nb.base.errors import RowMergeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rowmerge_nb.engine.catalog.engine_catalogs import TableName
    from rowmerge_nb.engine.reruns.running_engine import RunningEngine
    from rowmerge_nb.spi.metadata import ConnectorTableMetadata
    from rowmerge_nb.trace.target_record import TargetRecord


def refuse_options(what: str, names: Iterable[str], options: Mapping[str, Any]) -> None:
    for name in names:
        if options.get(name):
            raise RowMergeError.invalid(
                f"{what} and the option {name} cannot be combined",
                hint=f"Omit {name}.",
            )


def existing_table(engine: RunningEngine, name: TableName) -> ConnectorTableMetadata:
    metadata = engine.table_metadata(*name)
    if metadata is None:
        raise RowMergeError(
            f"Table '{'.'.join(name)}' does not exist",
            code="TABLE_NOT_FOUND",
            hint="SHOW TABLES lists the tables.",
        )
    return metadata


def refuse_branch(
    target: TargetRecord, what: str = "This", use: str = "runs on a copy of the table"
) -> None:
    if target.branch:
        raise RowMergeError.unsupported(
            f"{what} {use}, and '{target.branch}' is a branch of {'.'.join(target.name_parts)}",
            hint="Rehearse the statement, which runs on the branch itself: rehearse=True.",
        )
