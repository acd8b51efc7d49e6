"""Requests that kafka-python has no schema for, in its own JSON form: FetchSnapshot, and the two by which a broker
registers and keeps alive (KIP-631), from Kafka 3.9's own schemas.
"""
