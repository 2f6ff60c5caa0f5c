"""Runs recorded cases and prints unexpected answers, or writes the page about differences.

Usage: python -m tests.goldens_on_spark [--page] [case or theme ...]
"""

from __future__ import annotations

import sys

from rowmerge_nb.engine.spark.spark_session import create_session, stop_session
from tests.goldens_on_spark.departures import DEPARTURES, PAGE, page
from tests.goldens_on_spark.support import Answer, Server, expected_answer, recorded_cases
from tests.goldens_on_spark.test_goldens_on_spark import placed_like


def main(arguments: list[str]) -> int:
    if "--page" in arguments:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    chosen = [
        case
        for case in recorded_cases()
        if not arguments or {case["id"], case["theme"]} & set(arguments)
    ]
    spark = create_session(cores=2)
    wrong = 0
    with Server(spark) as server:
        for case in chosen:
            departure = DEPARTURES.get(case["id"])
            expected = expected_answer(case, departure["expect"] if departure else None)
            answer = placed_like(server.answer(case), expected)
            if answer != expected:
                wrong += 1
                print(
                    f"{case['theme']}/{case['id']}: expected {_shown(expected)}, got {_shown(answer, expected)}",
                    flush=True,
                )
    print(f"{wrong} of {len(chosen)} answers are not the expected ones")
    stop_session(spark)
    return bool(wrong)


def _shown(answer: Answer, expected: Answer | None = None) -> str:
    if answer.error is None:
        return f"{answer.count} rows changed: {' '.join(answer.rows)}"
    unchanged = (
        "" if expected is None or answer.rows == expected.rows else " (and the target changed)"
    )
    return f"{answer.error}{unchanged}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
