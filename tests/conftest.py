"""For all tests: a generated example may take as long as a busy machine makes it take."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
