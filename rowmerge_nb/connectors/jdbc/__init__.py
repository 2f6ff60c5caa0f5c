"""Tables of relational databases, through ADBC: Arrow in and out. What Trino calls a JDBC connector.

`store` is what a database is to this package; the folders `sqlite` and `postgresql` are the two there are. Reading (`reading`), staging
(`staging`) and applying (`changes`) are written once for both.
"""
