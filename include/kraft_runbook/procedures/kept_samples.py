"""The samples of the quorum that earlier looks left, in the state directory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from kraft_runbook.cluster.unread import Unread
from kraft_runbook.io.private_file import write_private
from kraft_runbook.quorum.history import draw
from kraft_runbook.quorum.samples import Sample


def samples_file(state: Path, cluster: str) -> Path:
    """Where they lie."""
    return state / "quorum" / f"{cluster}.json"


def read_samples(state: Path, cluster: str) -> list[Sample] | Unread:
    """The oldest first; none where there is no file. Entries that are no samples are left out."""
    file = samples_file(state, cluster)
    try:
        found = json.loads(file.read_bytes())
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        return Unread(f"the samples of the quorum ({file.name}) can't be read: {error}")
    if not isinstance(found, list):
        return Unread(f"the samples of the quorum ({file.name}) can't be read: they are no list")
    return [each for each in found if isinstance(each, dict)]


def write_samples(state: Path, cluster: str, samples: Sequence[Sample]) -> Path:
    """Put them there, with a picture of them beside. Returns where the picture lies. Raises OSError."""
    file = samples_file(state, cluster)
    write_private(file, json.dumps(list(samples)))
    picture = file.with_suffix(".svg")
    write_private(picture, draw(samples))
    return picture
