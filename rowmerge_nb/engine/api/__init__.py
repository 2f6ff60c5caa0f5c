"""What users pass to statements and get from them: DataFrames, options, results, what-if."""
