"""What was seen and done in a run: its records, where they are kept, and how a person reads them."""
