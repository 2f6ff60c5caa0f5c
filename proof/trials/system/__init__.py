"""Faults of the machine while the real engine runs: ``python -m proof.trials.system``."""
