"""Running a statement in several catalogs or stores, on a copy of its target in each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.base.errors import ConnectorError, RowMergeError, StatementInterrupted
from rowmerge_nb.base.names import did_you_mean, quoted_path
from rowmerge_nb.engine.api.result import Result
from rowmerge_nb.engine.observers.fragment_samples import FragmentKeeper
from rowmerge_nb.engine.reruns.rerun import with_copy
from rowmerge_nb.engine.reruns.rerun_checks import existing_table, refuse_branch, refuse_options
from rowmerge_nb.engine.reruns.scratch_copies import ScratchCopies, ScratchCopy
from rowmerge_nb.engine.reruns.temporary_stores import (
    STORE_KINDS,
    OpenStore,
    TemporaryStores,
    checked_stores,
)
from rowmerge_nb.engine.spark.interrupts import guarded, interruptible
from rowmerge_nb.trace.error_record import error_record
from rowmerge_nb.trace.file_costs import FileCosts, count_of
from rowmerge_nb.trace.store_comparison import StoreComparison, StoreSide
from rowmerge_nb.trace.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.engine.catalog.engine_catalogs import TableName
    from rowmerge_nb.engine.reruns.running_engine import RunningEngine
    from rowmerge_nb.spi.connector import Connector
    from rowmerge_nb.spi.handles import ReadFile

CATALOGS: Final = "catalogs"
STORES: Final = "stores"
"""The names of the comparisons."""
REFUSED: Final = ("dry_run", "fault", "record", "rehearse", "verify", "why")
"""Options that these comparisons do not have."""
_EXAMPLE: Final = "Name at least two catalogs: catalogs=['memory', 'ice']."


def compare_catalogs(
    engine: RunningEngine,
    connectors: Mapping[str, Connector],
    sql: str,
    catalogs: object,
    options: Mapping[str, Any],
) -> StoreComparison:
    names = checked_catalogs(catalogs, connectors)
    refuse_options(f"A comparison of {CATALOGS}", REFUSED, options)
    venues = [Venue(name, name) for name in names]
    # Each statement of the comparison has a guard of its own.
    return guarded(partial(_compared, engine, connectors, sql, venues, options, CATALOGS))


def compare_stores(
    engine: RunningEngine,
    connectors: Mapping[str, Connector],
    sql: str,
    stores: object,
    options: Mapping[str, Any],
) -> StoreComparison:
    names = checked_stores(stores, connectors)
    refuse_options(f"A comparison of {STORES}", REFUSED, options)
    if stores is None:
        names += tuple(name for name, one in connectors.items() if one.name == "trino")

    def run() -> StoreComparison:
        temporary = TemporaryStores([name for name in names if name in STORE_KINDS], connectors)
        try:
            venues = [
                Venue(
                    name,
                    temporary.stores[name].catalog if name in temporary.stores else name,
                    temporary.stores.get(name),
                    temporary.refusals.get(name),
                )
                for name in names
            ]
            twin = engine.with_copies(temporary.connectors, {})
            all_connectors = {**connectors, **temporary.connectors}
            return _compared(twin, all_connectors, sql, venues, options, STORES)
        finally:
            temporary.remove()

    return guarded(run)


@dataclass(frozen=True)
class Venue:
    """Where a statement runs.

    Args:
        refusal: why it cannot be opened.
    """

    name: str
    catalog: str
    store: OpenStore | None = None
    refusal: RowMergeError | None = None


def checked_catalogs(catalogs: object, connectors: Mapping[str, Connector]) -> tuple[str, ...]:
    if not isinstance(catalogs, list | tuple) or not all(
        isinstance(name, str) for name in catalogs
    ):
        _refuse(f"catalogs = {catalogs!r} is not a list of names", _EXAMPLE)
    names = tuple(name.strip().lower() for name in catalogs)
    for name in names:
        if name not in connectors:
            known_names = f"There are: {', '.join(connectors)}."
            raise ConnectorError(
                f"Catalog '{name}' does not exist",
                code="CATALOG_NOT_FOUND",
                hint=did_you_mean(name, connectors) or known_names,
            )
        if names.count(name) > 1:
            _refuse(f"Catalog '{name}' is named twice", "Name each catalog once.")
    if len(names) < 2:
        _refuse(
            "A comparison of catalogs needs at least two, got "
            + (repr(names[0]) if names else "none"),
            _EXAMPLE,
        )
    return names


def _refuse(message: str, hint: str) -> NoReturn:
    raise RowMergeError.invalid(message, hint=hint)


def _compared(
    engine: RunningEngine,
    connectors: Mapping[str, Connector],
    sql: str,
    venues: Sequence[Venue],
    options: Mapping[str, Any],
    by: str,
) -> StoreComparison:
    target, statement_kind = target_of(engine, sql, options)
    metadata = existing_table(engine, target)
    # All copies have the same rows, whatever others commit meanwhile.
    source, _ = with_copy(engine.apart({}), target)
    copies = ScratchCopies(engine.apart({}), connectors, target, metadata)
    sides = _Sides(engine, sql, target, options, statement_kind)
    problems: list[str] = []
    try:
        with interruptible("run"):
            if by == CATALOGS:
                # A catalog without a copy is an error before the statement runs.
                tables = [copies.create(venue.catalog) for venue in venues]
                for copy in tables:
                    copies.fill(copy, source)
                for venue, copy in zip(venues, tables, strict=True):
                    sides.run(venue, copy, connectors[venue.catalog])
            else:
                for venue in venues:
                    try:
                        if venue.refusal is not None:
                            raise venue.refusal
                        store = venue.store
                        properties = None if store is None else store.kind.properties
                        copy = copies.create(venue.catalog, properties)
                        copies.fill(copy, source)
                    except StatementInterrupted:
                        raise
                    except RowMergeError as error:
                        sides.refuse(venue, error)
                    else:
                        sides.run(venue, copy, connectors[venue.catalog])
    except StatementInterrupted as interrupt:
        problems += copies.remove()
        raise StatementInterrupted(
            f"The comparison was interrupted. {' '.join(problems)}"
            if problems
            else "The comparison was interrupted; its copies were removed",
            step=interrupt.step or "run",
        ) from interrupt
    except RowMergeError as error:
        problems += copies.remove()
        # What has changed is a copy.
        error.changed = False
        error.hint = " ".join(filter(None, [error.hint, *problems])) or None
        raise
    finally:
        problems += copies.remove()
    columns = [column.name for column in metadata.columns]
    return StoreComparison(by, sql, ".".join(target), columns, sides.sides, problems)


def target_of(engine: RunningEngine, sql: str, options: Mapping[str, Any]) -> tuple[TableName, str]:
    """Return the full name of a statement's target, and the first word of the statement."""
    from rowmerge_nb.sql.parser.statement_reader import parse
    from rowmerge_nb.sql.tree.statements import Delete, Merge, Update

    try:
        planned = engine.run(sql, **{**options, "dry_run": True}).trace
    except ConnectorError:
        # The store of the target may refuse the statement, in its own words.
        planned = None
    dialect = str(options.get("dialect") or engine.options.dialect)
    statement = None
    if planned is None or planned.state is StatementState.PLANNED:
        statement = parse(sql.rstrip().removesuffix(";"), dialect=dialect)
    if not isinstance(statement, Merge | Update | Delete):
        raise RowMergeError.unsupported(
            f"{planned.kind if planned is not None else 'This statement'} cannot be compared: it"
            " changes no rows of a table",
            hint="MERGE, UPDATE and DELETE can.",
        )
    statement_kind = type(statement).__name__.upper()
    if planned is not None:
        refuse_branch(planned.target)
    if planned is not None and len(planned.target.name_parts) == 3:
        catalog, schema, table = planned.target.name_parts
        return (catalog, schema, table), statement_kind
    return engine.full_name(".".join(part.value for part in statement.target.parts)), statement_kind


