"""From a statement's tree to its meaning, one file per kind of statement."""
