"""The end of a host's log."""

from __future__ import annotations

from rowmerge_nb.connectors.trino.host_log import HostLog
from rowmerge_nb.connectors.trino.trino_errors import terminated


def test_a_log_has_the_last_lines_of_an_end_without_a_reason(tmp_path):
    path = tmp_path / "log"
    path.write_text("one\n\ntwo\n  three\nfour\n")
    assert HostLog(path).last_words() == "two / three / four"
    assert HostLog(tmp_path / "none").last_words() == ""


def test_a_log_has_the_reason_before_lines_that_came_later(tmp_path):
    path = tmp_path / "log"
    path.write_text(
        "FINE: Runtime.exit() called with status: 3\n"
        "\tat java.base/java.lang.Runtime.exit(Runtime.java:1)\n"
        "\tat shelf//shop.Codes.check(Codes.java:7)\n"
        "a later line\n"
    )
    words = "FINE: Runtime.exit() called with status: 3 / at shop.Codes.check(Codes.java:7)"
    assert HostLog(path).last_words() == words


def test_a_long_log_is_emptied_and_a_short_one_is_not(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"x" * 1000)
    log = HostLog(path)
    log.shorten()
    assert path.stat().st_size == 1000
    with path.open("r+b") as file:
        file.truncate(17 * 1024 * 1024)
    log.shorten()
    assert path.stat().st_size == 0


def test_an_end_without_memory_names_how_to_add_memory():
    error = terminated("exit code 3", "Terminating due to java.lang.OutOfMemoryError: Java heap")
    assert "java_options=['-Xmx2g']" in str(error.hint)


def test_an_end_before_the_plugin_is_ready_names_what_may_be_wrong():
    error = terminated("exit code 1", "Too small maximum heap", was_ready=False)
    assert str(error.hint).startswith("It ended before it was ready: check java_options")
