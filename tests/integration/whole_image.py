"""A metadata image and a replay of the log as a whole, for tests: the product asks for parts of them only."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_runbook.metadata import canonical_rows
from kraft_runbook.metadata.canonical_rows import Row
from kraft_runbook.metadata.image.image import TOPIC_RESOURCE, MetadataImage
from kraft_runbook.metadata.image.log_replay import LogReplay, Version


def topics_of(image: MetadataImage) -> set[str]:
    """The topics that have a row."""
    image.thaw_all()
    return {*image.topic_ids, *(name for resource, name in image.configs if resource == TOPIC_RESOURCE)}


def every_row(image: MetadataImage) -> Iterator[Row]:
    for name in topics_of(image):
        yield from image.rows_of_topic(name)
    yield from image.rows_beside_topics()


def every_version(replay: LogReplay) -> Iterator[Version]:
    """Every key's values from M to E. A key that was not touched has those it has now."""
    touched = {canonical_rows.parse_key(key)[0] for kind, key in replay.touched if kind.is_of_a_topic}
    yield from replay.versions_of_topics(topics_of(replay.image) | touched)
    yield from replay.versions_beside_topics()
