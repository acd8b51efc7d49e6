"""The rolling software upgrade and its way back: what a version can read, what its files may hold, the order."""
