"""Kafka's own message files of the metadata records, as they lie in kafka-metadata-4.4.0.jar (Apache License 2.0).

A newer release reads what every release before it wrote, so the newest files serve them all. To take in another
release: ``unzip -o -j kafka-metadata-VERSION.jar 'common/metadata/*Record.json' -d
include/kraft_runbook/metadata/log/schemas``.
"""

NEWEST = "4.4"
"""The release whose files these are."""
