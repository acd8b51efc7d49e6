"""The steps of a run that moves replicas: the plan, its gate, the moves, cancelling, the watch."""
