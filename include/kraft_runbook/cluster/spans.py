"""Spans of time as a cluster file says them, and as a person reads them."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def in_seconds(value: object) -> object:
    """A text such as 45m as seconds; anything else as it is. Raises ValueError for a text that is no span."""
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd])", value.strip())
    if match is None:
        raise ValueError(f"{value!r} is no span of time; write 90s, 45m, 36h or 7d")
    return float(match[1]) * _UNITS[match[2]]


Span = Annotated[float, Field(gt=0), BeforeValidator(in_seconds)]
"""Seconds, or a text such as 45m, 36h or 7d."""


CRON = re.compile(r"@[a-z]+|[\w*/,#?-]+(\s+[\w*/,#?-]+){4,5}", re.ASCII)
"""A preset, or five fields; a sixth is the seconds."""


def _schedule(text: str) -> str:
    """Raises ValueError for what no scheduler reads; names and numbers are Airflow's to judge."""
    if CRON.fullmatch(text.strip()):
        return text
    raise ValueError(f"{text!r} is no schedule: write five fields of cron, such as '*/10 * * * *', or @daily")


Schedule = Annotated[str, AfterValidator(_schedule)]
"""Of a DAG: five fields of cron, or one of Airflow's presets."""


def in_words(span: timedelta) -> str:
    """In its largest unit, three digits: ``2 d``, ``36.5 h``, ``12 s``."""
    seconds = span.total_seconds()
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.0f} s"


def roughly(seconds: float) -> str:
    """An estimate, in whole seconds or minutes: ``80 s``, ``3 min``."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
