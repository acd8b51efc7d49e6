"""What every operation's tasks are made of."""
