"""The functions of Trino that expressions may call, by subject: what each is in Spark SQL, and those that DuckDB has alike."""
