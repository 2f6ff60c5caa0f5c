"""Errors of a connector's code as shown: equal errors once, and the cause of each."""

from __future__ import annotations

from dataclasses import replace

from rowmerge_nb.engine.tasks.call_frames import raised_by
from rowmerge_nb.report.model.raised import all_raised, raised_text
from rowmerge_nb.trace.raised import CodeFrame, Raised, as_text, of_text, remote_traceback

LINE = CodeFrame(
    "shop.py", 34, "finish", ((33, "def finish(self):"), (34, "    return self.fragmnts"), (35, ""))
)
FIRST = Raised(
    "finish", "writer", 0, 1, "AttributeError", "no fragmnts", (LINE,), handle="Merge(t)"
)


def test_an_error_of_several_writers_in_one_line_is_shown_once() -> None:
    others = [replace(FIRST, number=number) for number in (1, 2)]
    elsewhere = replace(FIRST, number=3, frames=(replace(LINE, line=33),))
    shown = all_raised([FIRST, *others, elsewhere, replace(FIRST, text="no fragments")])
    assert [one.where for one in shown] == [
        "call 1 of writer 0, and 2 other calls",
        "call 1 of writer 3",
        "call 1 of writer 0",
    ]
    # A handle is shown with the first of its errors.
    assert [one.handle for one in shown] == ["Merge(t)", "", ""]
    assert all_raised([FIRST, others[0]])[0].where == "call 1 of writer 0, and 1 other call"


def test_errors_of_several_calls_are_shown_apart() -> None:
    assert len(all_raised([FIRST, replace(FIRST, method="abort")])) == 2
    assert len(all_raised([FIRST, replace(FIRST, caller="split")])) == 2


def looked_up(name: str) -> int:
    return {"name": 1}[name]


def explicit() -> None:
    try:
        looked_up("nmae")
    except KeyError as error:
        raise ValueError("no such column") from error


def implicit() -> None:
    try:
        explicit()
    except ValueError:
        raise OSError("the disk is full")  # noqa: B904 - it is what is looked at


def silent() -> None:
    try:
        explicit()
    except ValueError:
        raise OSError("the disk is full") from None


def raised(function: object, method: str = "finish") -> Raised:
    try:
        function()  # type: ignore[operator]
    except Exception as error:  # noqa: BLE001 - whatever it is
        found = raised_by(error, method, caller="writer", number=0)
    assert found is not None
    return found


def test_an_error_is_shown_with_its_cause() -> None:
    found = raised(implicit)
    assert [(cause.what, cause.direct) for cause in found.causes] == [
        ("ValueError: no such column", False),
        ("KeyError: 'nmae'", True),
    ]
    assert [frame.function for frame in found.causes[1].frames] == ["explicit", "looked_up"]
    assert found.causes[1].frames[-1].text == 'return {"name": 1}[name]'
    lines = raised_text(all_raised([found])[0], 99)
    at = lines.index("Raised while handling this error: ValueError: no such column")
    assert lines[at + 3].startswith("Raised from KeyError: 'nmae'")
    assert lines[-1].endswith('in looked_up: return {"name": 1}[name]')
    # Python lists them from the inside out.
    text = remote_traceback(found)
    places = [
        text.index(words)
        for words in (
            "KeyError: 'nmae'",
            "direct cause of",
            "ValueError: no such",
            "During handling of",
            "OSError: the disk is full",
        )
    ]
    assert places == sorted(places)
    assert text.count("Traceback (most recent call last):") == 3
    assert of_text(f"... {as_text(found)} ...") == (found,)


def test_suppressed_errors_are_not_shown() -> None:
    assert raised(silent).causes == ()


def test_the_error_before_a_clean_up_call_is_not_the_cause_of_its_error() -> None:
    assert raised(implicit, "abort").causes == ()
    assert [cause.what for cause in raised(explicit, "abort").causes] == ["KeyError: 'nmae'"]


def test_causes_in_a_ring_end() -> None:
    one, other = ValueError("one"), ValueError("other")

    def ring() -> None:
        one.__cause__, other.__cause__ = other, one
        raise one

    assert [cause.what for cause in raised(ring).causes] == ["ValueError: other"]
