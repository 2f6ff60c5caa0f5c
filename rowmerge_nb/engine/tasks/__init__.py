"""What runs in a Spark task: it pickles, may run twice, and may end early. It imports the contract, errors and traces, and nothing of the driver."""
