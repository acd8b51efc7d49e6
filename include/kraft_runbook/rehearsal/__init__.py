"""A rehearsal of the migration with a cluster's own metadata: what its copy holds, what changed at the source since."""
