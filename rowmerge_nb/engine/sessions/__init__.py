"""A session of statements, and running one of them."""
