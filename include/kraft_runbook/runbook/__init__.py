"""What every operation is made of: checks, conditions, gates, the table of what may happen next."""
