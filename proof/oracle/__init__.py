"""An executable reading of the standard: statements one row at a time, in plain Python."""
