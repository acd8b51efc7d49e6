"""The metadata that a log adds up to."""
