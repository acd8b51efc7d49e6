"""The watch of the controller quorum."""
