"""The grid of the lab: its dimensions, their values, and the order of its points."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.engine.reruns.temporary_stores import STORE_KINDS, checked_stores
from rowmerge_nb.trace.lab import LabPoint


@dataclass(frozen=True)
class Dimension:
    meaning: str
    default: tuple[Any, ...]
    form: str
    accepts: Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any, least: int) -> bool:
    return type(value) is int and value >= least


DEFAULT_STORES: Final = tuple(name for name, store in STORE_KINDS.items() if store.has_files)
_AT_LEAST_1: Final = "whole numbers from 1"
_AT_LEAST_0: Final = "whole numbers from 0"

GRID: Final[Mapping[str, Dimension]] = {
    "partitioned_by": Dimension(
        "the partition column", ("",), "names of columns, or ''", lambda v: isinstance(v, str)
    ),
    "buckets": Dimension("the buckets of the key", (0,), _AT_LEAST_0, lambda v: _is_count(v, 0)),
    "sorted": Dimension(
        "whether rows are loaded in the order of the key",
        (True,),
        "True or False",
        lambda v: isinstance(v, bool),
    ),
    "files": Dimension("the number of loads", (1,), _AT_LEAST_1, lambda v: _is_count(v, 1)),
    "statements": Dimension(
        "the number of statements", (1,), _AT_LEAST_1, lambda v: _is_count(v, 1)
    ),
    "compact_every": Dimension(
        "the statements between compactions", (0,), _AT_LEAST_0, lambda v: _is_count(v, 0)
    ),
    "locality": Dimension(
        "the share of changed rows that are neighbors",
        (0.0, 1.0),
        "numbers from 0 to 1",
        lambda v: _is_number(v) and 0 <= v <= 1,
    ),
    "share": Dimension(
        "the share of rows that a statement changes",
        (0.01, 0.1, 0.5),
        "numbers above 0, up to 1",
        lambda v: _is_number(v) and 0 < v <= 1,
    ),
    "store": Dimension(
        "the store", DEFAULT_STORES, "names of stores", lambda v: isinstance(v, str)
    ),
}
"""The dimensions; the last one varies fastest, so that a grid that ends early compares stores."""


def points_of(grid: object) -> tuple[LabPoint, ...]:
    """Return the points of a grid.

    Raises:
        RowMergeError: INVALID_ARGUMENTS.

    >>> len(points_of({"store": ["delta", "hive"], "share": [0.1], "locality": 1}))
    2
    """
    if grid is None:
        grid = {}
    if not isinstance(grid, Mapping):
        _refuse(
            f"grid = {grid!r} is not a mapping of dimensions to values",
            "Pass grid={'store': ['delta', 'hive'], 'share': [0.01, 0.1]}.",
        )
    for name in grid:
        if name not in GRID:
            _refuse(
                f"The grid has no dimension {name!r}",
                did_you_mean(str(name), GRID) or f"There are: {', '.join(GRID)}.",
            )
    values = {name: _values(name, grid.get(name)) for name in GRID}
    return tuple(
        LabPoint(**dict(zip(values, combination, strict=True)))
        for combination in itertools.product(*values.values())
    )


def _values(name: str, argument: Any) -> tuple[Any, ...]:
    dimension = GRID[name]
    if argument is None:
        return dimension.default
    values = tuple(argument) if isinstance(argument, list | tuple) else (argument,)
    if name == "store":
        return checked_stores(list(values))
    if not values or not all(dimension.accepts(value) for value in values):
        _refuse(
            f"{name} = {argument!r} is not possible",
            f"It is {dimension.meaning}. Give a list of {dimension.form}.",
        )
    if name in {"share", "locality"}:
        values = tuple(float(value) for value in values)
    return tuple(dict.fromkeys(values))


def _refuse(message: str, hint: str) -> NoReturn:
    raise RowMergeError.invalid(message, hint=hint)
