"""Spark: starting it, its settings, its executors, its jobs, and a plan as DataFrames."""
