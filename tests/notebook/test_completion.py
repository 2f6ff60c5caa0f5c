from __future__ import annotations

import pytest

from rowmerge_nb.notebook.completion import candidates


def tables():
    return ["accounts", "memory.default.accounts", "updates"]


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ("%%merge --d", ["--duplicates", "--dialect", "--dry-run"]),
        ("%%merge --explain s", ["svg"]),
        ("%%merge -o x --paradigm ", ["CHANGE_ONLY_UPDATED_COLUMNS", "DELETE_ROW_AND_INSERT_ROW"]),
        ("%%merge --show jo", ["journeys"]),
        ("%%merge --show plan,di", ["plan,diff"]),
        ("%%merge --show plan,p", ["plan,pages"]),
        ("%merge ta", ["tables"]),
        ("%%merge ta", []),
        ("%%merge\nMERGE INTO ", ["accounts", "memory.default.accounts", "updates"]),
        ("%%merge\nMERGE INTO accounts a USING up", ["updates"]),
        ("%%merge\nDROP TABLE IF EXISTS mem", ["memory.default.accounts"]),
        ("%merge SELECT * FROM AC", ["accounts"]),
        ("%%merge\nSELECT ac", []),
        ("MERGE INTO ac", []),
        ("%%merged\nMERGE INTO ac", []),
    ],
)
def test_candidates_fit_the_place(before, found):
    assert candidates(before, tables) == found


def test_the_shell_offers_them(notebook):
    text = "%%merge\nMERGE INTO acc"
    completer = notebook.shell.Completer
    from IPython.core.completer import provisionalcompleter

    with provisionalcompleter():
        assert "accounts" in [completion.text for completion in completer.completions(text, len(text))]
