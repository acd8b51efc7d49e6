"""A broker that is gone for good, taken out of the metadata log."""
