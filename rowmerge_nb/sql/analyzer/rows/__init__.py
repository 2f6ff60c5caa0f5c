"""The rows of VALUES: constants as columns of data, and computed rows."""
