"""Paths of JSON in Spark SQL."""
