"""Tables held as Arrow data by the driver: the store for trying, teaching and testing."""
