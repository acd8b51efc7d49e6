"""The tasks of a rolling restart."""
