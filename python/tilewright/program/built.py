"""Programs: kernels that have been recorded, and how they are run and registered."""

from __future__ import annotations

import importlib
import operator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import tilewright._tilewright as _native
from tilewright._tilewright.program import BuiltProgram, set_kernel_target
from tilewright._tilewright.program import gemm as _gemm
from tilewright.checked import checked
from tilewright.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping


class Program(BuiltProgram):
    """A kernel as data, which Kernel.build() returns. str() is its listing."""

    language: str = "cuda"
    """The lowering that run() compiles: "cuda" or "mlir"."""

    checks_global_memory: bool = True
    """Whether run() on the emulator finds races in global memory, and reads of what nothing has written there. Such a
    launch uses one CPU core. On a GPU it has no effect."""

    def run(self, /, **arguments: Any) -> None:
        """Compiles the program, at most once, and runs it. Each keyword is the name of a parameter.

        Arrays of NumPy, PyTorch, CuPy or JAX are given for addresses and tensor maps. NumPy arrays are copied to the
        device and back, and are complete on return; it is the device that TILEWRIGHT_DEVICE names, or the emulator.
        Raises InvalidArgument, with the number, for arguments that the program cannot be launched with. An array for a
        Tensor must have the extents and strides that the Tensor has in this launch; one in row-major order may have its
        modes in another order. An array for an address must be in row-major order; its rows may be padded.
        """
        kinds = dict(self.parameters)
        for name in arguments:
            if name not in kinds:
                self.check(**{name: 0})  # raises, with the names of the parameters
        missing = [name for name in kinds if name not in arguments]
        if missing:
            raise InvalidArgument(f"{self.symbol} needs the arguments {', '.join(missing)}, which were not given")
        arrays = {name: value for name, value in arguments.items() if kinds[name] in ("address", "tensor_map")}
        numbers = {name: value for name, value in arguments.items() if name not in arrays}
        if not arrays:
            raise InvalidArgument(f"{self.symbol} has no array among its parameters, and so no result")
        self.check_arrays(**arrays)
        for name, kind in kinds.items():
            if kind == "integer":
                numbers[name] = _integer(name, numbers[name])
        integers = {name: numbers[name] for name, kind in kinds.items() if kind == "integer"}
        for name, array in arrays.items():
            strides = _strides(array)
            if strides is not None:
                self.check_array(name, [int(extent) for extent in array.shape], strides, integers)
        arrays = {_attribute(name): _viewed(array) for name, array in arrays.items()}
        numbers = {_attribute(name): number for name, number in numbers.items()}
        made_for = tuple((name, len(array.shape), array.dtype) for name, array in arrays.items())
        known: dict[object, tuple[_native.Operation, dict[str, _RunKernel]]] = self.__dict__.setdefault("_known", {})
        if made_for not in known:
            known[made_for] = (_operation(self, made_for, numbers), {})
        operation, kernels = known[made_for]
        args = _native.OperationArguments(operation, **arrays, **numbers)
        target = self.target_for(args)
        key = f"{target} {self.language}"
        if key not in kernels:
            kernels[key] = _RunKernel(self, operation, made_for, target)
        with _native.emulator.CheckedGlobalMemory() if self.checks_global_memory else nullcontext():
            kernels[key].run(args)


def gemm(symbol: str, args: _native.GemmArguments, design: _native.BLASDesignMetadata) -> Program:
    return Program(_checked_gemm(symbol, args, design))


gemm.__doc__ = _gemm.__doc__
_checked_gemm = checked(_gemm, "gemm")


class ProgramKernel(_native.Kernel):
    """A kernel for the registry whose source and launch come from a program. Derive a class, register() it, and define
    generate_kernels(), as for any tilewright.Kernel, and `_arguments(args)`."""

    def __init__(self, metadata: _native.KernelMetadata, program: BuiltProgram, language: str = "cuda") -> None:
        super().__init__(metadata)
        self.program = program
        self.language = language

    def _arguments(self, args: Any) -> Mapping[str, object]:
        """The arguments of the program's launch by name, for a GemmArguments or OperationArguments."""
        raise NotImplementedError(f"{type(self).__name__} does not define _arguments()")

    def _source(self) -> _native.Source:
        return self.program.source(self.language)

    def _supports(self, args: Any) -> _native.Status:
        return self.program.check(**self._arguments(args))

    def _launch(self, args: Any) -> _native.Launch:
        return self.program.launch(**self._arguments(args))


def _integer(name: str, value: Any) -> int:
    """The value as a Python int, which integers of NumPy and of PyTorch become, too."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r:.60}") from None


_VIEWS = {
    "bool": "uint8",
    "int16": "float16",
    "uint16": "float16",
    "uint32": "int32",
    "int64": "float64",
    "uint64": "float64",
}
"""For each type of arrays that operands do not have, one of the same size that they have."""


def _attribute(name: str) -> str:
    """The name of a parameter in OperationArguments, which have attributes of their own."""
    return f"{name}_" if hasattr(_native.OperationArguments, name) else name


def _viewed(array: Any) -> Any:
    """The array's memory, as elements that operands have."""
    name = str(array.dtype)
    is_torch = name.startswith("torch.")
    other = _VIEWS.get(name.removeprefix("torch."))
    if other is None or not hasattr(array, "view"):
        return array
    return array.view(getattr(importlib.import_module("torch"), other) if is_torch else other)


def _strides(array: Any) -> list[int] | None:
    """In elements; None for an array that does not tell them."""
    if hasattr(array, "stride"):  # of PyTorch
        return [int(each) for each in array.stride()]
    strides, size = getattr(array, "strides", None), getattr(array, "itemsize", 0)
    if strides is None or not size or any(each % size for each in strides):
        return None
    return [each // size for each in strides]


def _operation(
    program: Program, arrays: tuple[tuple[str, int, Any], ...], numbers: dict[str, Any]
) -> _native.Operation:
    """Launches of a program as an operation. Which arrays the program writes is not known, so all are updated."""
    operands = [
        _native.OperandDeclaration(name, [f"{name}_{mode}" for mode in range(rank)], access="update")
        for name, rank, _ in arrays
    ]
    return _native.Operation(f"program_{program.symbol}", operands, numbers)


class _RunKernel(ProgramKernel):
    """The kernel of Program.run(), for arrays with these names, numbers of modes and types."""

    def __init__(
        self,
        program: Program,
        operation: _native.Operation,
        arrays: tuple[tuple[str, int, Any], ...],
        target: str,
    ) -> None:
        types = {name: dtype for name, _, dtype in arrays}
        operands = _native.OperandsMetadata(operation, **types)
        super().__init__(_native.KernelMetadata(program.symbol, "program", operands), program, program.language)
        set_kernel_target(self, target)

    def _arguments(self, args: Any) -> Mapping[str, object]:
        given = {name: getattr(args, _attribute(name)) for name, _ in self.program.parameters}
        integers = {name for name, kind in self.program.parameters if kind == "integer"}
        return {name: int(value) if name in integers else value for name, value in given.items()}
