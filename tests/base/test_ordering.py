"""Distinct numbers are found by sorting, since NumPy's hash tables take seconds for a million numbers."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import rowmerge_nb

HASHING = ("unique", "setdiff1d", "union1d", "intersect1d", "setxor1d")
FILES = sorted(Path(rowmerge_nb.__file__).parent.rglob("*.py"))


def hashing_calls(source: str) -> list[int]:
    """Return the lines with calls of NumPy functions that hash."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in HASHING
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "np"
        and not any(
            (word.arg or "").startswith("return_") or word.arg == "assume_unique"
            for word in node.keywords
        )
    ]


@pytest.mark.not_quick
def test_no_module_of_the_package_hashes_numbers() -> None:
    assert {str(file): lines for file in FILES if (lines := hashing_calls(file.read_text()))} == {}


@pytest.mark.parametrize(
    ("call", "lines"),
    [
        ("np.unique(x)", [1]),
        ("np.setdiff1d(x, y)", [1]),
        ("np.unique(x, return_index=True)", []),
        ("np.setdiff1d(x, y, assume_unique=True)", []),
    ],
)
def test_calls_that_hash_are_found(call: str, lines: list[int]) -> None:
    assert hashing_calls(call) == lines
