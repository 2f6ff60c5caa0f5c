"""The nearest keys of unmatched rows of a MERGE."""
