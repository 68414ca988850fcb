"""cutlass_api.metadata."""

from typing import TYPE_CHECKING

from tilewright._tilewright import (
    BLASDesignMetadata,
    GemmOperandsMetadata,
    KernelMetadata,
    OperandsMetadata,
    TensorAttributes,
)
from tilewright.missing_name import refuse_unknown


class Sm100DesignMetadata:
    """The designs of kernels of CUTLASS for sm_100. No kernel of Tilewright has one, so that isinstance() is False."""


DesignMetadata = BLASDesignMetadata
DenseTensorAttributes = TensorAttributes

__all__ = [
    "BLASDesignMetadata",
    "DenseTensorAttributes",
    "DesignMetadata",
    "GemmOperandsMetadata",
    "KernelMetadata",
    "OperandsMetadata",
    "Sm100DesignMetadata",
    "TensorAttributes",
]

if not TYPE_CHECKING:  # type checkers find misspelt names themselves
    __getattr__ = refuse_unknown(__name__, __all__)
