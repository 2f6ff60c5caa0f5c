from __future__ import annotations

import pytest

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.notebook.cell_options import OPTIONS, STATEMENT, docstring, help_text, parse_line
from rowmerge_nb.notebook.line_commands import command_of
from rowmerge_nb.sql.parser.statement_reader import READERS, parse


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
        ("--dry-run=yes", "--dry-run takes no value but got 'yes'"),
        ("-o a.b", "--output needs the name of a Python variable but got 'a.b'"),
        ("-o class", "--output needs the name of a Python variable but got 'class'"),
        ("None << SELECT 1", "<< needs the name of a Python variable but got 'None'"),
        (
            "r4 --trace full <<",
            (
                "r4 and << must follow the options together. Write %%merge --trace"
                " full -o r4, or %%merge --trace full r4 << to show nothing"
            ),
        ),
        ("a << b << SELECT 1", "<< occurs twice. A result is kept in only one variable"),
        ("--era current --era documents", "--era occurs twice. Remove one of them"),
        ("-o a --output=b", "--output occurs twice"),
        ("--near --near", "--near occurs twice"),
        ("1x << SELECT 1", "<< needs the name of a Python variable but got '1x'"),
    ],
)
def test_wrong_lines_are_refused_with_advice(line, message):
    with pytest.raises(RowMergeError) as caught:
        parse_line(line)
    assert caught.value.code == "INVALID_ARGUMENTS"
    assert message in str(caught.value)


def test_the_help_page_has_every_option():
    assert [option.name for option in OPTIONS if f"--{option.name}" not in help_text()] == []


@pytest.mark.parametrize("name", ["merge", "%merge", "%%merge"])
def test_a_question_mark_shows_an_example_and_every_option_with_its_values(notebook, name):
    shown = (
        notebook.shell.object_inspect_mime(name)["text/plain"] if name != "merge" else docstring()
    )
    assert "MERGE INTO accounts a USING updates u ON a.id = u.id" in shown
    for option in OPTIONS:
        assert f"--{option.name} " in shown
        assert all(f"{choice}" in shown for choice in option.choices)
    assert max(len(line) for line in docstring().splitlines()) <= 100


def test_the_example_is_a_valid_statement_with_existing_options():
    lines = docstring().split("\n\n")[1].splitlines()
    assert parse_line(lines[0].removeprefix("%%merge")).values == {
        "output": "result",
        "show": "diff,journeys",
    }
    assert len(parse("\n".join(lines[1:])).clauses) == 2


def test_the_first_word_of_every_statement_begins_one_on_the_line() -> None:
    for word in READERS:
        assert STATEMENT.match(word.lower())
        assert not STATEMENT.match(f"{word}s")
        assert command_of(f"{word} x") == ""
