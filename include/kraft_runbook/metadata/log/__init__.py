"""The metadata log's bytes: batches, records, their schemas and columns."""
