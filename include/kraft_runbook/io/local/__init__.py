"""A cluster whose every process is on this machine: where its things lie, what runs them, and what they need."""
