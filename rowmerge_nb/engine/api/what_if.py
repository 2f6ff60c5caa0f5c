"""The rows of a statement under another paradigm, era or rule for repeated matches, derived from
its trace alone.

The joined rows and the clauses that took them are the same under all of them. What follows is
repeated by the code of the tasks: the check for repeated matches, the processors, the positions of
the exchange. Neither Spark nor a connector is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate, pairwise, product
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.choices import CHOSEN_RULES, Flow, RepeatedMatches, StatementState
from rowmerge_nb.base.errors import DuplicateMatchError, error_text
from rowmerge_nb.base.ordering import ascending
from rowmerge_nb.engine.spark.errors.repeated import MESSAGE, group_of, named_group
from rowmerge_nb.engine.tasks.arrow import conform
from rowmerge_nb.engine.tasks.duplicates import NO_CLAUSE, DuplicateRule, mark_distinct
from rowmerge_nb.engine.tasks.exchange import Destination, Placing, hashed
from rowmerge_nb.engine.tasks.processors import create_processor
from rowmerge_nb.spi.layout import BucketFunction
from rowmerge_nb.spi.operations import Era, Operation, RowChangeParadigm
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.trace.check_records import Checks
from rowmerge_nb.trace.contract_calls import WriterRecord
from rowmerge_nb.trace.error_record import ErrorRecord, StateEvidence
from rowmerge_nb.trace.node_records import ExchangeFacts
from rowmerge_nb.trace.page_samples import PageSample, Placement, StoredSample
from rowmerge_nb.trace.what_if_answers import Variants

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from rowmerge_nb.spi.page import Page, PageLayout
    from rowmerge_nb.trace.join_record import DuplicateGroup
    from rowmerge_nb.trace.trace import Trace

MOST_ROWS: Final = 1_000
"""Of statements with more joined rows nothing is derived."""
_OPTIONS: Final = ("paradigm", "era", "duplicates")
_PARADIGMS: Final = tuple(RowChangeParadigm.__members__)
_ERAS: Final = tuple(map(str, Era))
_RULES: Final = tuple(map(str, CHOSEN_RULES))
_UNKNOWN: Final = -1


def variants_of(trace: Trace) -> Variants:
    """Return what the rows of a trace would have become under other options."""
    pages = trace.samples.pages
    why = _obstacle(trace)
    if why or pages is None:
        return Variants(why=why)
    try:
        return _variants(trace, pages)
    except Exception as error:  # noqa: BLE001 - a saved trace may hold rows that no run has made, and its explorer is shown all the same
        return Variants(
            why=f"Other options could not be derived from its rows: {error_text(error)}."
        )


def under_other_paradigm(trace: Trace) -> Trace | None:
    pages = trace.samples.pages
    if (
        _obstacle(trace)
        or pages is None
        or not pages.transformed
        or trace.settings.paradigm not in _PARADIGMS
    ):
        return None
    other = next(name for name in _PARADIGMS if name != trace.settings.paradigm)
    try:
        if not _same(
            _ruled(
                _made(trace, pages, trace.settings.paradigm, str(trace.settings.era)),
                str(trace.settings.duplicates),
            ),
            trace,
        ):
            return None
        variant = _ruled(
            _made(trace, pages, other, str(trace.settings.era)), str(trace.settings.duplicates)
        )
    except Exception:  # noqa: BLE001 - a report is shown all the same
        return None
    return variant if variant.state == StatementState.FINISHED else None


def _variants(trace: Trace, pages: PageSample) -> Variants:
    own = (trace.settings.paradigm, str(trace.settings.era), str(trace.settings.duplicates))
    own_variant = _made(trace, pages, *own[:2])
    if not _same(_ruled(own_variant, own[2]), trace):
        return Variants(
            why=(
                "What this version derives from the joined rows differs from what the"
                " run recorded, so only the run is shown."
            )
        )
    choices, why = _choices(trace, pages)
    ways: dict[tuple[str, ...], Trace] = {own[:2]: own_variant}
    traces = {}
    for options in product(
        *(choices.get(name, (value,)) for name, value in zip(_OPTIONS, own, strict=True))
    ):
        if options != own:
            way = options[:2]
            if way not in ways:
                ways[way] = _made(trace, pages, *way)
            key = tuple(
                value for name, value in zip(_OPTIONS, options, strict=True) if name in choices
            )
            traces[key] = _ruled(ways[way], options[2])
    return Variants(choices, traces, why)


def _obstacle(trace: Trace) -> str:
    pages = trace.samples.pages
    if trace.state != StatementState.FINISHED:
        if trace.error is not None and trace.error.code == DuplicateMatchError.default_code:
            return (
                "Its joined rows are not in the trace, since a task that finds"
                " repeated matches returns no page. Only a run can show the result under"
                " another rule."
            )
        return "It failed, so its trace lacks rows from which other options could be derived."
    if (
        trace.settings.flow == Flow.UPDATABLE
        or pages is None
        or pages.witness is None
        or not (pages.complete and pages.tasks)
    ):
        return (
            "Its trace lacks rows from which other options would be derived;"
            " trace='full' keeps them."
        )
    if pages.before.num_rows > MOST_ROWS:
        return f"It has more than {MOST_ROWS:,} rows; other options are not derived for that many."
    return ""


def _choices(trace: Trace, pages: PageSample) -> tuple[dict[str, tuple[str, ...]], str]:
    choices: dict[str, tuple[str, ...]] = {}
    why = ""
    if pages.transformed and trace.kind != "DELETE":
        choices["paradigm"] = _PARADIGMS
    if pages.transformed and trace.settings.era != Era.CURRENT and not _has_old_rows(pages):
        why = (
            "The era stays as it was: a DELETE of today's Trino carries the whole old row, and the"
            " trace has not all of its columns."
        )
    else:
        choices["era"] = _ERAS
    if trace.kind == "MERGE":
        choices["duplicates"] = _RULES
    return choices, why


def _has_old_rows(pages: PageSample) -> bool:
    operations = pages.before.column(pages.layout.before.merge_row).flatten()[
        pages.layout.merge_row.operation
    ]
    return (
        _has_whole_targets(pages) or not pc.any(pc.equal(operations, int(Operation.DELETE))).as_py()
    )


def _same(derived: Trace, trace: Trace) -> bool:
    ours, theirs = derived.samples.pages, trace.samples.pages
    assert ours is not None
    assert theirs is not None
    writers = zip(ours.writers, theirs.writers, strict=False)
    return (
        derived.state == trace.state
        and derived.count == trace.count
        and (ours.layout, ours.produced) == (theirs.layout, theirs.produced)
        and _texts(ours.before.columns) == _texts(theirs.before.columns)
        and _texts(ours.after.columns) == _texts(theirs.after.columns)
        and all(_UNKNOWN in pair or pair[0] == pair[1] for pair in writers)
    )


def _made(trace: Trace, pages: PageSample, paradigm: str, era: str) -> Trace:
    layout = replace(pages.layout, era=Era(era))
    columns = _columns(pages)
    before = (
        _before(trace, pages, layout, columns)
        if pages.transformed
        else _handed_on(pages, layout, columns)
    )
    if pages.transformed:
        processor = create_processor(RowChangeParadigm[paradigm], layout, columns)
        after = processor.transform_page(before)
        produced = tuple(processor.rows_produced(before).tolist())
    else:
        after, produced = before, pages.produced
    sample = replace(
        pages,
        before=before,
        after=after,
        produced=produced,
        writers=(),
        total_after=after.num_rows,
        layout=layout,
    )
    sample = _placed(trace, pages, sample)
    writers, stored_pages = _stored(sample)
    from_updates = pc.sum(after.column(layout.after.insert_from_update)).as_py() or 0
    return replace(
        trace,
        count=after.num_rows - from_updates,
        target=replace(trace.target, output=None),
        settings=replace(trace.settings, paradigm=paradigm, era=era),
        writers=writers,
        calls=(),
        samples=replace(trace.samples, pages=sample, stored_pages=stored_pages),
        checks=Checks(),
    )


def _columns(pages: PageSample) -> pa.Schema:
    channels = pages.layout.after
    return pa.schema(
        [pages.after.schema.field(index) for index in (*channels.columns, channels.row_id)]
    )


# -- the page before


def _before(trace: Trace, pages: PageSample, layout: PageLayout, columns: pa.Schema) -> Page:
    was, page, rows = pages.layout.before, pages.before, pages.before.num_rows
    location = [page.column(channel) for channel in was.write_redistribution_columns]
    cases = pc.fill_null(page.column(was.case_number), NO_CLAUSE)
    current = layout.era is Era.CURRENT
    arrays = [
        *location,
        *([hashed(location, rows)] if layout.before.hash is not None else []),
        page.column(was.row_id),
        _merge_row(pages, layout, location, cases),
        (
            pc.if_else(pc.equal(cases, NO_CLAUSE), pa.scalar(None, pa.int32()), cases)
            if current
            else cases
        ),
        (
            _distinct(pages, cases, layout.era)
            if trace.kind == "MERGE"
            else pa.array(np.ones(rows, np.int8))
        ),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=layout.input_schema(columns))


def _merge_row(
    pages: PageSample, layout: PageLayout, location: Sequence[pa.Array], cases: pa.Array
) -> pa.StructArray:
    """Return the merge rows in an era: deleted rows and rows without a clause differ."""
    row = pages.before.column(pages.layout.before.merge_row)
    if layout.era is pages.layout.era:
        return row
    fields, channels = row.flatten(), layout.merge_row
    idle = pc.equal(cases, NO_CLAUSE)
    deleted = pc.fill_null(pc.equal(fields[channels.operation], int(Operation.DELETE)), False)
    if layout.era is Era.CURRENT:
        old = (
            pages.witness.column("target").flatten()
            if pages.witness is not None and _has_whole_targets(pages)
            else fields
        )
        columns = [
            _chosen(deleted, conform(old[i], fields[i].type), fields[i]) for i in channels.columns
        ]
        return pa.StructArray.from_arrays(
            [*columns, *fields[channels.present :]], fields=list(row.type), mask=idle
        )
    placing_columns = dict(zip(layout.redistribution_columns, location, strict=True))
    columns = [
        (
            _chosen(idle, placing_columns[i], fields[i])
            if i in placing_columns
            else _chosen(pc.or_(idle, deleted), pa.nulls(len(row), fields[i].type), fields[i])
        )
        for i in channels.columns
    ]
    is_matched = pages.row_ids.is_valid()
    control = [
        pc.if_else(idle, is_matched, fields[channels.present]),
        pc.if_else(idle, pa.scalar(int(Operation.NONE), pa.int8()), fields[channels.operation]),
        cases,
    ]
    return pa.StructArray.from_arrays([*columns, *control], fields=list(row.type))


def _has_whole_targets(pages: PageSample) -> bool:
    names = pages.witness.schema.names if pages.witness is not None else ()
    if pages.witness is None or "target" not in names:
        return False
    fields: int = pages.witness.schema.field("target").type.num_fields
    return fields == pages.layout.column_count


def _chosen(mask: pa.Array, true: pa.Array, false: pa.Array) -> pa.Array:
    rows = np.arange(len(mask))
    at = np.where(mask.to_numpy(zero_copy_only=False), rows, rows + len(mask))
    return pa.concat_arrays([true, false]).take(pa.array(at))


def _distinct(pages: PageSample, cases: pa.Array, era: Era) -> pa.Array:
    """Mark the rows task by task: each task marks its own first row without a target row."""
    ids = _unique_ids(pages)
    parts = [
        mark_distinct(ids.slice(start, end - start), cases.slice(start, end - start), era)
        for start, end in pairwise(accumulate(pages.tasks, initial=0))
    ]
    return pa.concat_arrays(parts)


def _unique_ids(pages: PageSample) -> pa.Array:
    """Number the target rows; NULL for rows without one.

    Row ids identify them together with the values that place the rows.
    """
    location = [
        pages.before.column(channel) for channel in pages.layout.before.write_redistribution_columns
    ]
    is_matched = pages.row_ids.is_valid().to_numpy(zero_copy_only=False)
    _, numbers = np.unique(
        np.array(_texts([pages.row_ids, *location]), dtype=object), return_inverse=True
    )
    return pa.array(numbers.astype(np.int64), mask=~is_matched)


def _handed_on(pages: PageSample, layout: PageLayout, columns: pa.Schema) -> Page:
    was, page = pages.layout.after, pages.after
    rows = page.num_rows
    arrays = [
        *(page.column(channel) for channel in was.columns),
        page.column(was.operation),
        *([pa.array(np.zeros(rows, np.int32))] if layout.after.case_number is not None else []),
        page.column(was.row_id),
        page.column(was.insert_from_update),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=layout.output_schema(columns))


# -- repeated matches


def _ruled(variant: Trace, rule: str) -> Trace:
    settings = replace(variant.settings, duplicates=RepeatedMatches(rule))
    trace = replace(variant, settings=settings)
    groups = _failing(trace) if trace.kind == "MERGE" else ()
    return _failed(trace, groups) if groups else trace


def _failing(trace: Trace) -> tuple[DuplicateGroup, ...]:
    pages = trace.samples.pages
    assert pages is not None
    assert pages.witness is not None
    idle = tuple(
        clause.number
        for clause in trace.clauses
        if clause.number >= 0 and clause.operation is Operation.NONE
    )
    cases = pc.fill_null(pages.before.column(pages.layout.before.case_number), NO_CLAUSE)
    ids = _unique_ids(pages)
    failing = (
        DuplicateRule(trace.settings.duplicates, RowChangeParadigm[trace.settings.paradigm], idle)
        .check(ids, cases)
        .failing
    )
    if not failing.size:
        return ()
    witness = pa.chunked_array([pages.witness.to_struct_array()])
    rows = pa.table(
        {"unique_id": ids, "case_number": cases, "row_id": pages.row_ids, "witness": witness}
    )
    names = [field.name for field in pages.witness.schema.field("target").type]
    groups = [
        group_of(rows.filter(pc.equal(rows["unique_id"], number)), names)
        for number in failing.tolist()
    ]
    # The first to be named is the one that the source comes upon first.
    return tuple(sorted(groups, key=lambda group: group.sources[0].source_row or 0))


def _failed(trace: Trace, groups: tuple[DuplicateGroup, ...]) -> Trace:
    pages = trace.samples.pages
    assert pages is not None
    numbers = {source.case_number for source in groups[0].sources}
    line = max(
        (
            clause.line
            for clause in trace.clauses
            if clause.number >= 0 and clause.number in numbers
        ),
        default=None,
    )
    hint = named_group(groups[0], len(groups), trace.settings.duplicates)
    empty = pa.RecordBatch.from_pylist([], schema=pages.layout.output_schema(_columns(pages)))
    checked = replace(
        pages,
        after=empty,
        produced=(0,) * pages.before.num_rows,
        writers=(),
        total_after=0,
        placement=None,
    )
    return replace(
        trace,
        state=StatementState.FAILED,
        error=ErrorRecord(
            DuplicateMatchError.default_code,
            MESSAGE,
            line,
            None,
            0,
            hint,
            "DuplicateCheck",
            evidence=StateEvidence.NO_SINK,
        ),
        count=None,
        committed=False,
        notices=(),
        target=replace(trace.target, rows_after=trace.target.rows_before, version_after=None),
        join=replace(trace.join, duplicate_groups=groups),
        writers=(),
        samples=replace(trace.samples, pages=checked, stored_pages=()),
    )


# -- the exchange


@dataclass(frozen=True)
class _SeenPlaces(BucketFunction):
    """Replaces a connector's function: it knows the writers that the run has shown, and no others."""

    writers: dict[str, int]

    @property
    def bucket_count(self) -> int:
        return 0

    def get_buckets(self, page: Page) -> pa.Array:
        return pa.array([self.writers.get(text) for text in _texts(page.columns)], pa.int32())


