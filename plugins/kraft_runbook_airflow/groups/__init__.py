"""Tasks that move consumer groups: the plan and its gate, the owner of the application, the watch, the acts."""
