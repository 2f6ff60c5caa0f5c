"""Hive's transactional tables: full ACID on ORC files, with DELETE_ROW_AND_INSERT_ROW."""
