"""The metastores: the embedded one, and Hive's own, spoken to by thrift."""
