"""From the tree to meaning: names bound to tables and columns, expressions typed and coerced, errors as and where Trino reports them."""
