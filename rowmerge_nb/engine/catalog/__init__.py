"""What a statement knows of the world: names, connectors' transactions, DataFrames, views."""
