"""``python -m kraft_runbook``: the same as the command ``kraft-runbook``."""

from kraft_runbook.cli.app import main

main()
