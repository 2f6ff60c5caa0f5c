"""The advice of the lab: sentences, each with the numbers that it follows from."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.words import number, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rowmerge_nb.trace.lab import Lab, LabRun

MOST_SENTENCES: Final = 12
UNEVEN: Final = 1.5
"""From this ratio of the busiest writer to the mean on, writers are uneven."""


def advice_of(lab: Lab) -> tuple[str, ...]:
    sentences = [*_stores(lab), *_compactions(lab), *_partitionings(lab), *_skew(lab)]
    return tuple(sentences[:MOST_SENTENCES])


def break_even(cheaper_writer: LabRun, cheaper_reader: LabRun) -> float | None:
    """Return the number of full reads from which the run that writes more has moved fewer bytes; None
    if never, or if a number is unknown.
    """
    numbers = [
        *(cheaper_writer.bytes_written, cheaper_reader.bytes_written),
        *(cheaper_writer.full_read_bytes, cheaper_reader.full_read_bytes),
    ]
    if any(value is None for value in numbers):
        return None
    bytes_written, other_bytes_written, read, other_read = (value or 0 for value in numbers)
    more_written, less_read = other_bytes_written - bytes_written, read - other_read
    return more_written / less_read if less_read > 0 and more_written >= 0 else None


def pairs_of(runs: Sequence[LabRun]) -> Iterator[tuple[LabRun, LabRun]]:
    """Yield pairs of runs of different stores, the one that writes less first."""
    with_files = [run for run in runs if run.bytes_written is not None]
    for pair in itertools.combinations(with_files, 2):
        first, second = sorted(pair, key=lambda run: run.bytes_written or 0)
        if first.point.store != second.point.store:
            yield first, second


def _others(lab: Lab, *excluded: str) -> list[str]:
    return [name for name in lab.varied if name not in excluded]


def _where(names: Sequence[str], values: Sequence[Any]) -> str:
    parts = [
        f"{name} {value if value != '' else 'none'}"
        for name, value in zip(names, values, strict=True)
    ]
    return f" ({', '.join(parts)})" if parts else ""


def _stores(lab: Lab) -> Iterator[str]:
    names = _others(lab, "store", "share")
    for values, runs in lab.groups(*names).items():
        by_store: dict[str, dict[float, LabRun]] = {}
        for run in runs:
            if run.bytes_written is not None:
                by_store.setdefault(run.point.store, {})[run.point.share] = run
        for first, second in itertools.combinations(by_store, 2):
            shares = sorted(by_store[first].keys() & by_store[second].keys())
            if shares:
                pairs = [(by_store[first][share], by_store[second][share]) for share in shares]
                yield _pair_sentence(pairs, _where(names, values))


def _pair_sentence(pairs: Sequence[tuple[LabRun, LabRun]], where: str) -> str:
    moved = [(_moved(first), _moved(second)) for first, second in pairs]
    ahead = [second < first for first, second in moved]
    first, second = pairs[0]
    names = (first.point.store, second.point.store)
    statements = plural(first.point.statements, "statement")
    if len(set(ahead)) == 1:
        winner, loser = (1, 0) if ahead[0] else (0, 1)
        index = max(range(len(pairs)), key=lambda i: abs(moved[i][0] - moved[i][1]))
        begin = f"At all measured shares{where}"
    else:
        # The last change of the order decides the sentence.
        index = next(i for i in range(len(ahead) - 1, 0, -1) if ahead[i] != ahead[i - 1])
        winner, loser = (1, 0) if ahead[index] else (0, 1)
        begin = f"From {pairs[index][0].point.share * 100:g} % of changed rows on{where}"
    winning, losing = pairs[index][winner], pairs[index][loser]
    return (
        f"{begin}, {names[winner]} moves fewer bytes than {names[loser]} by {statements} and one full"
        f" read: at {winning.point.share * 100:g} %, it writes {number(winning.bytes_written or 0)}"
        f" and reads {number(winning.full_read_bytes or 0)}, against"
        f" {number(losing.bytes_written or 0)} and {number(losing.full_read_bytes or 0)}."
        f"{_reads_sentence(winning, losing)}"
    )


def _moved(run: LabRun) -> int:
    return (run.bytes_written or 0) + (run.full_read_bytes or 0)


def _reads_sentence(winning: LabRun, losing: LabRun) -> str:
    first, second = sorted((winning, losing), key=lambda run: run.bytes_written or 0)
    reads = break_even(first, second)
    if reads is None:
        return ""
    return (
        f" There, {second.point.store} has paid for its writes after {reads:.2g} full"
        f" {'read' if f'{reads:.2g}' == '1' else 'reads'}."
    )


def _compactions(lab: Lab) -> Iterator[str]:
    names = _others(lab, "compact_every")
    for values, runs in lab.groups(*names).items():
        by_interval = {run.point.compact_every: run for run in runs}
        plain = by_interval.pop(0, None)
        if plain is None or plain.bytes_written is None:
            continue
        for interval, run in by_interval.items():
            yield (
                f"With a compaction after every {plural(interval, 'statement')}"
                f"{_where(names, values)}, a full read after"
                f" {plural(run.point.statements, 'statement')} reads"
                f" {number(run.full_read_bytes or 0)} bytes instead of"
                f" {number(plain.full_read_bytes or 0)}, and {number(run.bytes_written or 0)} bytes"
                f" are written instead of {number(plain.bytes_written)}."
            )


def _partitionings(lab: Lab) -> Iterator[str]:
    if "partitioned_by" not in lab.varied:
        return
    names = _others(lab, "partitioned_by")
    for values, runs in lab.groups(*names).items():
        with_files = [run for run in runs if run.bytes_written is not None]
        if len(with_files) > 1:
            best, worst = (
                choose(with_files, key=lambda run: run.bytes_written or 0) for choose in (min, max)
            )
            yield (
                f"The statements write least{_where(names, values)} if the table is"
                f" {_partitioning(best)}: {number(best.bytes_written or 0)} bytes in"
                f" {plural(_files(best), 'file')}; most if it is {_partitioning(worst)}:"
                f" {number(worst.bytes_written or 0)} bytes in {plural(_files(worst), 'file')}."
            )


def _partitioning(run: LabRun) -> str:
    column = run.point.partitioned_by
    return f"partitioned by {column}" if column else "not partitioned"


def _files(run: LabRun) -> int:
    return sum(step.files_written or 0 for step in run.steps)


def _skew(lab: Lab) -> Iterator[str]:
    uneven = [run for run in lab.measured if (run.skew or 0) >= UNEVEN]
    if uneven:
        worst = max(uneven, key=lambda run: run.skew or 0)
        step = max(worst.steps, key=lambda s: s.busiest_writer_rows / (s.mean_writer_rows or 1))
        yield (
            f"Writers are most uneven for {worst.point}: the busiest of"
            f" {plural(step.writers, 'writer')} got {plural(step.busiest_writer_rows, 'row')}, the"
            f" mean is {step.mean_writer_rows:,.0f}."
        )
