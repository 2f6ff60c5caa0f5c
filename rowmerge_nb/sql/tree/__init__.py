"""Statements as they were written: the tree that the parser makes; names are not resolved yet."""
