"""Traces of statements as plain data, and derived readings. Needs neither Spark nor the engine."""
