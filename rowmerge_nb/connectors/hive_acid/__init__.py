"""Hive's transactional tables: full ACID on ORC files, changed by DELETE_ROW_AND_INSERT_ROW."""
