"""What an operator declares of a cluster, what is observed of it, and each node's properties in each mode. Pure."""
