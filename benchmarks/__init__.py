"""Measurements: ratios to other engines in one run, never a time that a test asserts."""
