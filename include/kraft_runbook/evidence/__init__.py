"""What a run observed and did: its records, their storage, and their pages."""
