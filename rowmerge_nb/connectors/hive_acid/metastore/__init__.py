"""The embedded metastore, and a client of Hive's own by Thrift."""
