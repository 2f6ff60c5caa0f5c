"""Hive's transactional tables: full ACID on ORC files, changed by DELETE_ROW_AND_INSERT_ROW."""

from rowmerge_nb.connectors.hive_acid.connector import HiveAcidConnector

__all__ = ["HiveAcidConnector"]
