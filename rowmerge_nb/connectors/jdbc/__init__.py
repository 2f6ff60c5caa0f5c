"""Tables of relational databases through ADBC, which Trino calls a JDBC connector.

`database` is the interface; `sqlite` and `postgresql` implement it.
"""
