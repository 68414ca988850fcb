"""C, D and the epilogue of an operation's arguments, which GEMMs and split-K reductions have in common."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy

from tilewright import _tilewright
from tilewright._tilewright import Epilogue
from tilewright.errors import InvalidArgument, Unsupported

from . import cutlass
from .array import Memory, Staged, View, current_stream, item_bytes, memory_of, packed
from .cutlass.gemm import GemmCoord
from .epilogue import EpilogueFunctorBase, OutputOp
from .tensor import TensorDescription
from .visitor import EpilogueVisitTree, VisitorOutputOp

if TYPE_CHECKING:
    from .operation import DesignedOperation
    from .reduction import ReductionOperation

BIAS = "bias"  # the name of C in the epilogue if C is a vector
INTERLEAVED = 32  # rows or columns that an interleaved layout stores together


@dataclass(frozen=True)
class Outputs:
    """D, the epilogue and what it reads, as GemmArguments and ReduceSplitKArguments of the extension take them.

    D and C are lists of views if the caller gave lists of arrays, in mode Array.
    """

    d: View | list[View]
    epilogue: Epilogue
    options: dict[str, Any]  # C, alpha, beta, tensors


class OutputArguments:
    """Base class of GemmArguments, Conv2dArguments and ReductionArguments.

    operation     has the description of C and D, and the epilogue functor
    problem_size  m and n are the extents of D
    output_op     operation.epilogue_type(...); None: alpha = 1 and beta = 0
    bias          whether C is a vector
    """

    def __init__(
        self,
        operation: DesignedOperation | ReductionOperation,
        problem_size: GemmCoord,
        output_op: OutputOp | VisitorOutputOp | tuple[OutputOp | VisitorOutputOp] | None,
        bias: bool,
    ) -> None:
        self.operation: Any = operation
        self.gemm_size = problem_size
        self.problem_size: Any = problem_size  # of a convolution, its Conv2dProblemSize
        # `output_op = operation.epilogue_type(alpha, beta),` of PyCUTLASS's documentation is a tuple.
        self.output_op = output_op[0] if isinstance(output_op, tuple) and len(output_op) == 1 else output_op
        self.bias = self._is_bias_given = bias
        self.batch_count = 1
        self._staged: list[Staged] = []
        self._cleared: list[Any] = []
        self._memories: list[Memory] = []
        self._stream: Any = None

    def sync(self, stream_sync: bool = True) -> None:
        """Waits for the last run. D is undefined before it returns."""
        for device in {memory.device for memory in self._memories if memory.device is not None}:
            if stream_sync:
                _tilewright.synchronize(f"cuda:{device}", self._stream)

    def _bind_outputs(self, C: Any, D: Any, batch: int | None) -> Outputs:
        functor = self.operation.epilogue_functor
        m, n = self.gemm_size.m(), self.gemm_size.n()
        if isinstance(functor, EpilogueVisitTree):
            arguments = self._visitor_output_op(functor)
            visit = functor.bind(arguments, batch, m, n, self.operation.C.layout is cutlass.ColumnMajor)
            d = self._operand(
                arguments.operands.get(visit.name_of_d, D), "D", self.operation.C, m, n, batch, is_written=True
            )
            self._cleared += visit.cleared
            self._memories += [*visit.memories, *_memories_of(d)]
            return Outputs(d, visit.epilogue, {"alpha": visit.alpha, "beta": visit.beta, "tensors": visit.tensors})
        d = self._operand(D, "D", self.operation.C, m, n, batch, is_written=True)
        self._memories += _memories_of(d)
        output_op = self._linear_output_op(functor)
        source, epilogue, tensors = self._source(C, functor, output_op, batch)
        scalars = {"alpha": output_op.alpha, "beta": output_op.beta}
        return Outputs(d, epilogue, {"C": source, "tensors": tensors, **scalars})

    def _refresh(self, stream: Any = None) -> None:
        """Makes the copies that a launch on `stream` reads anew: of host arrays whose elements are not in the order of
        their indices, and of vectors that are repeated."""
        for staged in self._staged:
            staged.refresh()
            memory = memory_of(staged.copy, "C")
            if stream is not None and memory.device is not None:
                _tilewright.synchronize(f"cuda:{memory.device}", current_stream(memory))

    def _clear(self) -> None:
        """Zeros outputs of which the kernel writes only a part."""
        for array in self._cleared:
            getattr(array, "zero_", lambda array=array: array.fill(0))()

    def _visitor_output_op(self, functor: EpilogueVisitTree) -> VisitorOutputOp:
        output_op = self.output_op
        if not isinstance(output_op, VisitorOutputOp) or output_op.visitor is not functor:
            raise InvalidArgument("output_op is what operation.epilogue_type(...) of this operation makes")
        return output_op

    def _linear_output_op(self, functor: EpilogueFunctorBase) -> OutputOp:
        output_op = functor.epilogue_type(1.0, 0.0) if self.output_op is None else self.output_op
        if (
            not isinstance(output_op, OutputOp)
            or output_op.functor.activation_functor is not functor.activation_functor
        ):
            raise InvalidArgument("output_op is what operation.epilogue_type(...) of this operation makes")
        return output_op

    def _source(
        self, C: Any, functor: EpilogueFunctorBase, output_op: OutputOp, batch: int | None
    ) -> tuple[View | list[View] | None, Epilogue, dict[str, View]]:
        """C, the epilogue, and the epilogue's tensors. C is not read if beta is 0."""
        if output_op.beta == 0:
            return None, functor.graph(output_op), {}
        if C is None:
            raise InvalidArgument(f"C is None, but beta is {output_op.beta}")
        m, n = self.gemm_size.m(), self.gemm_size.n()
        description = self.operation.C
        if isinstance(C, (list, tuple)):
            return self._operand(C, "C", description, m, n, batch), functor.graph(output_op), {}
        memory = memory_of(C, "C")
        self.bias = self._is_bias_given or self._is_vector(memory)
        if not self.bias:
            return self._matrix(C, "C", description, m, n, batch), functor.graph(output_op), {}
        is_row = description.layout is not cutlass.ColumnMajor
        along = n if is_row else m
        vector = self._vector_shape(along, is_row)
        has_batch = batch is not None and memory.elements is not None and memory.elements >= along * batch
        shape = (batch or 1, *vector) if has_batch else vector
        channels = self._channels()
        is_repeated = channels is not None and channels < along and (memory.elements or 0) < along
        elements = channels if channels is not None and is_repeated else along
        self._check(memory, "C", description, elements * (shape[0] if has_batch else 1))
        self._check_order(memory, "C")
        if is_repeated:
            memory = self._repeated(memory, elements, along // elements)
        view = View(memory, description.element.kind, shape, packed(shape))
        source = f"{'row' if is_row else 'column'}({BIAS})"
        return None, functor.graph(output_op, source), {BIAS: view}

    def _vector_shape(self, along: int, is_row: bool) -> tuple[int, ...]:
        """The shape of a C that is a vector, for the epilogue."""
        return (1, along) if is_row else (along, 1)

    def _channels(self) -> int | None:
        """The number of channels of a D of wgrad, each of which has several columns; else None. A C that is a vector may
        have a number for each."""
        return None

    def _repeated(self, memory: Memory, elements: int, count: int) -> Memory:
        """A copy of a vector, `count` times one after the other, which each launch makes anew."""
        vector = memory.owner
        if memory.elements is None:
            raise Unsupported("C of wgrad is a bias vector: pass an array, as its elements are copied for each tap")
        shape = (count, elements)
        if hasattr(vector, "new_empty"):
            copy = vector.new_empty(shape)
        else:
            copy = sys.modules[type(vector).__module__.partition(".")[0]].empty(shape, vector.dtype)
        self._staged.append(Staged(vector.reshape(-1)[:elements], copy))
        return memory_of(copy, "C")

    def _is_vector(self, memory: Memory) -> bool:
        m, n = self.gemm_size.m(), self.gemm_size.n()
        along, across = (m, n) if self.operation.C.layout is cutlass.ColumnMajor else (n, m)
        return (memory.elements == along and across != 1) or memory.elements == self._channels() != m * n

    def _operand(
        self,
        operand: Any,
        role: str,
        description: TensorDescription,
        rows: int,
        columns: int,
        batch: int | None,
        is_written: bool = False,
    ) -> View | list[View]:
        """One matrix, a batch, or a view for each array of a list."""
        if not isinstance(operand, (list, tuple)):
            return self._matrix(operand, role, description, rows, columns, batch, is_written)
        if len(operand) != self.batch_count:
            raise InvalidArgument(f"{role} is a list of {len(operand)} arrays, but the batch is {self.batch_count}")
        return [
            self._matrix(each, f"{role}[{i}]", description, rows, columns, None, is_written)
            for i, each in enumerate(operand)
        ]

    def _matrix(
        self,
        array: Any,
        role: str,
        description: TensorDescription,
        rows: int,
        columns: int,
        batch: int | None,
        is_written: bool = False,
    ) -> View:
        """The array's memory as a matrix or a batch of matrices."""
        memory = memory_of(array, role)
        self._check(memory, role, description, rows * columns * (1 if batch is None else batch))
        strides: tuple[int, ...] = description.layout.strides(rows, columns)
        shape: tuple[int, ...] = (rows, columns)
        if description.layout.is_interleaved:
            shape = _blocks(role, description, rows, columns)
            strides = packed(shape)
        if batch is not None:
            shape, strides = (batch, *shape), (rows * columns, *strides)
        if not memory.is_contiguous and memory.elements is not None:
            memory = self._in_order(memory, role, shape, strides, is_written)
        if is_written and memory.is_read_only:
            raise InvalidArgument(f"{role} is read-only")
        return View(memory, description.element.kind, shape, strides)

    def _in_order(
        self, memory: Memory, role: str, shape: tuple[int, ...], strides: tuple[int, ...], is_written: bool
    ) -> Memory:
        """The memory for an array whose elements are not in the order of its indices.

        A NumPy array is copied in that order, as PyCUTLASS does. Another array is used in place if its shape and
        strides are those of the operand, else refused. A NumPy array that lies as the operand is described is refused,
        because its transpose may be meant: of a square array, x.T and a column-major x have the same strides.
        """
        is_numpy = isinstance(memory.owner, numpy.ndarray)
        is_as_described = memory.lies_as(shape, strides)
        if is_as_described and not is_numpy:
            return memory
        if is_numpy and is_as_described and not is_written and shape[-1] == shape[-2]:
            transpose = "x.T" if len(shape) == 2 else "x.swapaxes(-1, -2)"
            raise InvalidArgument(
                f"{role} has square matrices and strides {memory.strides}: it may be meant as the operand or as its "
                f"transpose. With x the array that is given as {role}, pass {transpose} if x is the operand, and "
                "numpy.ascontiguousarray(x) if x is its transpose"
            )
        if not is_numpy or is_written or is_as_described:
            self._check_order(memory, role)
        staged = Staged(memory.owner, numpy.empty(memory.owner.shape, memory.owner.dtype))
        self._staged.append(staged)
        return memory_of(staged.copy, role)

    @staticmethod
    def _check_order(memory: Memory, role: str) -> None:
        if memory.is_contiguous or memory.elements is None:
            return
        raise InvalidArgument(
            f"{role} has shape {memory.shape} and strides {memory.strides}: its elements must be in memory in the "
            "order of its indices, without gaps; flatten it, or pass the transposed array"
        )

    @staticmethod
    def _check(memory: Memory, role: str, description: TensorDescription, elements: int) -> None:
        kind = description.element.kind
        if memory.kind is not None and memory.kind != kind:
            raise InvalidArgument(f"{role} is {memory.kind.name}, but the operation takes {kind.name}")
        if memory.elements is not None and memory.elements < elements:
            raise InvalidArgument(
                f"{role} needs {elements} elements ({elements * item_bytes(kind)} bytes), got {memory.elements}"
            )


def _blocks(role: str, description: TensorDescription, rows: int, columns: int) -> tuple[int, ...]:
    """The shape of an interleaved matrix in memory: blocks of 32 columns, or rows, the other extent, and 32."""
    by_rows = description.layout is cutlass.RowMajorInterleaved32
    along, other = (rows, columns) if by_rows else (columns, rows)
    if along % INTERLEAVED != 0:
        raise InvalidArgument(
            f"{role} is {description.layout.name}: it needs a multiple of {INTERLEAVED} "
            f"{'rows' if by_rows else 'columns'}, got {along}"
        )
    return (along // INTERLEAVED, other, INTERLEAVED)


def _memories_of(operand: View | list[View]) -> list[Memory]:
    return [each.memory for each in operand] if isinstance(operand, list) else [operand.memory]
