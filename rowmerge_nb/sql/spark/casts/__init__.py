"""Casts in Spark SQL."""
