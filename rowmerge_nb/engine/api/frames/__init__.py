"""DataFrames that users hand in, as SQL tables."""
