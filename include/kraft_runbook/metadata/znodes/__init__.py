"""Kafka's znodes: what their names and bytes say, and what is wrong with them."""
