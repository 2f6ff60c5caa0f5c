"""docs/design.md and its notebook: the same questions, code and results. Tests of notebooks run the notebook."""

from __future__ import annotations

import re

import nbformat

from tests.notebook.design_notebook import NOTEBOOK, PAGE, cells_of, with_results


def test_the_notebook_has_the_texts_and_the_code_of_the_page() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert [(cell.cell_type, cell.source) for cell in notebook.cells] == [
        (cell.cell_type, cell.source) for cell in cells_of(PAGE.read_text(encoding="utf-8"))
    ]


def test_the_page_has_the_results_of_the_notebook() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_results(page, nbformat.read(NOTEBOOK, as_version=4))


def test_each_question_has_code_and_numbers_before_the_sentence_that_reads_them() -> None:
    _, *sections = PAGE.read_text(encoding="utf-8").split("\n## ")
    assert len(sections) == 10
    for section in sections:
        question, _, rest = section.partition("\n")
        *_, result, reading = re.split(r"```(?:text)?\n", rest)
        assert question.endswith("?")
        assert re.search(r"\d", result), question
        assert re.search(r"\d", reading.strip().partition("\n\n")[0]), question
