"""Proofs of the project that only the project runs: random statements, an oracle, other engines,
and trials with killed processes.
"""
