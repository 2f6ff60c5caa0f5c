"""What a connector developer proves a connector with: the contract kit, and faults on purpose."""
