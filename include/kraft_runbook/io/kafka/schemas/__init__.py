"""Requests that kafka-python has no schema for, in its own JSON form."""
