"""Tables as Arrow data in the driver's memory, for trials, teaching and tests."""
