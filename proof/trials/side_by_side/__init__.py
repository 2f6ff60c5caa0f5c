"""Concurrent mixed statements, with a ledger of the expected rows: ``python -m
proof.trials.side_by_side``.
"""
