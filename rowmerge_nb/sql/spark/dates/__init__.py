"""Date and time functions in Spark SQL."""
