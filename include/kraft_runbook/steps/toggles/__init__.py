"""The steps of a run that toggles one group, of one that toggles many, their waits, and the watch."""
