"""The parts of a picture that needs nothing else (SVG). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

INK = "#1c2430"


def document(width: int, height: int, parts: Iterable[str]) -> str:
    """The whole picture, in pixels."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        f' font-family="sans-serif" font-size="12"><rect width="{width}" height="{height}" fill="#ffffff"/>'
        f"{''.join(parts)}</svg>"
    )


def text(x: float, y: float, what: str, *, bold: bool = False, anchor: str = "") -> str:
    """``anchor``: SVG's text-anchor; empty: it begins at ``x``."""
    weight = ' font-weight="bold"' if bold else ""
    at = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{INK}"{weight}{at}>{escape(what)}</text>'
