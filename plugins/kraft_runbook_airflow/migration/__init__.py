"""The migration's tasks, forward and back."""
