"""A fault is written as step, call number, location and action; other forms are errors with a next step."""

from __future__ import annotations

import pytest

from rowmerge_nb import RowMergeError
from rowmerge_nb.engine.api.fault_option import fault_of, steps
from rowmerge_nb.engine.api.statement_options import Options
from rowmerge_nb.engine.tasks.strikes import noted
from rowmerge_nb.engine.tasks.task_faults import Fault, Watch, unwatched
from rowmerge_nb.testing.faults import FaultyConnector


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("finish", "call 1 of finish raised an error before its work"),
        ("store_merged_rows:2:after", "call 2 of store_merged_rows raised an error after its work"),
        (
            "store_merged_rows:2:after:kill",
            "call 2 of store_merged_rows killed its worker after its work; Spark runs such a task again",
        ),
        ("finish_merge:after:raise", "call 1 of finish_merge raised an error after its work"),
        ("commit:delay=0.5", "call 1 of commit waited 0.5 s before its work"),
        ("commit:3:delay", "call 3 of commit waited 2 s before its work"),
        ("commit:twice", "call 1 of commit was made twice"),
        ("get_next_page:2:twice", "call 2 of get_next_page returned its rows twice"),
    ],
)
def test_the_written_fault_occurs(text, what):
    assert fault_of(text).what == what
    assert fault_of(text).text == text


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "stor_merged_rows:2",
            "no contract step 'stor_merged_rows'",
            "Did you mean 'store_merged_rows'?",
        ),
        ("finish:2:aftr", "'aftr' is not possible there", "Did you mean 'after'?"),
        ("finish:2:after:rise", "'rise' is not possible there", "Did you mean 'raise'?"),
        ("finish:after:2", "'2' is not possible there", "Write STEP[:CALL]"),
        ("finish:0", "counted from 1", "Write STEP[:CALL]"),
        ("finish:", "'' is not possible there", "Write STEP[:CALL]"),
        ("finish:before:after", "'after' is not possible there", None),
        ("finish:after:twice", "'after' and 'twice' cannot be combined", None),
        ("commit:kill", "commit is called on the driver", "store_merged_rows"),
        ("finish:delay=soon", "'soon' is not a number of seconds", "delay=0.5"),
        ("finish:delay=nan", "'nan' is not a number of seconds", "delay=0.5"),
        ("finish:delay=-1", "'-1' is not a number of seconds", "delay=0.5"),
        ("close_all", "no contract step 'close_all'", None),
        ("get_procedures", "no contract step 'get_procedures'", None),
        ("  ", "fault", "store_merged_rows:2:after"),
        (7, "fault", "store_merged_rows:2:after"),
    ],
)
def test_an_invalid_fault_lists_the_valid_ones(text, message, hint):
    with pytest.raises(RowMergeError) as caught:
        Options().changed(fault=text)
    assert caught.value.code == "INVALID_ARGUMENTS"
    assert message in caught.value.message
    assert caught.value.hint
    assert hint is None or hint in f"{caught.value.message} {caught.value.hint}"


def test_every_step_of_tasks_and_the_coordinator_is_known():
    made = {
        *(
            "begin_transaction",
            "get_metadata",
            "begin_merge",
            "get_splits",
            "create_page_source",
            "get_next_page",
            "create_merge_sink",
        ),
        *(
            "store_merged_rows",
            "finish",
            "abort",
            "finish_merge",
            "commit",
            "rollback",
            "get_buckets",
            "append_page",
            "delete_rows",
        ),
    }
    assert made <= steps().keys()


class Store:
    """Counts requests."""

    calls = 0

    def commit(self):
        self.calls += 1
        return self.calls


def test_calls_that_are_not_watched_are_not_counted(tmp_path):
    store, watch = (
        Store(),
        Watch(str(tmp_path / "calls"), Fault("commit", call=1, twice=True, text="commit:twice")),
    )
    with unwatched():
        assert watch.call("commit", store.commit) == 1
    assert noted() == ""
    assert watch.call("commit", store.commit) == 3
    assert noted() == "commit:twice"
    assert watch.call("commit", store.commit) == 4
    assert watch.strikes.read_text() == "struck\n"


def test_reads_on_the_driver_are_not_killed():
    pytest.importorskip("pyspark")
    with pytest.raises(RowMergeError, match="made on the driver, which is not killed"):
        fault_of("get_next_page:kill").around(lambda: None, lambda: None)


def test_the_names_of_testing_are_those_of_the_machinery():
    from rowmerge_nb.engine.catalog import faulty
    from rowmerge_nb.testing import faults

    assert faults.FaultyConnector is faulty.FaultyConnector is FaultyConnector
