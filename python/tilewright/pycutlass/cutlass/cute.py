"""The module `cutlass.cute` of programs for cutlass_api."""

from tilewright.cutlass_api.cutlass.cute import Tensor, arch, jit, kernel, math, range_constexpr, runtime, size

__all__ = ["Tensor", "arch", "jit", "kernel", "math", "range_constexpr", "runtime", "size"]
