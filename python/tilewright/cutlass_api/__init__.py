"""The interface of cutlass_api, CUTLASS's Python interface for discovering, compiling and running kernels.

    from tilewright import cutlass_api
    from tilewright.cutlass_api.arguments import GemmArguments

    args = GemmArguments(A, B, out, accumulator_type="float32")
    kernel = cutlass_api.get_kernels(args)[0]
    kernel.run(args)

The classes are those of tilewright, so that both interfaces can be mixed: get_kernels() returns the kernels of
find_kernels(), best first, and a class that is registered here is found there. docs/cutlass_api.md lists the names and
the differences.
"""

from typing import TYPE_CHECKING

from tilewright.missing_name import refuse_unknown
from tilewright.submodules import add_submodules

from . import (
    arguments,
    artifact,
    config,
    conversions,
    cutlass,
    fusion,
    kernel,
    library,
    manifest,
    metadata,
    providers,
    status,
    typing,
)
from .kernel import Kernel
from .manifest import Manifest, get_kernels
from .metadata import KernelMetadata
from .status import Status

# The module has the name that programs for cutlass_api import.
utils = conversions
add_submodules(__name__, utils=conversions)

__all__ = [
    "Kernel",
    "KernelMetadata",
    "Manifest",
    "Status",
    "arguments",
    "artifact",
    "config",
    "cutlass",
    "fusion",
    "get_kernels",
    "kernel",
    "library",
    "manifest",
    "metadata",
    "providers",
    "status",
    "typing",
    "utils",
]

if not TYPE_CHECKING:  # type checkers find misspelt names themselves
    __getattr__ = refuse_unknown(__name__, __all__)
