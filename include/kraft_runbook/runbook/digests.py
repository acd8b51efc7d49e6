"""The digests that proofs and cluster files are known by."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def digest_of(proof: Mapping[str, Any]) -> str:
    """SHA-256 over the proof's canonical JSON, its own digest left out."""
    body = {k: v for k, v in proof.items() if k != "digest"}
    return sha256_of(json.loads(json.dumps(body, default=str)))


def sha256_of(plain: Any) -> str:
    """SHA-256 over the canonical JSON of plain values: keys sorted, no spaces."""
    return hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
