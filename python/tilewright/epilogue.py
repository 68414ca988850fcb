"""Epilogues together with the arrays and numbers that are bound to their names."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from tilewright._tilewright import DType, Epilogue
from tilewright.activations import as_epilogue
from tilewright.errors import InvalidArgument

if TYPE_CHECKING:
    from tilewright.tracing import TracedEpilogue

_MAX_CACHED = 64  # problems for which an EpilogueArguments caches the graph
_MAX_TRACED = 256  # traced functions, and graphs, that are remembered for all calls
_Bound = tuple[Epilogue, dict[str, Any], dict[str, float]]

# It matches the outputs that statements of the epilogue language assign, as in "aux = ..." or "row(total) = ...", but no
# local variables.
_ASSIGNED = re.compile(r"(?:^|;)\s*(?:(?:row|column|single)\s*\(\s*(\w+)\s*\)|(\w+))\s*=(?!=)")


class EpilogueArguments:
    """An epilogue of A @ B with the arrays and numbers that it reads and writes.

    epilogue   a Python function or its source, which is traced (see tilewright.tracing); or a str in the epilogue
               language; or an Epilogue; or an activation: torch.relu, np.tanh, torch.nn.GELU(), jax.nn.silu
    operands   keywords: the value of each parameter of the function, or of each name in the str, and an array for each
               output other than D. The accumulators can be an output too: `return D, accum`. An array for D may be given
               if it is the one that the call writes, `out`

        EpilogueArguments("aux = acc + row(bias); D = relu(aux)", bias=bias, aux=aux)

    A function is traced once for each shape of problem. Its closure and its globals are read at that time. Another
    EpilogueArguments of the same function uses that result, unless the function, or a value that it reads, has changed.
    """

    def __init__(self, epilogue: Callable[..., object] | str | Epilogue, /, **operands: Any) -> None:
        self.epilogue = as_epilogue(epilogue)
        if not (callable(self.epilogue) or isinstance(self.epilogue, (str, Epilogue))):
            raise TypeError(
                "epilogue must be a Python function, a name such as 'relu', a text such as 'D = relu(acc)', or an "
                f"Epilogue, got {type(epilogue).__name__}"
            )
        if self._is_traced:
            operands = {name: _without_numpy(value) for name, value in operands.items()}
        self.operands = MappingProxyType(operands)
        self._given = epilogue
        self._caller: Callable[..., object] | None = None  # the function that was called with the operands by name
        self._binding: _Binding | None = None  # the last one of a function
        self._name_of_d = "D"  # the variable of the function that is stored to D
        self._bound: dict[tuple[int | None, int, int, int, int, str], _Bound] = {}

    @property
    def _is_traced(self) -> bool:
        """Whether the epilogue is a Python function or its source."""
        return callable(self.epilogue) or (isinstance(self.epilogue, str) and "def " in self.epilogue)

    def __repr__(self) -> str:
        operands = "".join(f", {name}={_described(value)}" for name, value in self.operands.items())
        given = getattr(self._given, "__qualname__", None) or repr(self._given)
        return f"EpilogueArguments({given}{operands})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (type(self), self._given, dict(self.operands))

    def _bind(self, batch: int | None, m: int, n: int, compute: DType, output: DType, modes: str = "") -> _Bound:
        """The graph for a problem of these extents, with its tensors and scalars by their names in the graph.

        `modes` has a letter for each mode of the output: "b" if it is one of the batch, "m" of the rows, "n" of the
        columns. Without it, tensors are matrices or batches of matrices.
        """
        key = (batch, m, n, id(compute), id(output), modes)  # DTypes are singletons, and their hashes take long
        bound = self._bound.get(key)
        if bound is None:
            bound = self._make(batch, m, n, compute, output, modes)
            if len(self._bound) >= _MAX_CACHED:
                self._bound.clear()
            self._bound[key] = bound
        return bound

    def _make(self, batch: int | None, m: int, n: int, compute: DType, output: DType, modes: str) -> _Bound:
        if self._is_traced:
            return self._trace(self.epilogue, (m, n) if batch is None else (batch, m, n), compute, modes)
        launch_numbers = re.findall(r"\$(\w+)", self.epilogue) if isinstance(self.epilogue, str) else ()
        numbers = {name: float(value) for name, value in self.operands.items() if _is_number(value)}
        for name in self.operands.keys() & set(launch_numbers) - numbers.keys():
            numbers[name] = _launch_number(name, self.operands[name])
        arrays = {
            name: _readable(value) for name, value in self.operands.items() if name not in numbers and name != "D"
        }
        if isinstance(self.epilogue, Epilogue):
            if numbers:
                raise InvalidArgument(f"an Epilogue already has its scalars, got values for {', '.join(numbers)}")
            return self.epilogue, arrays, {}
        return graph_of_text(self.epilogue, compute, numbers, output), arrays, numbers

    def _trace(
        self,
        function: Callable[..., object] | str,
        problem: tuple[int, ...],
        compute: DType,
        modes: str,
    ) -> _Bound:
        identity = _identity(function)
        if identity is None:
            made = self._make_binding(function, problem, compute, modes)
            self._name_of_d = made.name_of_d
            return made.of(self.operands)
        kinds = [_kind(name, value, modes) for name, value in self.operands.items()]
        key = identity, problem, id(compute), *kinds
        found = _BINDINGS.get(key)
        if found is None:
            found = self._make_binding(function, problem, compute, modes)
            _remember(_BINDINGS, key, found)
        self._binding = found
        self._name_of_d = found.name_of_d
        return found.of(self.operands)

    def _make_binding(
        self,
        function: Callable[..., object] | str,
        problem: tuple[int, ...],
        compute: DType,
        modes: str,
    ) -> _Binding:
        from tilewright.tracing import parameters

        names = parameters(function)
        accumulators = _accumulators(names)
        inputs = {name: value for name, value in self.operands.items() if name in names and name != accumulators}
        shapes = {name: _shape(value, modes) for name, value in inputs.items() if hasattr(value, "shape")}
        scalars = {name: float(value) for name, value in inputs.items() if _is_number(value)}
        constants = {name: value for name, value in inputs.items() if isinstance(value, (bool, str)) or value is None}
        unknown = inputs.keys() - shapes.keys() - scalars.keys() - constants.keys()
        for name in sorted(unknown):
            raise TypeError(
                f"'{name}' of the epilogue must be an array, a number, a bool, a str or None, "
                f"got {type(inputs[name]).__name__}"
            )
        try:
            traced = _traced(function, problem, shapes, scalars, constants)
        except InvalidArgument as error:
            raise self._explained(error) from None
        missing = [output.name for output in traced.outputs if output.label != "D" and output.name not in self.operands]
        if missing:
            raise InvalidArgument(f"the epilogue returns {', '.join(missing)}, but no array of that name is given")
        written = [output.name for output in traced.outputs]
        unused = self.operands.keys() - inputs.keys() - set(written)
        if accumulators in unused:
            raise InvalidArgument(
                f"'{accumulators}' stands for the accumulators A*B: an array may be bound to it only if the function "
                "returns it"
            )
        if unused:
            known = [*names, *(name for name in written if name not in names)]
            raise InvalidArgument(
                f"the epilogue has no parameter or output named {', '.join(sorted(unused))}{nearest(unused, known)}"
            )
        return _Binding(
            graph_of_text(traced.text, compute, {}) if not traced.scalars else None,
            traced.text,
            compute,
            tuple((each.label, each.name) for each in traced.inputs),
            tuple((output.label, output.name) for output in traced.outputs if output.label != "D"),
            tuple((scalar.label, scalar.name) for scalar in traced.scalars),
            next(output.name for output in traced.outputs if output.label == "D"),
        )

    def _bound_output(self) -> tuple[str, Any] | None:
        """The name and the array that the caller has bound to the value that is stored to D, after a graph was made; None
        if there is none. Constructors of arguments refuse one that is not their output."""
        name = self._name_of_d
        return (name, self.operands[name]) if name in self.operands else None

    def _outputs(self) -> set[str]:
        """The operands that the epilogue writes, as far as graphs have been made for it."""
        names = self._labels() or {}
        return {names.get(label, label) for bound in self._bound.values() for label in bound[0].outputs}

    def _explained(self, error: InvalidArgument) -> InvalidArgument:
        """The error, with what to do if a parameter of the traced function has the name of a parameter of the call."""
        from inspect import Parameter, signature

        from tilewright.tracing import TraceError

        name = error.unbound if isinstance(error, TraceError) else None
        if name is None or self._caller is None or not isinstance(error, TraceError):
            return error
        call = f"{self._caller.__name__}()"
        own = signature(self._caller).parameters.get(name)
        if own is not None and own.kind is not Parameter.POSITIONAL_ONLY:
            instead = f"name it otherwise, or pass EpilogueArguments(function, {name}=...): {call} has its own {name}="
        elif name == "C":
            instead = f"pass C=, as for every parameter: c= of {call} is the C of epilogues that are texts"
        else:
            return error
        return TraceError(error.reason, error.location, instead, error.callers)

    def _written(self) -> set[str]:
        """The names of the operands that are outputs."""
        if isinstance(self.epilogue, Epilogue):
            return self.operands.keys() & self.epilogue.outputs.keys()
        if isinstance(self.epilogue, str) and not self._is_traced:
            return self.operands.keys() & {name for found in _ASSIGNED.findall(self.epilogue) for name in found}
        from tilewright.tracing import parameters

        names = parameters(self.epilogue)
        return self.operands.keys() - (set(names) - {_accumulators(names)})

    def _labels(self) -> dict[str, str] | None:
        """The operand that each array of the graph stands for, by its name there, after the graph of a function was made;
        None if that is not remembered, as where an array is bound to D."""
        if self._bound_output() is not None:
            return None
        if not self._is_traced:
            return {name: name for name in self.operands}
        return None if self._binding is None else dict(self._binding.inputs + self._binding.outputs)

    def _text(self, batch: int | None, m: int, n: int, compute: DType) -> tuple[str, dict[str, str], dict[str, float]]:
        """The epilogue in the epilogue language, the operand that each label of it stands for, and its numbers."""
        numbers = {name: float(value) for name, value in self.operands.items() if _is_number(value)}
        if isinstance(self.epilogue, str) and not self._is_traced:
            return self.epilogue, {name: name for name in self.operands}, numbers
        if isinstance(self.epilogue, Epilogue):
            raise InvalidArgument("an Epilogue object has no gradients: pass its text, or a Python function")
        from tilewright.tracing import parameters

        names = parameters(self.epilogue)
        inputs = {
            name: value for name, value in self.operands.items() if name in names and name != _accumulators(names)
        }
        traced = _traced(
            self.epilogue,
            (m, n) if batch is None else (batch, m, n),
            {name: _shape(value, "") for name, value in inputs.items() if hasattr(value, "shape")},
            {name: float(value) for name, value in inputs.items() if _is_number(value)},
            {name: value for name, value in inputs.items() if isinstance(value, (bool, str)) or value is None},
        )
        values = {scalar.label: float(inputs[scalar.name]) for scalar in traced.scalars}
        return traced.text, {each.label: each.name for each in traced.inputs}, values


class _Binding(NamedTuple):
    """A traced function: its text, and the operand that each label of it stands for, as pairs (label, operand)."""

    graph: Epilogue | None  # if there are no scalars, whose values are part of it
    text: str
    compute: DType
    inputs: tuple[tuple[str, str], ...]
    outputs: tuple[tuple[str, str], ...]
    scalars: tuple[tuple[str, str], ...]
    name_of_d: str

    def of(self, operands: Mapping[str, Any]) -> _Bound:
        tensors = {label: _readable(operands[name]) for label, name in self.inputs}
        if self.outputs:
            tensors |= {label: operands[name] for label, name in self.outputs}
        if self.graph is not None:
            return self.graph, tensors, {}
        values = {label: float(operands[name]) for label, name in self.scalars}
        return graph_of_text(self.text, self.compute, values), tensors, values


_BINDINGS: dict[Hashable, _Binding] = {}
_TRACED: dict[Hashable, TracedEpilogue] = {}
_GRAPHS: dict[Hashable, Epilogue] = {}


_key_of: Callable[[object], Hashable | None] | None = None


def _identity(function: object) -> Hashable | None:
    """tilewright.tracing.identity.key_of(), whose module is imported at the first call: an import statement in each call
    would take longer than the function."""
    global _key_of
    if _key_of is None:
        from tilewright.tracing.identity import key_of

        _key_of = key_of
    return _key_of(function)


def _traced(
    function: Callable[..., object] | str,
    problem: tuple[int, ...],
    shapes: dict[str, tuple[int, ...]],
    scalars: dict[str, float],
    constants: dict[str, Any],
) -> TracedEpilogue:
    """trace(), whose result is remembered. The numbers in it are those of the first call."""
    from tilewright.tracing import trace

    identity = _identity(function)
    if identity is None:
        return trace(function, problem=problem, shapes=shapes, scalars=scalars, constants=constants)
    fixed = tuple((name, type(value), value) for name, value in constants.items())
    key = identity, problem, tuple(shapes.items()), tuple(scalars), fixed
    found = _TRACED.get(key)
    if found is None:
        found = trace(function, problem=problem, shapes=shapes, scalars=scalars, constants=constants)
        _remember(_TRACED, key, found)
    return found


def _accumulators(names: list[str]) -> str | None:
    """The parameter for the accumulators of a function with these parameters, if its name says so."""
    return next((name for name in ("accum", "acc") if name in names), None)


def graph_of_text(text: str, compute: DType, numbers: dict[str, float], output: DType | None = None) -> Epilogue:
    """Epilogue(), whose result is remembered."""
    values = tuple(sorted((name, value.hex()) for name, value in numbers.items())) if numbers else ()
    key = text, id(compute), values, id(output)
    found = _GRAPHS.get(key)
    if found is None:
        found = Epilogue(text, compute, numbers, output)
        _remember(_GRAPHS, key, found)
    return found


def _remember(known: dict[Hashable, Any], key: Hashable, value: Any) -> None:
    if len(known) >= _MAX_TRACED:
        known.clear()
    known[key] = value


def nearest(wrong: Any, known: Any) -> str:
    """ "; did you mean 'bias'?" if a name of `known` is spelled like the only one of `wrong`, else what there is."""
    import difflib

    names = [*known]
    if len(wrong) == 1:
        close = difflib.get_close_matches(next(iter(wrong)), names, 1, 0.6)
        if close:
            return f"; did you mean '{close[0]}'?"
    return f": it has {', '.join(names)}" if names else ""


def _readable(array: Any) -> Any:
    """An array of bool as one of uint8 with the same memory; other arrays as they are."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        return array.view(torch.uint8) if array.dtype == torch.bool else array
    kind = getattr(array, "dtype", None)
    return array.view("uint8") if getattr(kind, "kind", "") == "b" else array


