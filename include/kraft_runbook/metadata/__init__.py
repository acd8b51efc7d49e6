"""Kafka's metadata as canonical rows: from znodes, from the metadata log, and their comparison. Pure: values in, values
out.
"""
