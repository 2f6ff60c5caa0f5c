"""A first notebook for the files of a user: ``python -m rowmerge_nb.notebook.first_notebook old.csv news.csv``."""

from __future__ import annotations

import re
import sys
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.names import quoted_where_needed
from rowmerge_nb.sql.analyzer.expressions.date_texts import layouts_of
from rowmerge_nb.sql.parser.tokens import RESERVED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

MOST_FILES: Final = 2
_EXAMPLE: Final = (
    'old = pd.DataFrame({"customer": ["Aaron", "Bill", "Carol"], "purchases": [5, 7, 3]})',
    'news = pd.DataFrame({"customer": ["Aaron", "Bill", "Ed"], "purchases": [6, 9, 7]})',
)
_QUESTION: Final = (
    "Click a row in the explorer to see which clause took it, why, and the outcome."
    " Then change the statement, and run the cell again. `%merge undo` undoes the change."
)
_KERNEL: Final = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
"""Without it, JupyterLab asks for a kernel first."""
_LEADING_ZERO: Final = r"0\d+"
_NUMBER: Final = r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?"
_THOUSANDS: Final = r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?"
_DIGITS_AND_COMMAS: Final = r"[-+]?[\d.]*,[\d.,]*"
_DECIMAL_COMMA: Final = r"[-+]?(\d{1,3}(\.\d{3})+|\d+),\d+"
_DIGITS_ALONE: Final = "%Y%m%d"
"""Dates that may be numbers as well."""
_KEY_WORDS: Final = frozenset(
    ["id", "key", "no", "number", "nr", "code", "part", "sku", "ean", "isbn", "email"]
)


def first_notebook(files: Sequence[Path], path: Path) -> None:
    """Write a notebook that merges the second file into the first one, or an example without files."""
    import nbformat

    write: Any = nbformat
    cells = write.v4
    lines, words, merge = _example() if not files else _own(files)
    start = "\n".join(
        [
            "%load_ext rowmerge_nb",
            "import pandas as pd",
            "",
            *lines,
            "%merge CREATE OR REPLACE TABLE mine AS SELECT * FROM old",
        ]
    )
    texts = [cells.new_code_cell(start), cells.new_code_cell(merge)]
    if words:
        texts.insert(1, cells.new_markdown_cell(words))
    notebook = cells.new_notebook(
        cells=[*texts, cells.new_markdown_cell(_QUESTION)],
        metadata={
            "kernelspec": _KERNEL,
            "rowmerge_nb": {"files": [str(file) for file in files]},
        },
    )
    write.write(notebook, path)


def _example() -> tuple[list[str], str, str]:
    import pandas as pd

    frame = pd.DataFrame({"customer": ["Aaron"], "purchases": [5]})
    return list(_EXAMPLE), "", merge_cell(frame, frame)


def _own(files: Sequence[Path]) -> tuple[list[str], str, str]:
    """Return the lines of Python that set both frames, words about them, and the cell of the MERGE."""
    frames, options = read_files(files)
    # Without convert_dtypes, a column of whole numbers with a missing value has floats.
    lines = [
        f"{name} = pd.read_csv({', '.join([repr(str(file)), *_written(own)])}).convert_dtypes()"
        for name, file, own in zip(("old", "news"), files, options, strict=False)
    ]
    if len(files) < MOST_FILES:
        lines.append("# Read your new rows here.")
        lines.append("news = old.head(3)")
        return lines, "", merge_cell(frames[0], frames[0])
    if not set(frames[0].columns) & set(frames[1].columns):
        raise SystemExit(
            f"The files have no column in common. {files[0].name} has"
            f" {_listed(frames[0])}; {files[1].name} has {_listed(frames[1])}. Use the same"
            " column headers in both files, and start again."
        )
    return lines, _check_words(files, frames), merge_cell(frames[0], frames[1])


def _written(options: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value!r}" for name, value in options.items()]


def _listed(frame: pd.DataFrame) -> str:
    return ", ".join(map(repr, map(str, frame.columns)))


