"""The object store of the evidence's copy, by Airflow's ObjectStoragePath: ``s3://<connection>@<bucket>/<prefix>``,
``gs://…``, ``file:///…``.
"""

from __future__ import annotations

import os
from pathlib import Path

from airflow.sdk import ObjectStoragePath

from kraft_runbook.evidence.mirror import mirror_run


class ObjectsOfRun:
    """One run's objects below the store's URL (``evidence.mirror.Objects``)."""

    def __init__(self, url: str, run: str) -> None:
        self.place = ObjectStoragePath(url) / run

    def held(self) -> dict[str, int]:
        """Object stores have no directories to make; a file system does."""
        files, path = self.place.fs, self.place.path  # Airflow's, with the connection's credentials
        if self.place.protocol in ("file", "local"):
            files.makedirs(path, exist_ok=True)
        files.invalidate_cache()
        if not files.exists(path):
            return {}
        return {each["name"].rpartition("/")[2]: int(each["size"]) for each in files.ls(path, detail=True)}

    def write(self, name: str, content: bytes) -> None:
        self.place.fs.pipe_file((self.place / name).path, content)


def mirror(directory: Path, run: str) -> int:
    """Copy what the store that is set lacks of a run. As ``mirror_run``."""
    return mirror_run(directory, run, os.environ, lambda url: ObjectsOfRun(url, run))
