"""Tables of relational databases, through ADBC: Arrow in and out. Trino calls this a JDBC connector.

`database` abstracts from SQLite and PostgreSQL, which have folders of their own. Reading, staging and applying changes are shared.
"""
