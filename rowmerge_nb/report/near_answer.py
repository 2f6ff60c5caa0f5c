"""The result of ``result.near()``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.words import number, number_or_blank, plural
from rowmerge_nb.report.html import render_parts
from rowmerge_nb.report.sequence import ShownSequence
from rowmerge_nb.report.words.columns import columns_of
from rowmerge_nb.report.words.near_sentences import (
    counts_of,
    key_text,
    near_sentence,
    remedy_of,
    separation_text,
    summary_of,
)
from rowmerge_nb.trace.near import NearKeys, NearRow, NearSide
from rowmerge_nb.trace.picking import check_columns, has_values, in_words, picked

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rowmerge_nb.trace.trace import Trace

MOST_SHOWN: Final = 60
"""The maximum number of rows shown per side."""


class Near(ShownSequence[NearRow]):
    """Source rows without a partner and their nearest target keys; displays as a table.

    Attributes:
        keys: all findings about both sides.
        targets: unmatched target rows with a key close to one of the source.
    """

    def __init__(
        self,
        keys: NearKeys,
        rows: Sequence[NearRow],
        targets: Sequence[NearRow],
        *,
        is_selection: bool = False,
    ) -> None:
        self.keys = keys
        self.targets = tuple(targets)
        super().__init__(rows)
        self._is_selection = is_selection

    @classmethod
    def of(cls, trace: Trace, row: Any, source_row: Any, columns: Mapping[str, Any]) -> Near:
        """Find rows in a trace; arguments as for `Result.near`, ``row`` is the positional one."""
        keys = _keys_of(trace)
        sources, targets = (
            side.told if side is not None else () for side in (keys.source, keys.target)
        )
        names = (name for one in (*sources, *targets) for name in one.columns)
        source_row, columns = picked(row, source_row, columns, names)
        if source_row is None and not columns:
            return cls(keys, sources, targets)
        if keys.source is None and keys.terms:
            # The keys were compared and none is near, so the answer is the same for each row.
            return cls(keys, sources, targets)
        if keys.source is None:
            raise RowMergeError.unsupported(
                keys.problem.removesuffix("."),
                hint="result.why() explains what became of a row.",
            )
        if not sources and not targets:
            raise RowMergeError.invalid(
                summary_of(keys).removesuffix("."),
                hint="result.why() explains what became of a row.",
            )
        check_columns(columns, (row.columns for row in (*sources, *targets)))

        def alike(*, padded: bool) -> Near:
            return cls(
                keys,
                [
                    row
                    for row in sources
                    if source_row in {None, row.row}
                    and has_values(row.columns, columns, padded=padded)
                ],
                [
                    row
                    for row in targets
                    if source_row is None and has_values(row.columns, columns, padded=padded)
                ],
                is_selection=True,
            )

        # A text without trailing blanks matches a padded char only if no row has the exact text.
        matches = alike(padded=False)
        if not matches and not matches.targets:
            matches = alike(padded=True)
        if not matches and not matches.targets:
            raise RowMergeError.invalid(
                f"No unmatched row among the {plural(len(sources), 'source row')} in"
                f" the trace is {in_words(source_row, columns)}",
                hint=(
                    "result.why() has the rows with a partner. A target row is listed"
                    " only if a source row is near it. If many rows have no partner, the"
                    " trace keeps the first ones, and prefers those with a near key."
                ),
            )
        return matches

    @property
    def sentences(self) -> tuple[str, ...]:
        """A sentence per row, the source's rows first."""
        sides: tuple[tuple[str, Iterable[NearRow]], ...] = (
            ("source", self._items),
            ("target", self.targets),
        )
        return tuple(
            near_sentence(row, self.keys.terms, side) for side, rows in sides for row in rows
        )

    def __str__(self) -> str:
        tables = [
            [title, *(line.rstrip() for line in columns_of([heads, *rows]))]
            for title, heads, rows in self._tables()
        ]
        return "\n\n".join("\n".join(block) for block in (self._lines(), *tables))

    def __repr__(self) -> str:
        return (
            f"<Near: {plural(len(self), 'row')} of the source, {len(self.targets)} of the target>"
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        text = str(self)
        names = {"lines": self._lines(), "tables": self._tables()}
        return {
            "text/plain": text,
            "text/html": render_parts("near_keys.html.j2", names, text, text),
        }

    def _lines(self) -> list[str]:
        if self._is_selection:
            return list(self.sentences)
        lines = [summary_of(self.keys)]
        for side, name in ((self.keys.source, "source"), (self.keys.target, "target")):
            lines += counts_of(side, name) if side is not None else ()
        lines += remedy_of(self.keys)
        if self.keys.source is not None and self.keys.source.unmatched and not self.keys.letters:
            lines.append("Keys that differ by one letter were not searched.")
        return lines

    def _tables(self) -> list[tuple[str, list[str], list[list[str]]]]:
        if self._is_selection:
            return []
        terms = self.keys.terms
        sides = (
            ("source", "target", self._items, self.keys.source),
            ("target", "source", self.targets, self.keys.target),
        )
        return [
            (
                _title(name, rows, side),
                [
                    *(["source row"] if name == "source" else []),
                    "key",
                    f"nearest key of the {other}",
                    "what separates them",
                ],
                [
                    [
                        *([number_or_blank(row.row)] if name == "source" else []),
                        key_text(row.key),
                        key_text(row.nearest),
                        separation_text(row, terms),
                    ]
                    for row in rows[:MOST_SHOWN]
                ],
            )
            for name, other, rows, side in sides
            if rows and side is not None
        ]


def _keys_of(trace: Trace) -> NearKeys:
    if trace.samples.near_misses is not None:
        return trace.samples.near_misses
    join = trace.join
    if trace.kind == "MERGE" and join.unmatched_rows == 0 and join.rows is not None:
        return NearKeys(
            source=NearSide(join.rows if join.source_rows is None else join.source_rows, 0)
        )
    if trace.kind != "MERGE":
        msg = f"{trace.kind} has no source whose rows could have a partner"
        hint = "Ask it of a MERGE."
    elif trace.error is not None:
        msg = f"This MERGE failed ({trace.error.code}) before its keys were compared"
        hint = "Its error names the cause. Fix it and run the statement again."
    else:
        msg = "The nearest keys of this MERGE were not searched"
        hint = "Run it with near=True, or --near in a cell."
    raise RowMergeError.unsupported(msg, hint=hint)


def _title(name: str, rows: Sequence[NearRow], side: NearSide) -> str:
    title = (
        "Rows of the source without a partner"
        if name == "source"
        else "Rows of the target without a partner that are near a key of the source"
    )
    total = side.unmatched if name == "source" else len(rows)
    displayed = min(len(rows), MOST_SHOWN)
    return title if displayed == total else f"{title}: {number(displayed)} of {number(total)}"
