"""Queries as EXPLAIN shows them: their nodes, how a query's tree becomes them, what Trino's optimizer makes of them, how they are printed."""