def _placed(trace: Trace, run: PageSample, variant: PageSample) -> PageSample:
    """Return the sample with the writer of each row, -1 if the run does not determine it, and the
    number that chose the writer.
    """
    exchange = next(
        (node.facts for node in trace.plan if isinstance(node.facts, ExchangeFacts)), None
    )
    if exchange is None:
        return replace(variant, writers=_writers_of_tasks(run, variant))
    if run.placement is None:
        return replace(variant, writers=(_UNKNOWN,) * variant.after.num_rows)
    page, layout = variant.after, variant.layout
    columns, row_id = layout.redistribution_columns, layout.after.row_id
    # Without an update layout all rows go by the insert layout, as the documents have it, or today
    # the inserted ones alone.
    alike = not exchange.update_rule and run.layout.era is Era.DOCUMENTS
    inserts = _destination(exchange.insert_rule, run, columns, _inserted(run) | alike, columns)
    if exchange.update_rule:
        updates = _destination(
            exchange.update_rule, run, (run.layout.after.row_id,), ~_inserted(run), (row_id,)
        )
    else:
        updates = inserts if layout.era is Era.DOCUMENTS else Destination(even=True)
    placing, count = Placing(inserts, updates), run.placement.writers
    buckets = placing.buckets(page, layout, 0)
    numbers = placing.numbers(page, layout, buckets).to_numpy()
    # What a function of the connector's decides is known of places that the run has shown.
    by_function = np.where(
        _inserted(variant), inserts.function is not None, updates.function is not None
    )
    unknown = by_function & buckets.is_null().to_numpy(zero_copy_only=False)
    writers: list[int] = np.where(unknown, _UNKNOWN, numbers % count).tolist()
    # The number that a function gives is not known, only the writer that it has led to.
    placement = None if by_function.any() else Placement(count, tuple(numbers.tolist()))
    return replace(variant, writers=tuple(writers), placement=placement)


