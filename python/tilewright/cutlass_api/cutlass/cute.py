"""The part of CuTe DSL's module `cutlass.cute` with which simple kernels are written in Python.

    class Scale:
        @cute.jit
        def __call__(self, a: cute.Tensor, out: cute.Tensor, stream):
            m, n = out.shape
            self.kernel(a, out).launch(grid=(m, 1, 1), block=(128, 1, 1), stream=stream)

        @cute.kernel
        def kernel(self, a: cute.Tensor, out: cute.Tensor):
            row, _, _ = cute.arch.block_idx()
            column, _, _ = cute.arch.thread_idx()
            if column < out.shape[1]:
                out[row, column] = 2 * a[row, column]

The body of a function with @jit is Python, which runs at each launch. That of a function with @kernel is translated to
CUDA C++ (translation.py); docs/cutlass_api.md has what it may contain.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NoReturn

from tilewright.errors import InvalidArgument
from tilewright.missing_name import refuse_unknown
from tilewright.submodules import add_submodules

Tensor = Any


class KernelCall:
    """A kernel with its arguments, and with a grid and a block once launch() was called."""

    def __init__(self, kernel: KernelFunction, arguments: tuple[Any, ...]) -> None:
        self.kernel = kernel
        self.arguments = arguments  # with the object whose method the kernel is, if it is a method
        self.grid: tuple[int, ...] = ()
        self.block: tuple[int, ...] = ()

    def launch(self, grid: Sequence[int], block: Sequence[int], stream: Any = None) -> None:
        """Records the launch; CuteDslKernel launches what was recorded, on its own stream."""
        launches = _launches.get()
        if launches is None:
            raise InvalidArgument(
                f"{self.kernel.__name__} was launched outside of CuteDslKernel: pass the object with the @cute.jit "
                "method to cute_compile(), and what it returns to cute_run()"
            )
        for name, extents in (("grid", grid), ("block", block)):
            if not (isinstance(extents, (tuple, list)) and 1 <= len(extents) <= 3):
                raise InvalidArgument(f"{name} must have one to three integers, got {extents!r:.80}")
        self.grid, self.block = (*grid,), (*block,)
        launches.append(self)


class KernelFunction:
    """A function with @kernel: a call returns a KernelCall."""

    def __init__(self, function: Callable[..., Any]) -> None:
        if not isinstance(function, types.FunctionType):
            raise TypeError(f"@cute.kernel takes a function that is defined with def, got {function!r:.80}")
        self.function = function
        functools.update_wrapper(self, function)

    __name__: str

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else functools.partial(self, owner)

    def __call__(self, *arguments: Any) -> KernelCall:
        return KernelCall(self, arguments)


class JitFunction:
    """A function with @jit, which launches one kernel."""

    def __init__(self, function: Callable[..., Any]) -> None:
        if not isinstance(function, types.FunctionType):
            raise TypeError(f"@cute.jit takes a function that is defined with def, got {function!r:.80}")
        self.function = function
        functools.update_wrapper(self, function)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else functools.partial(self, owner)

    def __call__(self, *arguments: Any) -> None:
        self.function(*arguments)


_launches: ContextVar[list[KernelCall] | None] = ContextVar("launches", default=None)


def jit(function: Callable[..., Any]) -> JitFunction:
    """A decorator of the host function, which computes grid and block and launches a kernel."""
    return JitFunction(function)


def kernel(function: Callable[..., Any]) -> KernelFunction:
    """A decorator of a kernel, which is translated to CUDA C++."""
    return KernelFunction(function)


def recorded_launch(implementation: Any, arguments: Sequence[Any]) -> KernelCall:
    """The launch that the @jit method of an implementation makes for these arguments. Raises InvalidArgument unless it
    makes one."""
    launches: list[KernelCall] = []
    token = _launches.set(launches)
    try:
        implementation(*arguments)
    finally:
        _launches.reset(token)
    if len(launches) != 1:
        raise InvalidArgument(
            f"{type(implementation).__name__}.__call__() must launch one kernel, and launched {len(launches)}"
        )
    return launches[0]


def is_jit(implementation: Any) -> bool:
    """Whether an object, or its method __call__(), was made with @jit."""
    return isinstance(implementation, JitFunction) or isinstance(
        getattr(type(implementation), "__call__", None), JitFunction
    )


def _in_kernels_only(name: str) -> Callable[..., Any]:
    def function(*arguments: Any, **named: Any) -> NoReturn:
        raise InvalidArgument(f"{name}() is for the body of a function with @cute.kernel")

    function.__name__ = name
    return function


size = _in_kernels_only("cute.size")
range_constexpr = _in_kernels_only("cutlass.range_constexpr")

ARCH_FUNCTIONS = ("thread_idx", "block_idx", "block_dim", "grid_dim", "lane_idx", "warp_idx", "sync_threads")
MATH_FUNCTIONS = ("exp", "log", "sqrt", "rsqrt", "tanh", "sin", "cos")


def _submodule(name: str, functions: Mapping[str, Callable[..., Any]]) -> Any:
    """A module of these functions, whose other names are refused."""
    module = types.ModuleType(f"cutlass.cute.{name}")
    vars(module).update(functions, __all__=[*functions], __getattr__=refuse_unknown(module.__name__, functions))
    return module


arch = _submodule("arch", {name: _in_kernels_only(f"cute.arch.{name}") for name in ARCH_FUNCTIONS})
math = _submodule("math", {name: _in_kernels_only(f"cute.math.{name}") for name in MATH_FUNCTIONS})


def _make_fake_stream() -> Any:
    """A placeholder for the stream of a kernel that is compiled, not run."""
    return None


runtime = _submodule("runtime", {"make_fake_stream": _make_fake_stream})
add_submodules(__name__, arch=arch, math=math, runtime=runtime)

__all__ = ["JitFunction", "KernelCall", "KernelFunction", "Tensor", "arch", "jit", "kernel", "math", "runtime", "size"]
