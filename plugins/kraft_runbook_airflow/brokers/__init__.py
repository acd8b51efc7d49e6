"""A broker that is gone for good."""
