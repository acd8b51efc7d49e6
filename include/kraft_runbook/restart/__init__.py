"""Rolling restart: brokers, controllers or both, one by one, in any phase, with the files that they have."""
