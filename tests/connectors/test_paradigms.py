from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import ConnectorError, Engine, HiveAcidConnector, IcebergConnector


@pytest.mark.parametrize("store", [HiveAcidConnector, IcebergConnector])
def test_a_paradigm_that_the_store_does_not_have_is_refused(tmp_path: Path, store: Any) -> None:
    connector = store(tmp_path)
    with Engine() as engine:
        engine.add_catalog("store", connector)
        engine.run("CREATE TABLE store.default.t (id bigint)")
        with pytest.raises(ConnectorError) as caught:
            engine.run(
                "DELETE FROM store.default.t WHERE id = 1",
                paradigm="CHANGE_ONLY_UPDATED_COLUMNS",
                dry_run=True,
            )
    paradigms = "uses DELETE_ROW_AND_INSERT_ROW; it does not support CHANGE_ONLY_UPDATED_COLUMNS"
    assert caught.value.message == f"Connector '{connector.name}' {paradigms}"
    assert caught.value.hint == "Omit the option 'paradigm'."