def read_files(files: Sequence[Path]) -> tuple[list[pd.DataFrame], list[dict[str, Any]]]:
    """Return the fields of each file as text, and the arguments of ``pd.read_csv`` for it.

    Columns of one name get one type.

    A column with numbers such as 00123 is text, as is one that has other words in one of the files.
    Separators of thousands, a decimal comma, dates and Windows' encoding are found in the fields.
    """
    import pandas as pd

    options = [_format(file) for file in files]
    texts = []
    for file, own in zip(files, options, strict=True):
        try:
            texts.append(pd.read_csv(file, dtype=str, **own))
        except (pd.errors.EmptyDataError, pd.errors.ParserError) as error:
            raise SystemExit(f"{file} has no rows of comma-separated values: {error}") from None
    for text, own in zip(texts, options, strict=True):
        own.update(_number_format(text, own.get("sep", ",")))
    names = list(dict.fromkeys(name for text in texts for name in text.columns))
    as_text = [name for name in names if _is_text(name, texts, options)]
    for text, own in zip(texts, options, strict=True):
        if types := {name: str for name in as_text if name in text.columns}:
            own["dtype"] = _Types(types)
    for own, layouts in zip(options, _date_layouts(names, texts), strict=True):
        if layouts:
            own |= {"parse_dates": list(layouts), "date_format": layouts}
    return texts, options


class _Types(dict[str, type]):
    """Types of columns, whose repr is Python that can be run."""

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{name!r}: {type_.__name__}' for name, type_ in self.items())}}}"


