"""Spark's Java: which runtime there is, what it is started with, and the cache of its classes."""
