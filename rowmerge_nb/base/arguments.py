"""Checks of the arguments of public functions."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

from rowmerge_nb.base.errors import RowMergeError

T = TypeVar("T")

SHOWN_VALUE: Final = 80
"""Longer values of arguments are omitted from error messages."""


def checked(
    value: T, name: str, expected: type | tuple[type, ...] | Callable[[Any], bool], form: str
) -> T:
    """Return a valid argument; ``expected`` is its type or types, or a predicate, and ``form`` the
    valid form, for the hint.

    Raises:
        RowMergeError: INVALID_ARGUMENTS, with the value or its type.

    >>> checked("t", "name", str, "a text")
    't'
    >>> checked(5, "schema", str, "the name of a schema")
    Traceback (most recent call last):
    rowmerge_nb.base.errors.RowMergeError: INVALID_ARGUMENTS: schema = 5 is of type int, which is not possible. Give the name of a schema.
    """
    fits = isinstance(value, expected) if isinstance(expected, type | tuple) else expected(value)
    if not fits:
        display_value = (
            repr(value)
            if isinstance(value, int | float | str | bytes) and len(repr(value)) <= SHOWN_VALUE
            else ""
        )
        subject = f"{name}{f' = {display_value}' if display_value else ''}"
        # With a predicate, the type may be right and only the value wrong.
        verb = (
            "is"
            if display_value and not isinstance(expected, type | tuple)
            else f"is of type {type(value).__name__}, which is"
        )
        raise RowMergeError.invalid(f"{subject} {verb} not possible", hint=f"Give {form}.")
    return value


def checked_name(value: Any, name: str, of: str) -> str:
    """Return a valid name of an object (``of``); else raise INVALID_ARGUMENTS.

    It is not blank, without zero bytes and lone surrogates.

    >>> checked_name(" ", "schema", "schema")
    Traceback (most recent call last):
    rowmerge_nb.base.errors.RowMergeError: INVALID_ARGUMENTS: schema = ' ' is not possible. Give the name of a schema, a text that is not blank.
    """
    form = f"the name of a {of}, a text that is not blank"
    return str(
        checked(
            value,
            name,
            lambda name_value: (
                isinstance(name_value, str)
                and bool(name_value.strip())
                and _is_storable(name_value)
            ),
            form,
        )
    )


def _is_storable(text: str) -> bool:
    r"""Return whether stores can hold a text.

    >>> _is_storable("Zoë"), _is_storable("a\0"), _is_storable("\ud800")
    (True, False, False)
    """
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def checked_path(value: Any, name: str) -> str:
    """Return a path as text; INVALID_ARGUMENTS for other values.

    >>> checked_path("lake", "directory")
    'lake'
    """
    text = os.fspath(checked(value, name, (str, os.PathLike), "a path: a text or a pathlib.Path"))
    if not isinstance(text, str) or "\0" in text:
        raise RowMergeError.invalid(
            f"{name} = {text!r} is not possible: a path is a text without zero bytes",
            hint="Give another path.",
        )
    try:
        # Python represents undecodable bytes of paths as certain lone surrogates; paths with other
        # surrogates cannot exist.
        os.fsencode(text)
    except UnicodeEncodeError as error:
        raise RowMergeError.invalid(
            f"{name} = {text!r} is not possible: {error.reason}",
            hint="Give another path.",
        ) from error
    return text
