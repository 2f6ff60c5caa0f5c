"""Measurements: ratios against other engines in one run, never a time that a test asserts."""
