"""ORC files of transactional tables."""
