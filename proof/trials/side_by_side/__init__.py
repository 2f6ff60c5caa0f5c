"""Mixed statements side by side, with a ledger of what must be there: ``python -m proof.trials.side_by_side``."""
