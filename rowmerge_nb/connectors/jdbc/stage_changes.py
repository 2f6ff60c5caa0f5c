"""Applies a stage to its table by a few set-based statements, in the caller's transaction.

Deletes come first, then updates, then inserts, so that a freed key can be used again. A statement
that touches fewer rows than were staged for it fails: another session changed or removed one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import ConnectorError, ExecutionError
from rowmerge_nb.base.names import quoted
from rowmerge_nb.base.words import plural
from rowmerge_nb.connectors.jdbc.database import DatabaseSession, Store
from rowmerge_nb.spi import ConnectorOutputMetadata, Operation, Written

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rowmerge_nb.connectors.jdbc.jdbc_handles import JdbcColumn, JdbcTableHandle

NO_CASE: Final = -1
SAVEPOINT: Final = "rowmerge_nb_updates"
LOOKED_AT: Final = 10_000
"""The limit of updated rows up to which reports show each, and values that cannot be shown are
named.
"""
NAMED: Final = 5
"""The limit of triggers named in a notice."""


@dataclass(frozen=True)
class StagedChanges:
    """The changes of one statement.

    Args:
        stage: the stage's name in SQL; all its rows are valid.
    """

    store: Store
    session: DatabaseSession
    handle: JdbcTableHandle
    stage: str
    updated: Mapping[int, tuple[str, ...]] | None = None
    step: str = "finish_merge"
    filled_columns: tuple[str, ...] | None = None
    whole_rows: bool = True

    def apply(self) -> ConnectorOutputMetadata:
        outputs: list[Written] = []
        notices: list[str] = []
        count_rows = self.session.query(
            f"SELECT o, n, count(*) AS rows FROM {self.stage} GROUP BY o, n ORDER BY o, n"
        )
        counts = {
            (row["o"], NO_CASE if row["n"] is None else row["n"]): row["rows"] for row in count_rows
        }
        by_operation: dict[int, dict[int, int]] = {operation: {} for operation in Operation}
        for (operation, case), rows in counts.items():
            by_operation[operation][case] = rows
        updates = by_operation[Operation.UPDATE]
        deletes, inserts = (
            sum(by_operation[operation].values())
            for operation in (Operation.DELETE, Operation.INSERT)
        )
        if deletes:
            condition = self.store.staged_rows(self.handle, self.stage, Operation.DELETE)
            outputs.append(
                self._change(
                    f"DELETE FROM {self._target} AS t {condition}",
                    deletes,
                    Operation.DELETE,
                    "deleted",
                )
            )
        if updates:
            if sum(updates.values()) <= LOOKED_AT:
                notices += self._odd_values(updates)
            outputs += self._update(updates)
        if inserts:
            self._refuse_computed(
                [c for c in self.handle.columns if c.generated and self._is_given(c)]
            )
            self.store.fill(self.session, self.handle, self.stage, Operation.INSERT)
            outputs.append(
                self._change(self._insert(Operation.INSERT), inserts, Operation.INSERT, "inserted")
            )
        return ConnectorOutputMetadata(tuple(outputs), (*notices, *self._notices()))

    def _notices(self) -> tuple[str, ...]:
        names = self.store.triggers(self.session, self.handle)
        if not names:
            return ()
        name_list = ", ".join(f"'{name}'" for name in names[:NAMED])
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        subject = (
            f"{self.store.name} table '{self.handle.name}' has"
            f" {plural(len(names), 'trigger or rule', 'triggers or rules')}"
        )
        limitation = (
            "This report shows what was written, not what the database makes of these"
            " or other rows."
        )
        return (
            (
                f"{subject}: {name_list}{more}. {limitation} check=True, or --check, reads the rows"
                " back."
            ),
        )

    def _odd_values(self, updates: Mapping[int, int]) -> tuple[str, ...]:
        names = list(dict.fromkeys(column.name for column in self._odd_columns(updates)))
        if not names:
            return ()
        name_list = ", ".join(f"'{name}'" for name in names[:NAMED]) + (
            " and others" if len(names) > NAMED else ""
        )
        rows = f"Updated rows of {self.store.name} table '{self.handle.name}'"
        columns = "column" if len(names) == 1 else "columns"
        explanation = (
            "that the declared type does not have. They stay as they are. Reports show NULL in"
            " their place."
        )
        return (f"{rows} hold values in {columns} {name_list} {explanation}",)

    def _odd_columns(self, updates: Mapping[int, int]) -> Iterator[JdbcColumn]:
        if not self.whole_rows:
            return
        for case in updates:
            unchanged_columns = [
                c for c in self.handle.columns if c.name not in self._written(case) and not c.added
            ]
            rows = f"s.o = {int(Operation.UPDATE)}" + (
                f" AND s.n = {case}" if case != NO_CASE else ""
            )
            for column in self._with_nulls(unchanged_columns, rows):
                has_misfit = (
                    f"{rows} AND {self._staged(column)} IS NULL AND t.{quoted(column.name)} IS NOT"
                    " NULL"
                )
                if self._any(
                    f"{self.stage} AS s, {self._target} AS t", f"{has_misfit} AND {self._same_row}"
                ):
                    yield column

    def _with_nulls(self, columns: Sequence[JdbcColumn], rows: str) -> list[JdbcColumn]:
        if not columns:
            return []
        nulls = (
            f"max(CASE WHEN {self._staged(c)} IS NULL THEN 1 ELSE 0 END) AS n{i}"
            for i, c in enumerate(columns)
        )
        (row,) = self.session.query(
            f"SELECT {', '.join(nulls)} FROM {self.stage} AS s WHERE {rows}"
        )
        return [column for column, value in zip(columns, row.values(), strict=True) if value]

    @property
    def _target(self) -> str:
        return self.store.table(self.handle)

    def _change(self, sql: str, expected: int, operation: Operation, verb: str) -> Written:
        touched = self.store.changed(self.session, sql, f"Writing to table '{self.handle.name}'")
        if touched == expected:
            return Written(f"{sql.split(maxsplit=1)[0]} statement", sql, touched)
        subject = (
            f"{expected - touched} of {expected} rows of {self.store.name} table"
            f" '{self.handle.name}' that should have been {verb}"
        )
        if (
            operation == Operation.INSERT
            or self.store.keeps_others_out
            or self._are_there(operation)
        ):
            raise ConnectorError(
                f"{subject} were skipped by the database itself, because of a trigger, a rule, a"
                " policy or a foreign key of the table",
                code="JDBC_ERROR",
                hint=(
                    "Change the statement, or the trigger, rule, policy or foreign"
                    " key. The table is unchanged."
                ),
            )
        raise ExecutionError(
            f"{subject} have been changed or removed by another session since they were read",
            code="TRANSACTION_CONFLICT",
            step=self.step,
            hint="Run the statement again.",
        )

    def _are_there(self, operation: Operation) -> bool:
        return self._any(
            f"{self.stage} AS s, {self._target} AS t",
            f"s.o = {int(operation)} AND {self._same_row}",
        )

    @property
    def _same_row(self) -> str:
        return " AND ".join(self.store.row_id_conditions(self.handle))

    # -- updates

    def _update(self, updates: Mapping[int, int]) -> list[Written]:
        """Update in place, or reinsert the rows if unique values move between them.

        A database checks a unique key row by row, so exchanging two keys fails in place.
        """
        if self.updated is None:
            self._refuse_computed(
                [
                    c
                    for c in self.handle.columns
                    if (c.generated or c.always) and self._is_changed(c)
                ]
            )
        self.session.execute(f"SAVEPOINT {SAVEPOINT}")
        try:
            outputs = [
                self._change(self._update_in_place(case), rows, Operation.UPDATE, "updated")
                for case, rows in updates.items()
            ]
        except ExecutionError as error:
            if error.code != "CONSTRAINT_VIOLATION" or not self.store.is_repeated_key(error):
                raise
            if not self.whole_rows:
                error.hint = (
                    "If unique values pass from row to row, omit the option flow:"
                    " MERGE's machinery can move them."
                )
                raise
            self.session.execute(f"ROLLBACK TO SAVEPOINT {SAVEPOINT}")
            outputs = self._reinsert(updates, error)
        self.session.execute(f"RELEASE SAVEPOINT {SAVEPOINT}")
        return outputs

    def _update_in_place(self, case: int) -> str:
        column_names = self._written(case)
        values = ", ".join(
            f"{quoted(column.name)} = s.c{index}{column.cast}"
            for index, column in enumerate(self.handle.columns)
            if column.name in column_names
        )
        equals = self.store.equals
        own = [
            f"s.o {equals} {int(Operation.UPDATE)}",
            *([f"s.n {equals} {case}"] if case != NO_CASE else []),
        ]
        conditions = [*self.store.row_id_conditions(self.handle), *own]
        return (
            f"UPDATE {self.handle.refusing}{self._target} AS t SET {values} FROM {self.stage} AS s"
            f" WHERE {' AND '.join(conditions)}"
        )

    def _written(self, case: int) -> set[str]:
        if self.updated is not None and case in self.updated:
            return set(self.updated[case])
        return {
            column.name
            for column in self.handle.columns
            if not column.generated and not column.always
        }

    def _reinsert(self, updates: Mapping[int, int], error: ExecutionError) -> list[Written]:
        rows = sum(updates.values())
        obstacle = (
            f"Unique values of {self.store.name} table '{self.handle.name}' pass from"
            " row to row, which requires deleting and inserting its rows again;"
        )
        misfit_column = next(self._odd_columns(updates), None)
        if misfit_column is not None:
            raise ConnectorError(
                f"{obstacle} column '{misfit_column.name}' holds a value in one of"
                " them that its type does not allow",
                hint="Correct the value, or move the values in two statements.",
            ) from error
        for follower in self.store.followers(self.session, self.handle):
            if follower.column is None or any(
                self._is_changed(c) for c in self.handle.columns if c.name == follower.column
            ):
                raise ConnectorError(
                    f"{obstacle} {follower.what}", hint="Move the values in two statements."
                ) from error
        self.store.fill(self.session, self.handle, self.stage, Operation.UPDATE)
        statements = self.store.reinserting(
            self.handle, self.stage, self._insert(Operation.UPDATE), rows
        )
        return [
            self._change(sql, rows, Operation.UPDATE, "updated" if number else "taken out")
            for number, sql in enumerate(statements)
        ]

    # -- inserts

    def _insert(self, operation: Operation) -> str:
        columns = [
            (index, column)
            for index, column in enumerate(self.handle.columns)
            if not column.generated
            and (self.filled_columns is None or column.name in self.filled_columns)
        ]
        names = ", ".join(quoted(column.name) for _, column in columns)
        values = ", ".join(
            self.store.inserted(column, f"s.c{index}{column.cast}") for index, column in columns
        )
        special = " OVERRIDING SYSTEM VALUE" if any(column.always for _, column in columns) else ""
        return (
            f"INSERT {self.handle.refusing}INTO {self._target} ({names}){special} SELECT {values}"
            f" FROM {self.stage} AS s WHERE s.o {self.store.equals} {int(operation)}"
        )

    def _refuse_computed(self, assigned: Sequence[JdbcColumn]) -> None:
        if assigned:
            raise computed_error(self.store, self.handle, assigned[0])

    def _is_given(self, column: JdbcColumn) -> bool:
        return self._any(f"{self.stage} AS s", f"s.o = 1 AND {self._staged(column)} IS NOT NULL")

    def _is_changed(self, column: JdbcColumn) -> bool:
        differs = f"s.o = 3 AND {self._staged(column)} IS DISTINCT FROM t.{quoted(column.name)}"
        return self._any(
            f"{self.stage} AS s, {self._target} AS t", f"{differs} AND {self._same_row}"
        )

    def _staged(self, column: JdbcColumn) -> str:
        return f"s.c{self.handle.columns.index(column)}{column.cast}"

    def _any(self, source: str, condition: str) -> bool:
        return bool(self.session.value(f"SELECT count(*) AS n FROM {source} WHERE {condition}"))


def computed_error(store: Store, handle: JdbcTableHandle, column: JdbcColumn) -> ConnectorError:
    return ConnectorError(
        f"Column '{column.name}' of {store.name} table '{handle.name}' is computed by the database"
        " and cannot be assigned",
        hint="Remove it.",
    )
