"""The module `cutlass.cute` of programs for cutlass_api."""

from tilewright.cutlass_api.cutlass.cute import Tensor, arch, jit, kernel, math, range_constexpr, runtime, size
from tilewright.submodules import add_submodules

add_submodules(__name__, arch=arch, math=math, runtime=runtime)

__all__ = ["Tensor", "arch", "jit", "kernel", "math", "range_constexpr", "runtime", "size"]
