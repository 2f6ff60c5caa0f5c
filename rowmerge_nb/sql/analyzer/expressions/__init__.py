"""Typed expressions: names bound, types checked, coercions added."""
