"""ORC files of transactional tables, including what Arrow does not read or write."""
