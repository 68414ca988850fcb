"""Runs of a program through both of its lowerings."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright import program as tp


def computed(author: Callable[[], tp.Program], result: str = "out", **arguments: Any) -> np.ndarray:
    """The array `result` after a run of each lowering; both must have the same bits."""
    results = []
    for language in ("cuda", "mlir"):
        program = author()
        program.language = language
        own = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in arguments.items()}
        program.run(**own)
        results.append(own[result])
    assert results[0].tobytes() == results[1].tobytes()
    return results[0]
