"""Epilogues together with the arrays and numbers that are bound to their names."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

from tilewright._tilewright import DType, Epilogue
from tilewright.errors import InvalidArgument

_MAX_CACHED = 64  # problems for which an EpilogueArguments caches the graph
_Bound = tuple[Epilogue, dict[str, Any], dict[str, float]]


class EpilogueArguments:
    """An epilogue of A @ B with the arrays and numbers that it reads and writes.

    epilogue   a Python function or its source, which is traced (see tilewright.tracing); or a str in the epilogue
               language; or an Epilogue
    operands   keywords: the value of each parameter of the function, or of each name in the str, and an array for each
               output other than D

        EpilogueArguments("aux = acc + row(bias); D = relu(aux)", bias=bias, aux=aux)

    A function is traced once for each shape of problem. Its closure and its globals are read at that time.
    """

    def __init__(self, epilogue: Callable[..., object] | str | Epilogue, /, **operands: Any) -> None:
        self.epilogue = epilogue
        self.operands = MappingProxyType(operands)
        self._bound: dict[tuple[int | None, int, int, DType, DType, tuple[int, ...]], _Bound] = {}

    def _bind(
        self, batch: int | None, m: int, n: int, compute: DType, output: DType, row_modes: tuple[int, ...] = ()
    ) -> _Bound:
        """The graph for a problem of these extents, with its tensors and scalars by their names in the graph.

        `row_modes` are the modes that are rows in tensors of more modes than two; their other modes are columns.
        """
        key = (batch, m, n, compute, output, row_modes)
        bound = self._bound.get(key)
        if bound is None:
            bound = self._make(batch, m, n, compute, output, row_modes)
            if len(self._bound) >= _MAX_CACHED:
                self._bound.clear()
            self._bound[key] = bound
        return bound

    def _make(
        self, batch: int | None, m: int, n: int, compute: DType, output: DType, row_modes: tuple[int, ...]
    ) -> _Bound:
        if callable(self.epilogue) or (isinstance(self.epilogue, str) and "def " in self.epilogue):
            return self._trace(self.epilogue, (m, n) if batch is None else (batch, m, n), compute, row_modes)
        numbers = {name: float(value) for name, value in self.operands.items() if _is_number(value)}
        arrays = {name: value for name, value in self.operands.items() if name not in numbers}
        if isinstance(self.epilogue, Epilogue):
            if numbers:
                raise InvalidArgument(f"an Epilogue already has its scalars, got values for {', '.join(numbers)}")
            return self.epilogue, arrays, {}
        return Epilogue(self.epilogue, compute, numbers, output), arrays, numbers

    def _trace(
        self,
        function: Callable[..., object] | str,
        problem: tuple[int, ...],
        compute: DType,
        row_modes: tuple[int, ...],
    ) -> _Bound:
        from tilewright.tracing import parameters, trace

        names = parameters(function)
        inputs = {name: value for name, value in self.operands.items() if name in names}
        traced = trace(
            function,
            problem=problem,
            shapes={name: _shape(value, row_modes) for name, value in inputs.items() if hasattr(value, "shape")},
            scalars={name: float(value) for name, value in inputs.items() if _is_number(value)},
            constants={
                name: value for name, value in inputs.items() if isinstance(value, (bool, str)) or value is None
            },
        )
        tensors: dict[str, Any] = {each.label: inputs[each.name] for each in traced.inputs}
        missing = [output.name for output in traced.outputs if output.label != "D" and output.name not in self.operands]
        if missing:
            raise InvalidArgument(f"the epilogue returns {', '.join(missing)}, but no array of that name is given")
        outputs = {output.label: self.operands[output.name] for output in traced.outputs if output.label != "D"}
        unused = self.operands.keys() - inputs.keys() - {output.name for output in traced.outputs}
        if unused:
            raise InvalidArgument(f"the epilogue has no parameter or output named {', '.join(sorted(unused))}")
        values = {scalar.label: scalar.value for scalar in traced.scalars}
        return Epilogue(traced.text, compute, values), tensors | outputs, values


def _shape(array: Any, row_modes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an array; as a matrix, if it has more modes than two and `row_modes` says which are rows."""
    shape = tuple(array.shape)
    if not row_modes or len(shape) <= 2:
        return shape
    rows = math.prod(extent for mode, extent in enumerate(shape) if mode in row_modes)
    return rows, math.prod(extent for mode, extent in enumerate(shape) if mode not in row_modes)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
