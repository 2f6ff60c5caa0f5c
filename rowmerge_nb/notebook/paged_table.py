"""Pages of a sortable table for results with many rows, by itables where it is installed.

itables writes the rows into the output, so that a saved notebook has them without a kernel and
without a network. Where its script may run, they are sorted pages, and elsewhere a plain table of
the first page. The script, about 1 MB, is written once for each notebook.
"""

from __future__ import annotations

from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.notebook.rows import number_columns, row_cells
from rowmerge_nb.report.words.display_values import visible

if TYPE_CHECKING:
    import pyarrow as pa

MOST_PAGED_ROWS: Final = 2_000
"""The number of rows in the pages at most: they are part of the notebook's file."""
_CELL_BUDGET: Final = 50_000
"""The number of cells in the pages at most, for tables with many columns."""
_LENGTHS: Final = [10, 25, 60, 200]

_script_cells: set[str] = set()
"""The cells whose output has the script."""


def is_available() -> bool:
    return find_spec("itables") is not None


def paged_html(table: pa.Table, row_count: str) -> str:
    """Return a table as HTML with pages, search and order, and its script if the notebook has
    none.
    """
    import pandas as pd
    from itables import to_html_datatable

    limit = max(min(MOST_PAGED_ROWS, _CELL_BUDGET // max(table.num_columns, 1)), 1)
    rows = row_cells(table, limit)
    frame = pd.DataFrame(
        [[cell.text for cell in row] for row in rows],
        columns=[visible(name) for name in table.column_names],
        dtype=object,
    )
    numbers = sorted(number_columns(table))
    options: dict[str, Any] = {
        "connected": False,
        "showIndex": False,
        "maxBytes": 0,
        "pageLength": 25,
        "style": "table-layout:auto;width:auto;float:left;margin:0",
        "lengthMenu": _LENGTHS,
        # Cells are texts; these columns are sorted as numbers, NULL first.
        "columnDefs": [{"targets": numbers, "type": "num", "className": "dt-right"}]
        if numbers
        else [],
    }
    caption = row_count
    if table.num_rows > len(rows):
        caption += f", the first {len(rows):,} here; result.to_pandas() has all"
    html: str = to_html_datatable(frame, **options)
    return f"{_script()}{html}<p>{escape(caption)}</p>"


def _script() -> str:
    from itables.javascript import generate_init_offline_itables_html
    from itables.utils import find_package_file

    cell = _cell_id()
    if _script_cells and (not cell or cell not in _script_cells):
        return ""
    # A cell that is run again replaces the output that has the script.
    _script_cells.add(cell)
    html: str = generate_init_offline_itables_html(find_package_file("html/dt_bundle.js"))
    return html


def _cell_id() -> str:
    from IPython.core.getipython import get_ipython

    shell: Any = get_ipython()
    parent = getattr(shell, "parent_header", None) or {}
    get_parent = getattr(shell, "get_parent", None)
    if get_parent is not None:
        parent = get_parent() or parent
    return str(parent.get("metadata", {}).get("cellId", ""))
