"""Moving replicas between brokers (KIP-455): goals, plans of least movement, batches, and what may go wrong. Pure."""
