"""The arguments of GemmOperationUniversal."""

from __future__ import annotations

import operator
import re
from typing import Any

import numpy

from tilewright import _tilewright
from tilewright._tilewright import Epilogue, Kernel, PreparedCall
from tilewright.errors import InvalidArgument, Unsupported

from . import cutlass
from .array import Memory, Staged, View, current_stream, item_bytes, memory_of, packed
from .cutlass.element import DataType
from .cutlass.gemm import GemmCoord, Mode
from .epilogue import EpilogueFunctorBase, OutputOp
from .math_instruction import MathOperation
from .operation import GemmOperationUniversal
from .tensor import TensorDescription
from .visitor import EpilogueVisitTree, VisitorOutputOp

BIAS = "bias"  # the name of C in the epilogue if C is a vector
INTERLEAVED = 32  # rows or columns that an interleaved layout stores together


class SplitKWorkspace:
    """`ptr_D` of arguments of mode GemmSplitKParallel, the workspace of a ReductionOperation."""

    def __init__(self, arguments: GemmArguments) -> None:
        self.arguments = arguments
        self.is_ready = False


class GemmArguments:
    """The arguments of an operation: extents, arrays and scalars.

    A, B, C, D      NumPy arrays, which are copied to the device when the operation runs; PyTorch and CuPy arrays, which
                    are used in place; or CUdeviceptr. Only their memory matters: the extents are those of the problem,
                    and the layouts, without gaps, those of the operation's descriptions. An array may therefore be flat
                    or of any shape, as long as its elements are in memory in the order of their indices. In mode Array
                    each operand may be a list of arrays, which one launch computes.
    C               a vector of n elements is a bias that is added to every row (of m elements, added to every column,
                    if C and D are column-major); may be None if beta is 0
    B               is in its natural order also if C and D are interleaved: reorder_tensor_B() has nothing to do
    output_op       operation.epilogue_type(alpha, beta); the default is alpha = 1 and beta = 0
    split_k_slices  a hint without effect on the result (also split_k_splices)
    batch           the number of matrices, for modes Batched and Array
    bias            whether C is a vector, one for each matrix of a batch

    Raises InvalidArgument, with the numbers, for arrays that are too small, of another type, or not in the layout.
    """

    def __init__(
        self,
        operation: GemmOperationUniversal,
        problem_size: GemmCoord,
        A: Any,
        B: Any,
        C: Any,
        D: Any,
        gemm_mode: Mode = Mode.Gemm,
        *,
        output_op: OutputOp | VisitorOutputOp | None = None,
        split_k_slices: int | None = None,
        split_k_splices: int | None = None,
        batch: int | None = None,
        bias: bool = False,
    ) -> None:
        if not isinstance(problem_size, GemmCoord):
            raise InvalidArgument(f"problem_size must be a cutlass.gemm.GemmCoord, got {problem_size!r:.80}")
        if not isinstance(gemm_mode, Mode) or gemm_mode is Mode.Invalid:
            raise InvalidArgument(f"gemm_mode must be Gemm, GemmSplitKParallel, Batched or Array, got {gemm_mode!r}")
        self.operation = operation
        self.problem_size = problem_size
        self.A, self.B = A, B
        self.gemm_mode = gemm_mode
        self.output_op = output_op
        self.split_k_slices = _count(split_k_slices if split_k_splices is None else split_k_splices, "split_k_slices")
        is_batch = gemm_mode in (Mode.Batched, Mode.Array)
        lists = [each for each in (A, B, C, D) if isinstance(each, (list, tuple))]
        if lists and gemm_mode is not Mode.Array:
            raise InvalidArgument(f"lists of arrays are for mode Array, got {gemm_mode.name}")
        self.batch_count = _count(len(lists[0]) if batch is None and lists else batch, "batch")
        if self.batch_count > 1 and not is_batch:
            raise InvalidArgument(f"a batch of {self.batch_count} is for modes Batched and Array, got {gemm_mode.name}")
        if self.split_k_slices > 1 and is_batch:
            raise InvalidArgument(
                f"split_k_slices must be 1 in modes Batched and Array, got {self.split_k_slices}"
            )
        self._check_sums()
        self.bias = self._is_bias_given = bias
        self._staged: list[Staged] = []
        self._cleared: list[Any] = []
        self._memories: list[Memory] = []
        self._prepared: list[PreparedCall] | None = None
        self._workspace: SplitKWorkspace | None = None
        self._stream: Any = None
        if isinstance(C, (list, tuple)) and self._are_bias_vectors(C):
            self._problems = [self._bind(*each, batch=None) for each in self._elements_of_array(A, B, C, D)]
        else:
            self._problems = [self._bind(A, B, C, D, self.batch_count if is_batch else None)]
        self._kernels = [self._kernel_for(problem) for problem in self._problems]

    @property
    def ptr_D(self) -> SplitKWorkspace:
        """The workspace that a ReductionOperation reads, in mode GemmSplitKParallel.

        Once this has been read, runs of the operation no longer write D. Raises InvalidArgument in other modes.
        """
        if self.gemm_mode is not Mode.GemmSplitKParallel:
            raise InvalidArgument(f"ptr_D needs mode GemmSplitKParallel, got {self.gemm_mode.name}")
        self._workspace = self._workspace or SplitKWorkspace(self)
        return self._workspace

    def reorder_tensor_B(self, tensor_B: Any, problem_size: GemmCoord) -> Any:
        """Returns `tensor_B`.

        CUTLASS's kernels with an interleaved C and D need the columns of B in another order, and PyCUTLASS's arguments
        copy it. These kernels read B as it is, so that nothing is copied.
        """
        return tensor_B

    def launch(self, stream: Any = None) -> None:
        """Implements GemmOperationUniversal.run()."""
        if self._workspace is not None:
            self._workspace.is_ready = True
            return
        if self._prepared is None:
            pairs = zip(self._problems, self._kernels, strict=True)
            self._prepared = [_tilewright.prepare(problem, kernel) for problem, kernel in pairs]
        for staged in self._staged:
            staged.refresh()
        for array in self._cleared:
            getattr(array, "zero_", lambda array=array: array.fill(0))()
        self._stream = current_stream(self._memories[-1]) if stream is None else stream
        for prepared in self._prepared:
            prepared.run(stream=self._stream)

    def sync(self, stream_sync: bool = True) -> None:
        """Waits for the last run. D is undefined before it returns."""
        for device in {memory.device for memory in self._memories if memory.device is not None}:
            if stream_sync:
                _tilewright.synchronize(f"cuda:{device}", self._stream)

    def _check_sums(self) -> None:
        math = self.operation.tile_description.math_instruction
        if math.math_operation is not MathOperation.multiply_add_saturate:
            return
        greatest = {DataType.int8: 128, DataType.u8: 255}
        product = greatest.get(math.element_a, 1) * greatest.get(math.element_b, 1)
        most = (2**31 - 1) // product
        if self.problem_size.k() > most:
            raise Unsupported(
                f"multiply_add_saturate: sums of k = {self.problem_size.k()} products may overflow 32 bits, and no "
                f"kernel saturates them: k must be at most {most}"
            )

    def _elements_of_array(self, *operands: Any) -> list[tuple[Any, Any, Any, Any]]:
        """A, B, C and D of each problem of mode Array. An operand that is no list is an array of packed matrices."""
        sizes = [self.problem_size.mk(), self.problem_size.kn(), self.problem_size.mn(), self.problem_size.mn()]
        columns: list[list[Any]] = []
        for role, operand, size in zip("ABCD", operands, sizes, strict=True):
            if isinstance(operand, (list, tuple)):
                if len(operand) != self.batch_count:
                    raise InvalidArgument(
                        f"{role} is a list of {len(operand)} arrays, but the batch is {self.batch_count}"
                    )
                columns.append([*operand])
            elif operand is None:
                columns.append([None] * self.batch_count)
            else:
                step = size.row() * size.column()
                check_buffer(operand, role, step * self.batch_count)
                columns.append([operand.reshape(-1)[i * step : (i + 1) * step] for i in range(self.batch_count)])
        return [*zip(*columns, strict=True)]

    def _are_bias_vectors(self, C: Any) -> bool:
        """Whether C is a list of vectors that an epilogue would add. The tensors of epilogues have no pointer arrays, so
        that each matrix is then a launch of its own."""
        output_op = self.output_op
        is_read = isinstance(output_op, OutputOp) and output_op.beta != 0
        if not C or self.operation.visitor or not is_read:
            return False
        return self.bias or self._is_vector(memory_of(C[0], "C"))

    def _is_vector(self, memory: Memory) -> bool:
        m, n = self.problem_size.m(), self.problem_size.n()
        along, across = (n, m) if self.operation.C.layout is cutlass.RowMajor else (m, n)
        return memory.elements == along and across != 1

    def _bind(self, A: Any, B: Any, C: Any, D: Any, batch: int | None) -> _tilewright.GemmArguments:
        operation, size = self.operation, self.problem_size
        accumulator = operation.accumulator_type().kind
        functor = operation.epilogue_functor
        a = self._operand(A, "A", operation.A, size.m(), size.k(), batch)
        b = self._operand(B, "B", operation.B, size.k(), size.n(), batch)
        if isinstance(functor, EpilogueVisitTree):
            arguments = self._visitor_output_op(functor)
            visit = functor.bind(arguments, batch, size.m(), size.n())
            d = self._operand(
                arguments.operands.get(visit.name_of_d, D), "D", operation.C, size.m(), size.n(), batch, is_written=True
            )
            self._cleared += visit.cleared
            self._memories += [*visit.memories, *_memories_of(d)]
            return _gemm_arguments(
                a,
                b,
                d,
                accumulator,
                visit.epilogue,
                alpha=visit.alpha,
                beta=visit.beta,
                math=operation.math,
                tensors=visit.tensors,
                interleaved=self._interleaved(None),
            )
        d = self._operand(D, "D", operation.C, size.m(), size.n(), batch, is_written=True)
        self._memories += _memories_of(d)
        output_op = self._linear_output_op(functor)
        source, epilogue, tensors = self._source(C, functor, output_op, batch)
        return _gemm_arguments(
            a,
            b,
            d,
            accumulator,
            epilogue,
            C=source,
            alpha=output_op.alpha,
            beta=output_op.beta,
            math=operation.math,
            tensors=tensors,
            interleaved=self._interleaved(source),
        )

    def _interleaved(self, source: View | None) -> str:
        """The letters of the interleaved operands; C has the layout of D."""
        operation = self.operation
        described = {"A": operation.A, "B": operation.B, "C": operation.C, "D": operation.C}
        given = "ABD" if source is None else "ABCD"
        return "".join(letter for letter in given if described[letter].layout.is_interleaved)

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
        m, n = self.problem_size.m(), self.problem_size.n()
        description = self.operation.C
        is_row = description.layout is not cutlass.ColumnMajor
        along = n if is_row else m
        if isinstance(C, (list, tuple)):
            return self._operand(C, "C", description, m, n, batch), functor.graph(output_op), {}
        memory = memory_of(C, "C")
        self.bias = self._is_bias_given or self._is_vector(memory)
        if not self.bias:
            return self._matrix(C, "C", description, m, n, batch), functor.graph(output_op), {}
        vector = (1, along) if is_row else (along, 1)
        has_batch = batch is not None and memory.elements is not None and memory.elements >= along * batch
        shape = (batch or 1, *vector) if has_batch else vector
        self._check(memory, "C", description, along * (shape[0] if has_batch else 1))
        self._check_order(memory, "C")
        view = View(memory, description.element.kind, shape, packed(shape))
        source = f"{'row' if is_row else 'column'}({BIAS})"
        return None, functor.graph(output_op, source), {BIAS: view}

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
        is_row_major = description.layout is cutlass.RowMajor
        strides: tuple[int, ...] = (max(1, columns), 1) if is_row_major else (1, max(1, rows))
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
        strides are those of the operand, else refused.
        """
        is_numpy = isinstance(memory.owner, numpy.ndarray)
        is_as_described = memory.lies_as(shape, strides)
        if is_as_described and not is_numpy:
            return memory
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

    def _kernel_for(self, problem: _tilewright.GemmArguments) -> Kernel:
        """The operation's own kernel; for matrices of one row or column, whose layout is ambiguous, the most similar
        one. Raises InvalidArgument."""
        if problem.tensors or self.operation.visitor:
            return self.operation.kernel_for(problem)
        operands = {"A": problem.A, "B": problem.B, "C": problem.C, "D": problem.out}
        if problem.beta == 0:
            operands["C"] = problem.out  # a C that is not read counts as D
        pointer_arrays = "".join(role for role, operand in operands.items() if operand.is_pointer_array)
        kernel = self.operation.kernel_of(problem.epilogue, pointer_arrays)
        status = kernel.supports(problem)
        if not status and min(problem.m, problem.n, problem.k) <= 1:
            return self.operation.closest_kernel(problem)
        status.raise_on_error()
        return kernel


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


def _gemm_arguments(*operands: Any, **options: Any) -> _tilewright.GemmArguments:
    """tilewright.GemmArguments, whose errors name the output D, as callers of PyCUTLASS do, instead of `out`."""
    try:
        return _tilewright.GemmArguments(*operands, **options)
    except InvalidArgument as error:
        raise InvalidArgument(re.sub(r"\bout\b", "D", str(error))) from None


def _memories_of(operand: View | list[View]) -> list[Memory]:
    return [each.memory for each in operand] if isinstance(operand, list) else [operand.memory]


def check_buffer(array: Any, role: str, elements: int) -> None:
    """Raises InvalidArgument for an array that cannot be split into matrices with `elements` elements in total."""
    memory = memory_of(array, role)
    if memory.elements is None or not memory.is_contiguous:
        raise InvalidArgument(
            f"{role}: mode Array takes lists of arrays, or arrays whose elements are contiguous in memory"
        )
    if memory.elements < elements:
        raise InvalidArgument(f"{role} needs {elements} elements, got {memory.elements}")


def _count(value: int | None, name: str) -> int:
    if value is None:
        return 1
    try:
        count = operator.index(value)
    except TypeError:
        raise InvalidArgument(f"{name} must be an integer, got {value!r}") from None
    if count < 1:
        raise InvalidArgument(f"{name} must be at least 1, got {count}")
    return count
