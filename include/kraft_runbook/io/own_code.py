"""Which code of this tool is installed here: two commits have one version number."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from kraft_runbook import __version__
from kraft_runbook.io.file_prints import prints_of
from kraft_runbook.io.hosts.playbooks import playbook_directory

PACKAGE = Path(__file__).resolve().parents[1]
MADE = frozenset({"__pycache__", "playbooks"})
"""What is no code of the package where it lies below it. A wheel has the playbooks there; they are read by themselves.
"""
CODE = frozenset({".py", ".yml", ".yaml", ".json", ".html", ".sh", ".properties", ".cfg"})
"""What is code, by its suffix, unless it is hidden: not a tool's cache, an editor's copy or somebody's note."""
DIGITS = 12


@cache
def version_of_code() -> str:
    """The version, and a digest of the package's modules, schemas and templates, and of the playbooks. Read once by a
    process, as its modules are. Raises OSError.
    """
    return f"{__version__}+{digest_of_code(PACKAGE, playbook_directory())}"


def digest_of_code(package: Path, playbooks: Path) -> str:
    """The same for the same files, in a checkout or a wheel."""
    found = hashlib.sha256()
    for root, left_out in ((package, MADE), (playbooks, MADE - {"playbooks"})):
        files = (each for each in root.rglob("*") if _is_code(each.relative_to(root), left_out))
        for each in prints_of(root, (file for file in files if file.is_file())):
            found.update(each)
    return found.hexdigest()[:DIGITS]


def _is_code(path: Path, left_out: frozenset[str]) -> bool:
    hidden = any(part.startswith(".") for part in path.parts)
    return path.suffix in CODE and not hidden and not left_out.intersection(path.parts)
