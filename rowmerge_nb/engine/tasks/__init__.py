"""Code that runs in Spark tasks: it pickles, may run twice, and may end early."""
