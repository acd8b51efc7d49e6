"""How the pages of a package are made of its templates: HTML, in which every value is escaped."""

from __future__ import annotations

from collections.abc import Callable

from jinja2 import Environment, PackageLoader, StrictUndefined


def templates_of(package: str, shown: Callable[[object], object], **filters: Callable[..., object]) -> Environment:
    """The templates of this package. ``shown``: what stands for each value, such as a word for None. A name that a
    template has no value for is an error.
    """
    environment = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=shown,
    )
    environment.filters.update(filters)
    return environment
