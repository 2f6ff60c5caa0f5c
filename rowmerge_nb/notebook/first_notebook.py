"""A first notebook for the files of a user: ``python -m rowmerge_nb.notebook.first_notebook old.csv news.csv``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.names import quoted_where_needed
from rowmerge_nb.sql.parser.tokens import RESERVED

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

MOST_FILES: Final = 2
_EXAMPLE: Final = (
    'old = pd.DataFrame({"customer": ["Aaron", "Bill", "Carol"], "purchases": [5, 7, 3]})',
    'news = pd.DataFrame({"customer": ["Aaron", "Bill", "Ed"], "purchases": [6, 9, 7]})',
)
_QUESTION: Final = (
    "Click a row in the explorer: it shows why a clause took the row, and what became of it. Then"
    " change the statement, and run the cell again. `%merge undo` takes the change back."
)


def first_notebook(files: Sequence[Path], path: Path) -> None:
    """Write a notebook that merges the second file into the first one, or an example without files."""
    import nbformat

    write: Any = nbformat
    cells = write.v4
    frames, merge = _frames(files)
    start = "\n".join(
        [
            "%load_ext rowmerge_nb",
            "import pandas as pd",
            "",
            *frames,
            "%merge CREATE OR REPLACE TABLE mine AS SELECT * FROM old",
        ]
    )
    texts = [cells.new_code_cell(start), cells.new_code_cell(merge)]
    if len(files) == MOST_FILES:
        texts.insert(1, cells.new_markdown_cell(_check_words(files)))
    notebook = cells.new_notebook(cells=[*texts, cells.new_markdown_cell(_QUESTION)])
    write.write(notebook, path)


def _frames(files: Sequence[Path]) -> tuple[list[str], str]:
    """Return the lines of Python that set both frames, and the cell of the MERGE."""
    import pandas as pd

    if not files:
        frame = pd.DataFrame({"customer": ["Aaron"], "purchases": [5]})
        return list(_EXAMPLE), merge_cell(frame, frame)
    separators = [_separator(file) for file in files]
    frames = [
        pd.read_csv(file, sep=separator) for file, separator in zip(files, separators, strict=True)
    ]
    # Without convert_dtypes, a column of whole numbers with a missing value has floats.
    lines = [
        f"{name} = pd.read_csv({str(file)!r}{'' if separator == ',' else f', sep={separator!r}'})"
        ".convert_dtypes()"
        for name, file, separator in zip(("old", "news"), files, separators, strict=False)
    ]
    if len(files) < MOST_FILES:
        lines.append("news = old.head(3)  # read your new rows here")
    return lines, merge_cell(frames[0], frames[-1])


def _separator(file: Path) -> str:
    """Return the separator that the first line has most often: spreadsheets write semicolons, too."""
    with file.open(encoding="utf-8-sig", errors="replace") as lines:
        head = lines.readline()
    return max(",;\t", key=head.count)


def _check_words(files: Sequence[Path]) -> str:
    return (
        f"`mine` has the rows of {files[0].name}, `news` those of {files[1].name}. Check the key"
        " behind `ON` before you run the MERGE."
    )


def merge_cell(old: pd.DataFrame, news: pd.DataFrame) -> str:
    """Return a cell with a MERGE of the columns that both frames have; the key is the first one
    without a value twice.

    >>> import pandas as pd
    >>> cell = merge_cell(pd.DataFrame({"Order ID": [1], "n": [1]}), pd.DataFrame({"Order ID": [1]}))
    >>> print(cell.splitlines()[2])
        ON t."Order ID" = s."Order ID"
    """
    both = [name for name in old.columns if name in set(news.columns)]
    keys = [name for name in both if old[name].is_unique and news[name].is_unique] or both
    names = {name: quoted_where_needed(str(name), RESERVED) for name in both}
    key = f"t.{names[keys[0]]} = s.{names[keys[0]]}" if keys else "t.KEY = s.KEY"
    changed = ", ".join(f"{names[name]} = s.{names[name]}" for name in both if name not in keys[:1])
    listed = ", ".join(names.values())
    new_values = ", ".join(f"s.{name}" for name in names.values())
    update = ["    WHEN MATCHED THEN", f"        UPDATE SET {changed}"] if changed else []
    insert = ["    WHEN NOT MATCHED THEN", f"        INSERT ({listed}) VALUES ({new_values})"]
    return "\n".join(
        ["%%merge --explore", "MERGE INTO mine t USING news s", f"    ON {key}", *update, *insert]
    )


def main(arguments: Sequence[str]) -> str:
    """Write ``mine.ipynb`` unless it exists, and return its path; SystemExit for unknown files."""
    files, path = [Path(name).resolve() for name in arguments], Path("mine.ipynb")
    if missing := [str(file) for file in files if not file.is_file()]:
        raise SystemExit(f"There is no {', '.join(missing)}.")
    if len(files) > MOST_FILES:
        raise SystemExit("Name two files of comma-separated values: the table, and the new rows.")
    if files and path.exists():
        raise SystemExit(f"{path.resolve()} exists. Open it, or move it away.")
    if not path.exists():
        first_notebook(files, path)
    return str(path.resolve())


if __name__ == "__main__":
    sys.stdout.write(f"{main(sys.argv[1:])}\n")
