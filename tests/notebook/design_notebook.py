"""The notebook of docs/design.md: `python -m tests.notebook.design_notebook` builds and runs it, and copies its results into the page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "design.md"
NOTEBOOK: Final = ROOT / "notebooks" / "15_explore_a_design.ipynb"

_FENCE: Final = re.compile(r"^```\n(.*?)\n```\n", re.MULTILINE | re.DOTALL)
_RESULT: Final = re.compile(r"\n```text\n.*?\n```\n", re.DOTALL)
_BEFORE: Final = """\

**You need:** [10_what_a_change_costs](10_what_a_change_costs.ipynb) and [14_copy_on_write](14_copy_on_write.ipynb). **Time:** 25 minutes."""
_AFTER: Final = (
    """\
## Exercise: predict

A MERGE updates 700 rows, deletes 100 and inserts 200. How many rows does it move to the sinks with each paradigm? Write your numbers in place of `None`.

<details><summary>A solution</summary>

With DELETE_ROW_AND_INSERT_ROW an update is two rows: 1,400 + 100 + 200. With CHANGE_ONLY_UPDATED_COLUMNS it is one: 700 + 100 + 200.

```python
prediction = [1_700, 1_000]
```

</details>""",
    """\
prediction = [None, None]

changes = pd.DataFrame({"id": range(19_200, 20_200)})
compared = engine.compare(
    "MERGE INTO sales t USING changes s ON t.id = s.id WHEN MATCHED AND s.id < 19300 THEN DELETE"
    " WHEN MATCHED THEN UPDATE SET amount = 0 WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
    by="paradigms",
    namespace={"changes": changes},
)
moved = [
    sum(sum(writer.rows.values()) for writer in side.result.trace.writers)
    for side in (compared.left, compared.right)
]
"Right" if prediction == moved else "Not yet\"""",
    """\
engine.close()
workspace.cleanup()""",
)


def cells_of(page: str) -> list[nbformat.NotebookNode]:
    """Return the cells of the notebook: the texts and the code of the page, without results."""
    cells = []
    for number, piece in enumerate(_FENCE.split(_RESULT.sub("", page))):
        if number % 2:
            cells.append(new_code_cell(piece))
        elif prose := _for_notebook(piece.strip()):
            cells.append(new_markdown_cell(prose))
    cells[0].source += _BEFORE
    exercise, *code = _AFTER
    question = new_markdown_cell(exercise, metadata={"tags": ["solution"]})
    return [*cells, question, *map(new_code_cell, code)]


def _for_notebook(text: str) -> str:
    """Return a text whose links are those of the folder of notebooks."""
    text = text.replace("](../notebooks/", "](")
    return re.sub(r"\]\(([\w-]+\.md)", r"](../docs/\1", text)


def with_results(page: str, notebook: nbformat.NotebookNode) -> str:
    """Return the page with the results of the notebook below the code."""
    outputs = {cell.source: _text(cell) for cell in notebook.cells if cell.cell_type == "code"}

    def block(match: re.Match[str]) -> str:
        result = outputs[match[1]]
        return f"{match[0]}\n```text\n{result}\n```\n" if result else match[0]

    return _FENCE.sub(block, _RESULT.sub("", page))


def _text(cell: nbformat.NotebookNode) -> str:
    """Return what a cell shows, without the reports of statements."""
    texts = [
        output.text if output.output_type == "stream" else output.data["text/plain"]
        for output in cell.outputs
        if output.output_type in {"stream", "execute_result"}
    ]
    return "\n".join(line.rstrip() for line in "".join(texts).rstrip().split("\n"))


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    notebook = new_notebook(cells=cells_of(page))
    notebook.metadata["kernelspec"] = {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }
    NotebookClient(
        notebook,
        timeout=600,
        store_widget_state=False,
        resources={"metadata": {"path": str(NOTEBOOK.parent)}},
    ).execute()
    for number, cell in enumerate(notebook.cells):
        cell.id = f"design-{number}"
    nbformat.write(notebook, NOTEBOOK)
    PAGE.write_text(with_results(page, notebook), encoding="utf-8")


if __name__ == "__main__":
    main()
