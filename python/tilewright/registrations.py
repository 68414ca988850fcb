"""tilewright.scoped_registrations."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tilewright._tilewright import _registered_classes, register, unregister


@contextlib.contextmanager
def scoped_registrations() -> Iterator[None]:
    """Undoes at the end of the context what register() and unregister() have done since its begin, in all threads.

    Classes that were registered are registered again, also those that a class of the same name has replaced, and no
    others.

        with tilewright.scoped_registrations():
            import my_kernels
    """
    before = _registered_classes()
    try:
        yield
    finally:
        for each in _registered_classes():
            if each not in before:
                unregister(each)
        for each in before:
            register(each)
