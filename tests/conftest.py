"""For all tests: a generated example may take as long as a busy machine makes it take, a session that is terminated ends its clusters first, and nothing is said after pytest's last line."""

from __future__ import annotations

import logging
import signal

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
logging.getLogger("py4j").setLevel(logging.WARNING)  # otherwise it speaks when the interpreter ends, to a stream that pytest has closed
signal.signal(signal.SIGTERM, signal.default_int_handler)
