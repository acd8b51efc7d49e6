"""Python's collector of cyclic garbage, held off while millions of objects are made that hold no cycles: it would go
through all of them again and again.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No cyclic garbage is looked for within the block, by any thread. Blocks may overlap; whichever found the
    collector at work sets it to work again.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
