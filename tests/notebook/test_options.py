from __future__ import annotations

import pytest

from rowmerge_nb.errors import RowMergeError
from rowmerge_nb.notebook.options import OPTIONS, help_text, parse_line


@pytest.mark.parametrize(
    ("line", "values", "name", "rest"),
    [
        ("", {}, "", ""),
        ("-o r", {"output": "r"}, "", ""),
        ("--output=r", {"output": "r"}, "", ""),
        ("r <<", {}, "r", ""),
        ("r << --dry-run", {"dry-run": "true"}, "r", ""),
        ("--dry_run r <<", {"dry-run": "true"}, "r", ""),
        ("--explain", {"explain": "text"}, "", ""),
        ("--explain r <<", {"explain": "text"}, "r", ""),
        ("--explain svg r <<", {"explain": "svg"}, "r", ""),
        ("--explain MERGE INTO t", {"explain": "text"}, "", "MERGE INTO t"),
        ("--paradigm delete_row_and_insert_row", {"paradigm": "DELETE_ROW_AND_INSERT_ROW"}, "", ""),
        ("--show 'plan, pages'", {"show": "plan, pages"}, "", ""),
        ("r << SELECT a -- b", {}, "r", "SELECT a -- b"),
        ("tables", {}, "", "tables"),
        ("--engine e tables", {"engine": "e"}, "", "tables"),
    ],
)
def test_lines_are_read(line, values, name, rest):
    use = parse_line(line)
    assert (use.values, use.quiet_name, use.rest) == (values, name, rest)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--paradime x", "There is no option --paradime. Did you mean --paradigm?"),
        ("-x", "There is no option -x. %merge help lists the options."),
        ("--era", "--era needs a value. Write --era documents|current"),
        ("--era --dry-run", "--era needs a value"),
        ("--era doc", "--era cannot be 'doc'. There are: documents, current"),
        ("--era document", "--era cannot be 'document'. Did you mean documents?"),
        ("--dialect extend", "--dialect cannot be 'extend'. Did you mean extended?"),
        ("--dry-run=yes", "--dry-run takes no value, and got 'yes'"),
        ("-o a.b", "--output needs the name of a Python variable, and got 'a.b'"),
        ("1x << SELECT 1", "<< needs the name of a Python variable, and got '1x'"),
    ],
)
def test_wrong_lines_are_refused_with_advice(line, message):
    with pytest.raises(RowMergeError) as caught:
        parse_line(line)
    assert caught.value.code == "INVALID_ARGUMENTS"
    assert message in str(caught.value)


def test_the_help_page_has_every_option():
    assert [option.name for option in OPTIONS if f"--{option.name}" not in help_text()] == []
