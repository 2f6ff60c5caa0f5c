"""``python -m rowmerge_nb.demo``: the documents' MERGE in both paradigms, as text and as a web
page.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rowmerge_nb.base.errors import RowMergeError

if TYPE_CHECKING:
    from rowmerge_nb.engine.api.result import Result

CREATE = """CREATE TABLE accounts (
    customer VARCHAR,
    purchases DECIMAL,
    address VARCHAR)
{properties};
INSERT INTO accounts (customer, purchases, address) VALUES
    ('Aaron', 5, 'Antioch'), ('Bill', 7, 'Buena'), ('Carol', 3, 'Cambridge'),
    ('Dave', 11, 'Devon'), ('Joe Shmoe', 12, 'Jamestown')"""

SETUP = f"""DROP TABLE IF EXISTS accounts;
DROP TABLE IF EXISTS monthly_accounts_update;
{CREATE.format(properties="WITH (partitioned_by = ARRAY['address'])")};
CREATE TABLE monthly_accounts_update (
    customer VARCHAR,
    purchases DECIMAL,
    address VARCHAR);
INSERT INTO monthly_accounts_update (customer, purchases, address) VALUES
    ('Aaron', 6, 'Arches'), ('Bill', 9, 'Berkeley'), ('Carol', 9, 'Centreville'),
    ('Ed', 7, 'Etherville'), ('Gus', 2, 'Gilroy'), ('Joe Shmoe', 4, 'Jamestown')"""
"""The tables of the documents' example with rows of our own; the target is partitioned, so that
rows move between writers.
"""

STATEMENT = """MERGE INTO accounts t USING monthly_accounts_update s
    ON (t.customer = s.customer)
    WHEN MATCHED AND s.address = 'Berkeley' THEN
        DELETE
    WHEN MATCHED AND s.customer = 'Joe Shmoe' THEN
        UPDATE SET purchases = purchases + 100.0
    WHEN MATCHED THEN
        UPDATE
            SET purchases = s.purchases + t.purchases, address = s.address
    WHEN NOT MATCHED THEN
        INSERT (customer, purchases, address)
            VALUES (s.customer, s.purchases, s.address)"""
"""The documents' MERGE, verbatim."""


_INTRODUCTION = (
    "The same MERGE ran twice on five customers and six rows of monthly updates, once in each"
    " paradigm. Each report says what changed, and which clause took which row. Open the folds below"
    " for the pages and the calls. To follow a single row, open notebooks/00_start_here.ipynb."
)

_SENTENCES = {
    "DELETE_ROW_AND_INSERT_ROW": (
        "For stores that cannot change a row in place: transform_page turns each UPDATE into a"
        " DELETE and an INSERT."
    ),
    "CHANGE_ONLY_UPDATED_COLUMNS": (
        "For stores that change a row in place: an UPDATE stays one row, all of its columns filled."
    ),
}


def run() -> list[Result]:
    """Run the documents' MERGE on fresh tables, and return a result per paradigm."""
    from rowmerge_nb.engine.engine import Engine
    from rowmerge_nb.spi.operations import RowChangeParadigm

    results = []
    with Engine() as engine:
        for paradigm in reversed(RowChangeParadigm):
            engine.run_script(SETUP)
            results.append(engine.run(STATEMENT, paradigm=paradigm))
    return results


def main() -> None:
    """Print what changed, and write the page."""
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__)
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("demo.html"),
        help="where the page goes (default: demo.html)",
    )
    path = parser.parse_args().output

    from rowmerge_nb.report.html import PageEntry, render_page
    from rowmerge_nb.report.model.report import build_report
    from rowmerge_nb.report.plain_text import render_text

    try:
        results = run()
    except RowMergeError as error:
        sys.exit(str(error))
    for result, show in zip(results, ("short,clauses", "short"), strict=True):
        print(f"{render_text(build_report(result.trace), show=show)}\n")
    page = [
        PageEntry(
            result.trace, result.trace.settings.paradigm, _SENTENCES[result.trace.settings.paradigm]
        )
        for result in results
    ]
    try:
        path.write_text(
            render_page(page, "One MERGE in two row change paradigms", _INTRODUCTION),
            encoding="utf-8",
        )
    except OSError as error:
        sys.exit(
            f"The page cannot be written to '{path}': {error.strerror}. Name another file with"
            " --output."
        )
    print(
        f"Open {path} in a browser: it has the plan, the row journeys, the pages and the calls of"
        " both runs.\nTo follow a row step by step, open notebooks/00_start_here.ipynb in Jupyter."
    )


if __name__ == "__main__":
    main()