class _Sides:
    def __init__(
        self,
        engine: RunningEngine,
        sql: str,
        target: TableName,
        options: Mapping[str, Any],
        statement_kind: str,
    ) -> None:
        self._engine, self._sql, self._target = engine, sql, target
        self._options, self._statement_kind = options, statement_kind
        self.sides: list[StoreSide] = []

    def refuse(self, venue: Venue, error: RowMergeError) -> None:
        self.sides.append(StoreSide(venue.name, self._failed(error), connector=venue.catalog))

    def run(self, venue: Venue, copy: ScratchCopy, connector: Connector) -> None:
        keeper, store, table = FragmentKeeper(), venue.store, copy.name[2]
        loaded = {} if store is None else store.files(table)
        if store is not None:
            store.recorder.forget()
        read: Mapping[str, ReadFile] = {}
        rows, remarks = None, list(copy.remarks)
        try:
            result = self._engine.apart({self._target: copy.name}, keeper).run(
                self._sql, **{**self._options, "check": False}
            )
        except StatementInterrupted:
            raise
        except RowMergeError as error:
            result = error.result if isinstance(error.result, Result) else self._failed(error)
        else:
            # A rerun would need the copy.
            result.again = None
            read = {} if store is None else store.recorder.files
            try:
                rows = self._engine.apart({}).table(quoted_path(copy.name))
            except StatementInterrupted:
                raise
            except RowMergeError as error:
                remarks.append(f"The rows in {venue.name} cannot be read: {error.message}")
        self.sides.append(
            StoreSide(
                venue.name,
                result,
                rows,
                connector=connector.name,
                lasting_call="finish_merge" if connector.commits_in_finish else "commit",
                fragments=keeper.fragments,
                remarks=tuple(remarks),
                costs=None if store is None else costs_of(store, table, loaded, read),
            )
        )

    def _failed(self, error: RowMergeError) -> Result:
        trace = Trace(
            statement=self._sql,
            kind=self._statement_kind,
            state=StatementState.FAILED,
            error=error_record(error, ()),
        )
        return Result(trace)


def costs_of(
    store: OpenStore, table: str, before: Mapping[str, ReadFile], read: Mapping[str, ReadFile]
) -> FileCosts:
    """Return the files that a statement has read and written, and those that it leaves."""
    after = store.files(table)
    if not store.kind.has_files:
        full_read = count_of(after.values()) if after else None
        return FileCosts(loaded=count_of(before.values()) if before else None, full_read=full_read)
    return FileCosts(
        loaded=count_of(before.values()),
        read=count_of(file for path, file in read.items() if path in before),
        # A commit adds files, and none of them is removed by the same commit.
        written=count_of(file for path, file in after.items() if path not in before),
        to_merge=count_of(file for file in after.values() if file.deletes),
        full_read=count_of(after.values()),
    )
