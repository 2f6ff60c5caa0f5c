"""The engine: runs plans on Spark, drives connectors, and records what happened."""
