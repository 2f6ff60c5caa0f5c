"""Queries that DuckDB answers from the pages of a table, in this process and without Spark."""
