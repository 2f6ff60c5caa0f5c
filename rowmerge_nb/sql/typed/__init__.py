"""Typed expressions: every node has its type, and nothing in them is text of one engine. And Trino's rules on types."""
