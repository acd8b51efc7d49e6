"""Tasks that move replicas: the plan, its gate, the moves, cancelling, the watch."""
