"""From the tree to meaning: names bound, expressions typed and coerced, errors as Trino reports
them.
"""
