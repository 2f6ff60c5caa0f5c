"""The explorer in a real JupyterLab: clicks, keys, trials by the kernel, and a saved notebook without its kernel; and in Notebook 7."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nbformat
import pytest

from rowmerge_nb.demo import SETUP, STATEMENT
from tests.notebook.jupyterlab import Lab, Page, jupyterlab, opened
from tests.report.explorer_browser import needs_browser

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.slow, needs_browser]

CELLS = (
    "%load_ext rowmerge_nb",
    f"%%merge\n{SETUP.strip()}",
    f"%%merge --explore --show outcome\n{STATEMENT.strip()}",
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with jupyterlab(tmp_path_factory.mktemp("lab")) as lab:
        yield lab


@pytest.fixture(scope="module")
def page(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with opened(lab.write("merge.ipynb", CELLS), tmp_path_factory.mktemp("browser")) as page:
        lab.wait_for_kernel()
        page.until(
            "document.querySelector('.jp-Notebook-ExecutionIndicator').dataset.status === 'idle'"
        )
        page.run("jupyterapp.commands.execute('notebook:run-all-cells')")
        page.until("document.querySelector('.rx .rx-row')")
        yield page


def test_rows_and_steps_are_chosen_by_clicks_and_keys(page: Page) -> None:
    assert page.run("return document.querySelector('.rx-who').textContent").startswith("Aaron")
    page.run("document.querySelector('[data-key=row-1]').click()")
    page.until("document.querySelector('.rx-who').textContent.startsWith('Bill')")
    press = "new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true, cancelable: true })"
    page.run(
        f"document.querySelector('[data-key=step-case]').focus(); document.activeElement.dispatchEvent({press})"
    )
    page.until("document.querySelector('[aria-current=step]').textContent.startsWith('distinct')")
    # Lab's own shortcuts, such as deleting a cell by "d d", do not get the keys.
    page.run(
        "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'a', bubbles: true }))"
    )
    assert page.run("return document.querySelectorAll('.jp-CodeCell').length") == len(CELLS)


def test_another_paradigm_and_another_text_are_tried_by_the_kernel(page: Page) -> None:
    page.run("document.querySelector('[data-key=whatif]').click()")
    page.run("document.querySelector('[data-key=paradigm-CHANGE_ONLY_UPDATED_COLUMNS]').click()")
    page.until("document.querySelector('.rx-other').textContent.includes('Different from the run')")
    assert (
        page.run("return document.querySelector('[data-key=step-transform]').textContent")
        == "transform_page ≠"
    )
    page.run(
        "const text = document.querySelector('[data-key=if-statement]'); text.value = text.value.replace(\"'Berkeley'\", \"'Arches'\");"
        "text.dispatchEvent(new Event('input', { bubbles: true })); document.querySelector('[data-key=if-try]').click()"
    )
    page.until("document.querySelector('.rx-other').textContent.includes('2 rows change hands')")
    page.run(
        "const text = document.querySelector('[data-key=if-statement]'); text.value = 'MERGE INTO';"
        "text.dispatchEvent(new Event('input', { bubbles: true })); document.querySelector('[data-key=if-try]').click()"
    )
    page.until("document.querySelector('.rx-answer').textContent.includes('SYNTAX_ERROR')")
    page.run("document.querySelector('[data-key=if-back]').click()")
    page.until("!document.querySelector('.rx-tag')")
    assert page.run("return document.querySelector('[data-key=if-statement]').value").startswith(
        "MERGE INTO accounts"
    )


def test_cells_of_the_source_are_edited_and_tried_by_the_kernel(page: Page) -> None:
    page.run(
        "if (!document.querySelector('[data-key=if-cells]')) document.querySelector('[data-key=whatif]').click()"
    )
    page.until("document.querySelector('[data-key=if-cells]')")
    page.run("document.querySelector('[data-key=if-cells]').click()")

    def write(cell: str, text: str) -> None:
        page.run(
            f"const one = document.querySelector('[data-key={cell}]'); one.value = '{text}';"
            "one.dispatchEvent(new Event('change', { bubbles: true }))"
        )

    # Bill's row, which clause 0 deletes for its address.
    write("cell-1-address", "Boston")
    page.until(
        "document.querySelector('.rx-answer').textContent.includes('Bill: clause 0 DELETE → clause 2 UPDATE')"
    )
    assert page.run(
        "return [...document.querySelectorAll('.rx-edited')].map((one) => [one.value, one.title])"
    ) == [["Boston", "was Berkeley"]]
    page.run("document.querySelector('[data-key=null-1-customer]').click()")
    page.until("document.querySelector('.rx-answer').textContent.includes('clause 3 INSERT')")
    assert (
        page.run("return document.querySelector('[data-key=cell-1-customer]').placeholder")
        == "NULL"
    )
    write("cell-1-purchases", "many")
    page.until("document.querySelector('.rx-answer').textContent.includes(\"'many' is no\")")
    page.run("document.querySelector('[data-key=if-back]').click()")
    page.until("!document.querySelector('.rx-tag') && !document.querySelector('.rx-edited')")
    assert (
        page.run("return document.querySelector('[data-key=cell-1-address]').value") == "Berkeley"
    )


def test_a_guess_for_every_row_is_scored(page: Page) -> None:
    page.run("document.querySelector('[data-key=predict]').click()")
    page.until("document.querySelector('[data-key=pick-0]')")
    assert page.run("return document.querySelector('.rx-strip')") is None
    count = page.run("return document.querySelectorAll('.rx-row').length")
    for row in range(count):
        page.run(
            f"const one = document.querySelector('[data-key=pick-{row}]'); one.value = 'UPDATE';"
            "one.dispatchEvent(new Event('change', { bubbles: true })); await new Promise((done) => setTimeout(done, 50))"
        )
    page.run("document.querySelector('[data-key=predict]').click()")
    page.until("document.querySelector('.rx-rows').textContent.includes('3 of 6 right')")
    # Another statement has other outcomes, without guesses.
    page.run(
        "if (!document.querySelector('[data-key=if-statement]')) document.querySelector('[data-key=whatif]').click()"
    )
    page.until("document.querySelector('[data-key=if-statement]')")
    page.run(
        "const text = document.querySelector('[data-key=if-statement]'); text.value = text.value.replace(\"'Berkeley'\", \"'Arches'\");"
        "text.dispatchEvent(new Event('input', { bubbles: true })); document.querySelector('[data-key=if-try]').click()"
    )
    page.until("document.querySelector('.rx-rows').textContent.includes('do not count here')")
    assert page.run("return document.querySelector('.rx-right, .rx-wrong')") is None
    page.run("document.querySelector('[data-key=if-back]').click()")
    page.until("document.querySelector('.rx-rows').textContent.includes('3 of 6 right')")


def test_the_reasons_of_a_clicked_row_are_visible(page: Page) -> None:
    """At the size of a small laptop with the file browser open."""
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=1366,
        height=768,
        deviceScaleFactor=1,
        mobile=False,
    )
    row = "[...document.querySelectorAll('.rx-row')].at(-1)"
    page.run(f"{row}.click()")
    page.until("document.querySelector('.rx-row:last-child[aria-selected=true]')")
    width = "document.querySelector('.rx').offsetWidth"
    page.until(f"800 < {width} && {width} < 980")
    # The notebook is laid out again for the smaller window, with a delay: content scrolled
    # before moves again. With the row at the foot of the window, the reasons are visible.
    box = "document.querySelector('.rx-panel .rx-gist').getBoundingClientRect()"
    page.until(
        f"{row}.scrollIntoView({{ block: 'end' }}),"
        " await new Promise((done) => setTimeout(done, 200)),"
        f" {box}.top > 90 && {box}.bottom < 740 && {box}.top < {box}.bottom"
    )
    # The report above has the headline.
    assert page.run("return document.querySelector('.rx .rm-out')") is None
    page.call("Emulation.clearDeviceMetricsOverride")


def test_a_saved_notebook_shows_it_again_without_its_kernel(lab: Lab, page: Page) -> None:
    assert page.run("return document.querySelector('.rx-saved').offsetHeight") == 0
    page.run("jupyterapp.shell.activateById(document.querySelector('.jp-NotebookPanel').id)")
    page.until("jupyterapp.shell.currentWidget")
    page.run("await jupyterapp.commands.execute('docmanager:save')")
    file = lab.folder / "merge.ipynb"
    # The state of widgets is not saved by default: the output has the explorer.
    assert "application/vnd.jupyter.widget-state+json" not in file.read_text("utf-8")
    book = nbformat.read(file, as_version=4)
    book.cells[0].source += "  # by somebody else, so not trusted here"
    nbformat.write(book, lab.folder / "untrusted.ipynb")
    lab.stop_kernels()
    page.open("about:blank")
    page.open(f"{lab.address}/lab/tree/merge.ipynb?reset")
    frame = "document.querySelector('.rx-saved iframe').contentDocument"
    page.run(
        "for (let tries = 0; tries < 300 && !document.querySelector('.rx-saved'); tries += 1)"
        " await new Promise((done) => setTimeout(done, 100));"
        "document.querySelector('.rx-saved').scrollIntoView()"
    )
    page.until(f"{frame}.querySelector('.rx .rx-row')")
    page.run(f"{frame}.querySelector('[data-key=row-2]').click()")
    page.until(f"{frame}.querySelector('.rx-who').textContent.startsWith('Carol')")
    # The results of other options are in the notebook.
    page.run(f"{frame}.querySelector('[data-key=era-current]').click()")
    page.until(f"{frame}.querySelector('.rx-other').textContent.includes('Different from the run')")
    assert page.run(f"return {frame}.querySelector('[data-key=step-case]').textContent") == "CASE ≠"
    # No error of the widget, no second scroll bar, and no table beside the explorer.
    page.until(
        "[...document.querySelectorAll('.jp-OutputArea-child')]"
        ".every((one) => !one.textContent.includes('Error displaying') || one.offsetHeight === 0)"
    )
    assert page.run(
        "const one = document.querySelector('.rx-saved iframe');"
        "return one.offsetHeight >= one.contentDocument.body.scrollHeight"
    )
    assert page.run("return document.querySelector('.rx-still').offsetHeight") == 0


def test_an_untrusted_notebook_has_a_table_of_the_rows(lab: Lab, page: Page) -> None:
    page.open("about:blank")
    page.open(f"{lab.address}/lab/tree/untrusted.ipynb?reset")
    page.until("document.querySelector('.rx-still').offsetHeight > 100")
    assert page.run("return document.querySelector('.rx-saved iframe')") is None
    rows = page.run(
        "return [...document.querySelectorAll('.rx-still tr')].map((row) => row.textContent)"
    )
    assert rows[2].startswith("Bill, 9, BerkeleyDELETEClause 0 fires: s.address = 'Berkeley'")


@pytest.mark.trial
def test_notebook_7_shows_it_and_its_kernel_answers(lab: Lab, tmp_path: Path) -> None:
    lab.write("classic.ipynb", CELLS)
    with opened(f"{lab.address}/notebooks/classic.ipynb", tmp_path) as page:
        page.until("jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'")
        page.run("jupyterapp.commands.execute('notebook:run-all-cells')")
        page.until("document.querySelector('.rx .rx-row')")
        page.run("document.querySelector('[data-key=row-1]').click()")
        page.until("document.querySelector('.rx-who').textContent.startsWith('Bill')")
        page.run("document.querySelector('[data-key=whatif]').click()")
        page.run(
            "const text = document.querySelector('[data-key=if-statement]'); text.value = text.value.replace(\"'Berkeley'\", \"'Arches'\");"
            "text.dispatchEvent(new Event('input', { bubbles: true })); document.querySelector('[data-key=if-try]').click()"
        )
        page.until(
            "document.querySelector('.rx-other').textContent.includes('2 rows change hands')"
        )
