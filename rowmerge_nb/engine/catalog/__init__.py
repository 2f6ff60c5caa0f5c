"""The surroundings of a statement: names, connectors' transactions, DataFrames, views."""
