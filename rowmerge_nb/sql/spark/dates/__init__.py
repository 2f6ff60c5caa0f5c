"""Patterns of dates in Spark SQL."""
