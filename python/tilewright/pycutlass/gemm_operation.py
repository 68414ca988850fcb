"""The names of PyCUTLASS's module `pycutlass.gemm_operation`."""

from .arguments import GemmArguments
from .grouped import GemmGroupedArguments, GemmOperationGrouped
from .operation import GemmOperationUniversal

__all__ = ["GemmArguments", "GemmGroupedArguments", "GemmOperationGrouped", "GemmOperationUniversal"]
