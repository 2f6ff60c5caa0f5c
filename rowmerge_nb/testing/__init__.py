"""Tools to test a connector: the contract kit, injected faults, and interleaved statements."""
