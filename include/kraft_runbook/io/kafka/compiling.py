"""kafka-python compiles what decodes a message when the first one arrives. Here that is made safe for several threads.

While it compiles, ``StructField.compiled_decode_from`` (3.0.12) puts another class into the structure that all threads
share, and back. A second thread that compiles the same message meanwhile may read the class in between, a
``weakref.proxy``, and keep a decoder which raises ``TypeError`` for every message of this kind, as long as the process
lives: each such request ends with "timed out". All controllers are asked at once, so it happens: one run of a task in a
busy Airflow saw no leader in a quorum that had one, however often it looked.
"""

from __future__ import annotations

import threading
from typing import Any

from kafka.protocol.schemas import StructField

_ONE_AT_A_TIME = threading.RLock()
_compiled_decode_from = StructField.compiled_decode_from


def _locked(self: StructField, *arguments: Any, **further: Any) -> Any:
    with _ONE_AT_A_TIME:
        return _compiled_decode_from(self, *arguments, **further)


def compile_one_at_a_time() -> None:
    """From here on, one thread of this process compiles at a time. To be called once more does nothing."""
    StructField.compiled_decode_from = _locked
