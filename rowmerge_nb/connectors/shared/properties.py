"""Table properties that list columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowmerge_nb.base.errors import AnalysisError

if TYPE_CHECKING:
    from collections.abc import Mapping


def listed_names(properties: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return the names that a property lists, or raise INVALID_TABLE_PROPERTY; a single name may be
    a string.

    >>> listed_names({"bucketed_by": ["a", "b"]}, "bucketed_by"), listed_names({"primary_key": "id"}, "primary_key"), listed_names({}, "primary_key")
    (('a', 'b'), ('id',), ())
    >>> listed_names({"primary_key": 5}, "primary_key")
    Traceback (most recent call last):
    rowmerge_nb.base.errors.AnalysisError: INVALID_TABLE_PROPERTY: Invalid value for table property 'primary_key': Cannot convert [5] to \
    array(varchar). It lists texts: ARRAY['...'].
    """
    value = properties.get(name)
    if value is None:
        return ()
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(one, str) for one in names):
        raise AnalysisError(
            f"Invalid value for table property '{name}': Cannot convert [{value}] to"
            " array(varchar)",
            code="INVALID_TABLE_PROPERTY",
            properties=(name,),
            hint="It lists texts: ARRAY['...'].",
        )
    return tuple(names)
