"""What happened while a statement ran, as plain data, and readings of it. Needs neither Spark nor the engine."""
