"""Errors of Spark and of connectors under Trino's names, and where in the statement they stand."""
