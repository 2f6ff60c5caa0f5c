"""Auditing what another engine has committed: the statement is evaluated on the table as it was, and compared with the table as it is."""
