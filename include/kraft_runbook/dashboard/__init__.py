"""Where each cluster stands, from files alone: the looks that tasks leave, the evidence, the claim, the samples."""
