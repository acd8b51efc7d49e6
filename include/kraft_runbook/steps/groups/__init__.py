"""The steps of a run that moves consumer groups."""
