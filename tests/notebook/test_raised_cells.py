"""Errors of connectors defined in notebook cells have the cells' names."""

from __future__ import annotations

from typing import Any

from rowmerge_nb.engine.spark.errors.connector_frames import place_of, with_code
from rowmerge_nb.engine.tasks.call_frames import raised_by

CELL = """\
def find(name):
    return {"price": 7.0}[name]

class Sink:
    def store_merged_rows(self, page):
        try:
            return find("pirce")
        except KeyError as error:
            raise ValueError("no such column") from error
"""


def no_lines(file: str, function: str, line: int) -> tuple[()]:
    return ()


def test_a_line_of_a_cell_has_the_cells_name(notebook: Any) -> None:
    notebook.run("1 + 1")
    ran = notebook.shell.run_cell(CELL, store_history=True)
    count = ran.execution_count
    try:
        notebook.shell.user_ns["Sink"]().store_merged_rows(None)
    except ValueError as error:
        found = raised_by(error, "store_merged_rows", caller="writer", number=1)
    assert found is not None
    (shown,) = with_code((found,), no_lines)
    frame = shown.frames[-1]
    assert frame.place == f"cell In[{count}], line 9, in store_merged_rows"
    assert (
        place_of(shown)
        == f'cell In[{count}], line 9, in store_merged_rows: `raise ValueError("no such column") from error`'
    )
    (cause,) = shown.causes
    assert [frame.place for frame in cause.frames] == [
        f"cell In[{count}], line 7, in store_merged_rows",
        f"cell In[{count}], line 2, in find",
    ]


def test_lines_that_a_task_could_not_read_are_added_here(notebook: Any) -> None:
    from dataclasses import replace

    notebook.shell.run_cell(CELL, store_history=True)
    try:
        notebook.shell.user_ns["find"]("x")
    except KeyError as error:
        found = raised_by(error, "finish", caller="writer", number=0)
    assert found is not None
    # A task has the names of cells, but not their text.
    blind = replace(found, frames=tuple(replace(frame, code=()) for frame in found.frames))
    assert blind.frames[-1].text == ""
    (shown,) = with_code((blind,), no_lines)
    assert shown.frames[-1].text == 'return {"price": 7.0}[name]'


def test_a_line_of_a_file_keeps_its_file(notebook: Any) -> None:
    try:
        raise OSError("the disk is full")  # noqa: TRY301 - it is what is looked at
    except OSError as error:
        found = raised_by(error, "finish", caller="writer", number=0)
    assert found is not None
    assert with_code((found,), no_lines)[0].frames[-1].file == __file__
