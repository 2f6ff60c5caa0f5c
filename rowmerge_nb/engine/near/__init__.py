"""Why rows of a MERGE were not matched: the keys of the other side that are nearest to theirs."""
