"""cutlass_api.metadata."""

from tilewright._tilewright import (
    BLASDesignMetadata,
    GemmOperandsMetadata,
    KernelMetadata,
    OperandsMetadata,
    TensorAttributes,
)

DesignMetadata = BLASDesignMetadata
DenseTensorAttributes = TensorAttributes

__all__ = [
    "BLASDesignMetadata",
    "DenseTensorAttributes",
    "DesignMetadata",
    "GemmOperandsMetadata",
    "KernelMetadata",
    "OperandsMetadata",
    "TensorAttributes",
]
