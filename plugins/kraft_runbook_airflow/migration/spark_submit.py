"""Spark's job as a process that ends with the task that started it, however that task ends.

A task that is killed runs none of its own code any more; its job would go on without it, and read ZooKeeper beside the
next try's. What ends with it is spark-submit, which in client mode becomes the driver's JVM. The Python of the job ends
at its next word to that JVM. A driver in cluster mode goes on.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(None).prctl  # looked up here: between fork and exec nothing is to be loaded


def ends_with_this_process() -> Callable[[], None]:
    """For Popen's ``preexec_fn``, called in the main thread: the kernel kills the child when the thread that starts it
    ends (Linux). spark-submit becomes its JVM by exec, so that is the child.
    """
    parent = os.getpid()

    def before_it_runs() -> None:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before the call above
            os._exit(1)

    return before_it_runs