def _destination(
    placed_by: str,
    run: PageSample,
    channels: tuple[int, ...],
    is_placed: npt.NDArray[np.bool_],
    arguments: tuple[int, ...],
) -> Destination:
    """Return the rule for the writers of rows, as far as it is known without the connector."""
    if placed_by != "function":
        return Destination(arguments=arguments, even=not placed_by)
    rows = zip(
        _texts([run.after.column(i) for i in channels]),
        is_placed.tolist(),
        run.writers,
        strict=True,
    )
    return Destination(
        _SeenPlaces({text: writer for text, here, writer in rows if here and writer != _UNKNOWN}),
        arguments,
    )


def _inserted(pages: PageSample) -> npt.NDArray[np.bool_]:
    operations = pages.after.column(pages.layout.after.operation).to_numpy(zero_copy_only=False)
    return np.isin(operations, (Operation.INSERT, Operation.UPDATE_INSERT))


def _writers_of_tasks(run: PageSample, variant: PageSample) -> tuple[int, ...]:
    """Return the writers without an exchange: the task that makes a row stores it."""
    starts = np.cumsum([0, *run.produced])[:-1]
    own_writers = [
        run.writers[start] if count else _UNKNOWN
        for start, count in zip(starts.tolist(), run.produced, strict=True)
    ]
    writers: list[int] = np.repeat(np.array(own_writers, np.int64), variant.produced).tolist()
    return tuple(writers)


def _stored(pages: PageSample) -> tuple[tuple[WriterRecord, ...], tuple[StoredSample, ...]]:
    numbers = np.array(pages.writers, np.int64)
    records, samples = [], []
    for writer in ascending(numbers[numbers != _UNKNOWN]).tolist():
        page = pages.after.take(pa.array(np.flatnonzero(numbers == writer)))
        counts = pc.value_counts(page.column(pages.layout.after.operation)).to_pylist()
        from_updates = pc.sum(page.column(pages.layout.after.insert_from_update)).as_py() or 0
        rows = {entry["values"]: entry["counts"] for entry in counts}
        records.append(WriterRecord(writer, rows, 0, 0, 0, page.num_rows - from_updates))
        samples.append(
            StoredSample(writer, pages.layout.stored_page(page), page.num_rows, pages.layout)
        )
    return tuple(records), tuple(samples)


def _texts(columns: Sequence[pa.Array]) -> list[str]:
    return [repr(row) for row in zip(*map(python_values, columns), strict=True)]