def _format(file: Path) -> dict[str, Any]:
    content = file.read_bytes()
    options: dict[str, Any] = {}
    if content.startswith((b"PK", b"\xd0\xcf\x11\xe0")):
        raise SystemExit(f"{file} is a workbook. Save the sheet as CSV UTF-8, and name that file.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        options["encoding"] = "cp1252"
        text = content.decode("cp1252", errors="replace")
    head = text.partition("\n")[0]
    if (separator := max(",;\t", key=head.count)) != ",":
        options["sep"] = separator
    return options


def _number_format(text: pd.DataFrame, separator: str) -> dict[str, str]:
    import pandas as pd

    fields = pd.concat([text[name] for name in text.columns]).dropna().str.strip()
    commas = fields[fields.str.fullmatch(_DIGITS_AND_COMMAS)]
    if commas.empty:
        return {}
    if commas.str.fullmatch(_THOUSANDS).all():
        return {"thousands": ","}
    if separator == ";" and commas.str.fullmatch(_DECIMAL_COMMA).all():
        return {"decimal": ",", "thousands": "."}
    return {}


def _date_layouts(names: Sequence[str], texts: Sequence[pd.DataFrame]) -> list[dict[str, str]]:
    """Return for each file the layouts of its columns of dates.

    05/04/2026 alone stays text, unless another row or file decides.
    """
    layouts: list[dict[str, str]] = [{} for _ in texts]
    for name in names:
        fields = {
            index: text[name].dropna().unique()
            for index, text in enumerate(texts)
            if name in text.columns
        }
        candidates = {index: layouts_of(values) for index, values in fields.items() if len(values)}
        certain = {options[0] for options in candidates.values() if len(options) == 1}
        for index, options in candidates.items():
            choices = (
                options
                if len(options) == 1
                else [option for option in options if option in certain]
            )
            if choices and all(candidates.values()) and choices[0] != _DIGITS_ALONE:
                layouts[index][name] = choices[0]
    return layouts


def _is_text(
    name: str, texts: Sequence[pd.DataFrame], options: Sequence[Mapping[str, Any]]
) -> bool:
    are_numbers = set()
    for text, own in zip(texts, options, strict=True):
        if name not in text.columns:
            continue
        fields = text[name].dropna().str.strip()
        if fields.str.fullmatch(_LEADING_ZERO).any():
            return True
        if "thousands" in own:
            fields = fields.str.replace(own["thousands"], "")
        if "decimal" in own:
            fields = fields.str.replace(own["decimal"], ".")
        if len(fields):
            are_numbers.add(bool(fields.str.fullmatch(_NUMBER).all()))
    return len(are_numbers) > 1


def _check_words(files: Sequence[Path], frames: Sequence[pd.DataFrame]) -> str:
    key = key_of(*frames)
    repeated = [
        file.name
        for file, frame in zip(files, frames, strict=True)
        if key is not None and not frame[key].is_unique
    ]
    words = (
        f"`mine` has the rows of {files[0].name}, and `news` those of {files[1].name}."
        " Check the key after `ON` before you run the MERGE."
    )
    if repeated:
        words += (
            f" `{key}` has values more than once in {' and '.join(repeated)}: add a"
            " column with AND, until each row of `mine` has at most one partner."
        )
    return words


def key_of(old: pd.DataFrame, news: pd.DataFrame) -> Any:
    """Return the column of both frames that looks like the key, or None without such a column.

    A name such as ``Part No.`` counts more than values that are not repeated: a quantity may have
    none twice.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"Qty": [3, 4], "Part No.": ["a", "b"]})
    >>> key_of(frame, frame)
    'Part No.'
    """
    both = [name for name in old.columns if name in set(news.columns)]

    def rank(name: Any) -> tuple[bool, bool]:
        is_key_name = not _KEY_WORDS.isdisjoint(re.findall(r"[a-z]+", str(name).lower()))
        return not is_key_name, not (old[name].is_unique and news[name].is_unique)

    return min(both, key=rank, default=None)


def merge_cell(old: pd.DataFrame, news: pd.DataFrame) -> str:
    """Return a cell with a MERGE of the columns that both frames have, by their key.

    >>> import pandas as pd
    >>> cell = merge_cell(pd.DataFrame({"Order ID": [1], "n": [1]}), pd.DataFrame({"Order ID": [1]}))
    >>> print(cell.splitlines()[2])
        ON t."Order ID" = s."Order ID"
    """
    both = [name for name in old.columns if name in set(news.columns)]
    names = {name: quoted_where_needed(str(name), RESERVED) for name in both}
    key = key_of(old, news)
    changed = ", ".join(f"{names[name]} = s.{names[name]}" for name in both if name != key)
    listed = ", ".join(names.values())
    new_values = ", ".join(f"s.{name}" for name in names.values())
    update = ["    WHEN MATCHED THEN", f"        UPDATE SET {changed}"] if changed else []
    insert = ["    WHEN NOT MATCHED THEN", f"        INSERT ({listed}) VALUES ({new_values})"]
    on = f"    ON t.{names[key]} = s.{names[key]}"
    return "\n".join(["%%merge --explore", "MERGE INTO mine t USING news s", on, *update, *insert])


def main(arguments: Sequence[str]) -> str:
    """Write a notebook for files, ``mine.ipynb`` if it is free, and return its path.

    The notebook of an earlier call for the same files is not written again. SystemExit for unknown
    files.
    """
    files = [Path(name).resolve() for name in arguments]
    if missing := [str(file) for file in files if not file.is_file()]:
        raise SystemExit(f"There is no {', '.join(missing)}.")
    if len(files) > MOST_FILES:
        raise SystemExit("Name two files of comma-separated values: the table, and the new rows.")
    for number in count(1):
        path = Path("mine.ipynb" if number == 1 else f"mine-{number}.ipynb").resolve()
        if not path.exists():
            first_notebook(files, path)
            break
        if _files_of(path) == [str(file) for file in files]:
            break
    return str(path)


def _files_of(notebook: Path) -> list[str] | None:
    import nbformat

    read: Any = nbformat
    try:
        metadata = read.read(notebook, as_version=4).metadata
    except (OSError, ValueError):
        return None
    names: list[str] | None = metadata.get("rowmerge_nb", {}).get("files")
    return names


if __name__ == "__main__":
    sys.stdout.write(f"{main(sys.argv[1:])}\n")
