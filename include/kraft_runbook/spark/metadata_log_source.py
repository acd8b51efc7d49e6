"""The Spark data source ``metadata_log``: every key with each value the log gave it from offset M to E, read from the active controller."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from kraft_runbook.clients.quorum_facts import replay_log
from kraft_runbook.metadata.metadata_log import Version
from kraft_runbook.spark.arrow_rows import VERSION_SCHEMA, version_batches
from kraft_runbook.spark.progress import LogProgress
from kraft_runbook.spark.source_options import Sealed


class MetadataLogSource(DataSource):
    """Options: those of ``Sealed``; ``start`` (M), ``end`` (E), ``leader`` and ``epoch`` (of DescribeQuorum).

    ``topics``: a JSON list of names, for their versions row by row; without it each topic is one row. ``beside`` "false": nothing that is not of a topic.
    One partition: a log is read in order.
    """

    @classmethod
    def name(cls) -> str:
        return "metadata_log"

    def schema(self) -> str:
        return VERSION_SCHEMA

    def reader(self, schema: object) -> MetadataLogSourceReader:
        return MetadataLogSourceReader(dict(self.options))


class MetadataLogSourceReader(DataSourceReader):
    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = options

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return version_batches(self._versions())

    def _versions(self) -> Iterator[Version]:
        sealed = Sealed.from_options(self.options)
        start, end, leader, epoch = (int(self.options[name]) for name in ("start", "end", "leader", "epoch"))
        replay = replay_log(
            sealed.spec,
            leader,
            epoch,
            start=start,
            end=end,
            fingerprints=sealed.decoding.fingerprints,
            secrets=sealed.secrets,
            progress=LogProgress(end).told,
        )
        yield from replay.versions_of_topics(json.loads(self.options["topics"])) if "topics" in self.options else replay.whole_topics()
        if self.options.get("beside") != "false":
            yield from replay.versions_beside_topics()
