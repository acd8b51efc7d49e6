"""Feature levels up and down (KIP-584, KIP-778): what a change does, would lose, and what stands in its way."""
