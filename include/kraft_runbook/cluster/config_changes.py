"""What may be done to one key of a dynamic configuration (IncrementalAlterConfigs, KIP-339)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Append:
    """Add these entries, separated by commas, to a list: whatever else is in it stays, also what came a moment ago."""

    entries: str


@dataclass(frozen=True, slots=True)
class Subtract:
    """Take these entries, separated by commas, out of a list."""

    entries: str


LONGEST_TEXT = 32_767
"""The most bytes of UTF-8 that a text may have in a record of the metadata log, or in an answer to DescribeConfigs
("field is too long to be serialized", measured on 3.9.2). An Append in ZooKeeper mode makes longer ones.
"""

ConfigChange = str | Append | Subtract | None
"""A value is set; None deletes the key."""
