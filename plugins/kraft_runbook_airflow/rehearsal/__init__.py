"""Rehearsals of the migration, on a schedule."""
