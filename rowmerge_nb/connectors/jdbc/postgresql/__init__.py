"""PostgreSQL: a server's database."""
