"""How things are written for readers: sentences with roles, values, columns of a fixed-width font."""
