"""How roles work together, in terms of the executor contract alone."""
