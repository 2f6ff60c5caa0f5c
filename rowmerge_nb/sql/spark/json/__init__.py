"""JSON functions in Spark SQL."""
