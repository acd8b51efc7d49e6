"""Lets Ansible keep what it builds of each module in a directory that outlives the run: ``KRAFT_RUNBOOK_KEPT_MODULES``.

Ansible packs a module with all that it imports before it sends it, and keeps that below its own temporary directory
(``ansiballz_cache`` in ansible-core's ``module_common``), which ends with the run. Finding the imports was 39 % of the
processor time of ansible-playbook (a profile by hand). Without the variable everything is as ever.
"""

from __future__ import annotations

import contextlib
import os

from ansible import constants
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: kept_modules
type: aggregate
short_description: keeps the packed modules for the next run
description: Leads Ansible's directory of packed modules to one that outlives the run.
"""


class CallbackModule(CallbackBase):
    """Made once, before the first task; it hears of no event."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "kept_modules"
    CALLBACK_NEEDS_ENABLED = False

    def __init__(self) -> None:
        super().__init__()
        kept = os.environ.get("KRAFT_RUNBOOK_KEPT_MODULES")
        if kept:
            with contextlib.suppress(OSError):
                os.symlink(kept, os.path.join(constants.DEFAULT_LOCAL_TMP, "ansiballz_cache"))
