"""kraft-runbook: the pure core, its clients and its command line. See docs/ for what each part answers."""
