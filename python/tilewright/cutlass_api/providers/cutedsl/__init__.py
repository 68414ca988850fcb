"""cutlass_api.providers.cutedsl: kernels of classes that are registered in the way of cutlass_api.

CuTe DSL itself is NVIDIA's. The implementation of a kernel is CUDA C++, or Python with the part of CuTe DSL that
cutlass_api.cutlass.cute has; see kernel.CuteDslKernel.
"""

from . import kernel
from .provider import CuTeDSLProvider

__all__ = ["CuTeDSLProvider", "kernel"]
