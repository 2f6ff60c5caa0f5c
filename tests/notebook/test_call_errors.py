"""Calls with wrong arguments, as printed by a cell."""

from __future__ import annotations

import pytest

BEFORE = "import rowmerge_nb as rm\nengine = rm.Engine()\n"


@pytest.fixture
def printed(shell, capsys):
    shell.run_line_magic("load_ext", "rowmerge_nb")

    def run(code: str) -> list[str]:
        capsys.readouterr()
        shell.run_cell(code)
        return capsys.readouterr().out.rstrip().split("\n")

    yield run
    shell.run_line_magic("unload_ext", "rowmerge_nb")
    assert shell.custom_exceptions == ()


def test_a_wrong_call_prints_message_arguments_and_the_line_of_the_cell(printed):
    assert printed(f"{BEFORE}engine.explain()") == [
        "TypeError: Engine.explain() missing 1 required positional argument: 'sql'",
        "The arguments are (sql, *, kind='DISTRIBUTED', **options).",
        "",
        "Line 3 of the cell: engine.explain()",
        "%tb shows the traceback.",
    ]
    assert printed("%tb")[0] == "Traceback (most recent call last):"


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        ("rm.run()", "The arguments are (sql, **options)."),
        ("from rowmerge_nb import lab\nlab(1, 2)", "The arguments are (sql=None, **arguments)."),
        ("rm.Engine(coers=2)", "Did you mean 'cores'? The arguments are (*, spark=None,"),
        ("rm.MemoryConnector(1, 2, 3)", "The arguments are (keep_versions=5,"),
        ("def f():\n    engine.run()\nf()", "The arguments are (sql, **options)."),
    ],
)
def test_each_kind_of_call_has_its_arguments(printed, call, hint):
    lines = printed(f"{BEFORE}{call}")
    assert lines[0].startswith("TypeError: ")
    assert lines[1].startswith(hint)
    assert len(lines) <= 6


@pytest.mark.parametrize(
    "code",
    [
        "def run(): pass\nrun(1)",
        "import types\nmine = types.SimpleNamespace(run=lambda: 1)\nmine.run(2)",
        "class Engine:\n    def run(self): pass\nEngine().run(1)",
        "'a' + 1",
        "engine.run(*1)",
        "class Mine(rm.MemoryConnector):\n    def __init__(self): super().__init__(a=1)\nMine(5)",
    ],
)
def test_an_error_of_code_of_the_user_keeps_its_traceback(printed, code):
    lines = printed(f"{BEFORE}{code}")
    assert "Traceback (most recent call last)" in lines[1]


def test_a_handler_of_the_user_stays(shell):
    shell.set_custom_exc((TypeError,), lambda *arguments, **named: None)
    handler = shell.CustomTB
    shell.run_line_magic("load_ext", "rowmerge_nb")
    assert shell.CustomTB is handler
    shell.set_custom_exc((), None)
    shell.run_line_magic("unload_ext", "rowmerge_nb")
