"""Requests that kafka-python has no schema for, in its own JSON form: FetchSnapshot, those by which a broker
registers and keeps alive, that by which it is unregistered (KIP-631), and those that change the voters of a dynamic
quorum (KIP-853), from Kafka 3.9's own schemas.
"""
