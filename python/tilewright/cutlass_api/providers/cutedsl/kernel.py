"""The base class of kernels whose implementation is an object, as in CuTe DSL, in Python or in CUDA C++."""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass
from typing import Any

import tilewright
from tilewright._tilewright import Artifact, Launch, Source
from tilewright.errors import InvalidArgument

from ...arguments import ArgumentTensor, GemmArguments, argument_tensors
from ...cutlass import cute, translation
from ...kernel import Kernel

_KERNEL = re.compile(r'extern\s+"C"\s+__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(')


@dataclass(frozen=True)
class CompiledImplementation:
    """The result of CuteDslKernel.cute_compile()."""

    artifact: Artifact
    implementation: Any


@dataclass(frozen=True)
class _Role:
    """The place of an operand among the arguments of an implementation."""

    name: str


class CuteDslKernel(Kernel):
    """A kernel that is made of an implementation.

    The implementation is an object whose method __call__(self, a, b, out, stream) is decorated with @cute.jit and
    launches one kernel that is decorated with @cute.kernel. Or it has an attribute or method `source`, which is the
    CUDA C++ of one `extern "C"` kernel or a tilewright.Source, and a method

        def __call__(self, a, b, out, stream) -> tilewright.Launch

    The method receives what cute_compile() was called with. Tensors have shape, stride, dtype and data_ptr, and may be
    passed as parameters of the launch. `stream` is None, because Tilewright launches the kernel.
    """

    _implementation: Any = None
    _compiled_call: tuple[Any, ...] = ()  # _signature() of the launch that a @cute.jit method made for the compilation
    _translation: Source | None = None
    _places: tuple[Any, ...] = ()

    def cute_compile(self, implementation: Any, *arguments: Any) -> CompiledImplementation:
        """Compiles the implementation for these arguments: tensors of a GemmArguments, as args.A or args.A.tensor, numbers,
        and a stream."""
        arguments = (*argument_tensors(arguments),)
        tensors = [each for each in arguments if isinstance(each, ArgumentTensor)]
        if not tensors:
            raise InvalidArgument(
                "cute_compile() takes tensors of a cutlass_api GemmArguments: args.A, args.B, args.out"
            )
        if self._implementation is not None and self._implementation is not implementation:
            raise InvalidArgument(f"{self.name} was compiled from another implementation: make another kernel")
        self._implementation = implementation
        self._places = tuple(_Role(each.role) if isinstance(each, ArgumentTensor) else each for each in arguments)
        if cute.is_jit(implementation):
            call = cute.recorded_launch(implementation, arguments)
            self._compiled_call = _signature(call)
            self._translation = translation.translate(call.kernel.function, call.arguments)
        return CompiledImplementation(tilewright.Kernel.compile(self, tensors[0].arguments), implementation)

    def cute_run(self, compiled: CompiledImplementation, *arguments: Any, workspace: Any = None) -> None:
        """Launches what cute_compile() has returned. The last of `arguments` is the stream."""
        arguments = (*argument_tensors(arguments),)
        given = next((each.arguments for each in arguments if isinstance(each, ArgumentTensor)), None)
        if given is None:
            raise InvalidArgument("cute_run() takes tensors of a cutlass_api GemmArguments: args.A, args.B, args.out")
        stream = None if not arguments or isinstance(arguments[-1], ArgumentTensor) else arguments[-1]
        self._launch_compiled(given, compiled, stream, workspace)

    def _launch_compiled(
        self, args: GemmArguments, compiled: CompiledImplementation, stream: Any, workspace: Any
    ) -> None:
        tilewright.Kernel.run(self, args, compiled.artifact, stream=stream, workspace=workspace)

    def _source(self) -> str | Source:
        if self._implementation is None:
            return super()._source()  # type: ignore[no-any-return]
        if self._translation is not None:
            return self._translation
        source: Any = getattr(self._implementation, "source", None)
        if source is None:
            raise InvalidArgument(
                f"{type(self._implementation).__name__} has no attribute source: it must have the CUDA C++ of the "
                "kernel, or its __call__() must be decorated with @cute.jit"
            )
        text: Any = source() if callable(source) else source
        if isinstance(text, Source):
            return text
        symbols = _KERNEL.findall(text)
        if len(symbols) != 1:
            raise InvalidArgument(
                f'the source of {type(self._implementation).__name__} must define one kernel as extern "C" __global__ '
                f"void, got {len(symbols)}: pass tilewright.Source(text, symbol=...) to choose one"
            )
        return Source(text, symbol=symbols[0])

    def _launch(self, args: Any) -> Launch:
        if self._implementation is None:
            return super()._launch(args)  # type: ignore[no-any-return]
        given = [getattr(args, each.name) if isinstance(each, _Role) else None for each in self._places]
        if self._translation is not None:
            call = cute.recorded_launch(self._implementation, given)
            if _signature(call) != self._compiled_call:
                compiled, launched = (
                    ", ".join(map(str, each[1:])) for each in (self._compiled_call, _signature(call))
                )
                raise InvalidArgument(f"{self.name} was compiled for {compiled}, and is launched with {launched}")
            return Launch(call.grid, call.block, [part for each in call.arguments for part in _parameters(each)])
        launch = self._implementation(*given)
        if not isinstance(launch, Launch):
            raise InvalidArgument(
                f"{type(self._implementation).__name__}.__call__() must return a tilewright.Launch, got {launch!r}"
            )
        return launch


def _signature(call: cute.KernelCall) -> tuple[Any, ...]:
    """What the text of a kernel depends on."""
    return (call.kernel.function, *map(translation.passed, call.arguments))


def _parameters(argument: Any) -> list[Any]:
    """The parameters of the launch for an argument of a kernel: those that translation.translate() declares."""
    kind = translation.passed(argument)
    if not isinstance(kind, translation.Passed):
        return []
    if kind.rank is not None:
        extents = (*argument.shape, *argument.stride)
        return [argument, bytes((ctypes.c_int64 * len(extents))(*extents))]
    return [ctypes.c_float(argument) if isinstance(argument, float) else ctypes.c_int64(argument)]


__all__ = ["CompiledImplementation", "CuteDslKernel"]
