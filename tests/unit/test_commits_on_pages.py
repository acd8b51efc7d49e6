"""A commit that a page names is one of this branch's history: whoever clones it may check it out."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
HASH = re.compile(r"(?<![\w./-])(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,10}(?![\w.-])")
"""As git shortens one. Not a part of a longer name, such as a member's id or a digest."""


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def test_each_commit_on_a_page_is_in_this_history() -> None:
    if git("rev-parse", "--is-shallow-repository").strip() != "false":
        pytest.skip("the checkout has no history")
    named = {each: page.name for page in PAGES for each in HASH.findall(page.read_text())}
    assert len(named) > 20
    history = git("rev-list", "HEAD").splitlines()
    strange = {each: named[each] for each in named if not any(commit.startswith(each) for commit in history)}
    assert strange == {}
