"""kraft-runbook: the pure core, its clients and its command line. See docs/ for what each part answers."""

__version__ = "0.1.0"