def _shape(array: Any, modes: str) -> tuple[int, ...]:
    """The shape of an array; that of the matrix, or of the batch of matrices, that it is if `modes` has the kinds of the
    output's modes, of which the first ones may be left out."""
    shape: tuple[int, ...] = tuple(array.shape)
    if not 2 <= len(shape) <= len(modes):
        return shape
    padded = (1,) * (len(modes) - len(shape)) + shape
    kinds = "bmn" if "b" in modes else "mn"
    return tuple(math.prod(extent for extent, mode in zip(padded, modes) if mode == kind) for kind in kinds)


def _kind(name: str, value: Any, modes: str) -> Hashable:
    """What a trace depends on of an operand of that name: all of it, but for the values of numbers and arrays."""
    if hasattr(value, "shape"):
        return name, _shape(value, modes)
    if _is_number(value):
        return name, float
    return name, type(value), value if value is None or isinstance(value, (bool, str)) else None


def _unpickled(kind: type[EpilogueArguments], epilogue: Any, operands: dict[str, Any]) -> EpilogueArguments:
    return kind(epilogue, **operands)


def _described(value: Any) -> str:
    """An array by its type and shape, other values as they are."""
    return f"{value.dtype}{(*value.shape,)}" if hasattr(value, "shape") and hasattr(value, "dtype") else f"{value!r:.40}"


def _launch_number(name: str, value: Any) -> float:
    """The value of $name, which may be a number of NumPy."""
    if getattr(value, "shape", None) == () and hasattr(value, "__array_interface__"):
        return float(value)
    shape = f"an array of shape {(*value.shape,)}" if hasattr(value, "shape") else type(value).__name__
    raise InvalidArgument(f"{name} must be a number, because the epilogue has ${name}, got {shape}")


def _without_numpy(value: Any) -> Any:
    """A scalar of NumPy as a number of Python; other values as they are."""
    numpy = sys.modules.get("numpy")
    return value.item() if numpy is not None and isinstance(value, numpy.generic) else value


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
