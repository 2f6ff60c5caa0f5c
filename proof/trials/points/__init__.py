"""A fault at every disk or database operation of a MERGE, store by store, and what the table holds afterwards."""
