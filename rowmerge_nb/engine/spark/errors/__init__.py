"""Errors of Spark and of connectors in Trino's words, and their positions in the statement."""
