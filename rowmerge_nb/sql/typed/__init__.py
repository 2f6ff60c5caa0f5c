"""Typed trees of expressions and queries, and Trino's rules on types."""
