"""ORC files of transactional tables, and what of them Arrow does not read or write."""
