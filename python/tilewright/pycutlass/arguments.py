"""The arguments of GemmOperationUniversal."""

from __future__ import annotations

import operator
import re
from typing import Any

import numpy

from tilewright import _tilewright
from tilewright._tilewright import DType, Kernel, PreparedCall
from tilewright.errors import InvalidArgument, Unsupported

from . import cutlass
from .argument_types import check_type
from .array import Memory, View, current_stream, item_bytes, memory_of, product_of
from .cutlass.element import DataType
from .cutlass.gemm import GemmCoord, Mode
from .cutlass.layout import LayoutType
from .epilogue import OutputOp
from .math_instruction import MathOperation
from .operation import GemmOperationUniversal
from .output_arguments import OutputArguments, Outputs
from .visitor import VisitorOutputOp


class PartialSums:
    """`ptr_D` of arguments with split-K in parallel mode: the partial sums that a ReductionOperation reads.

    They are where D is: in GPU memory, or in host memory if D is a NumPy array.

    arguments  the arguments that they belong to
    parts      the partial sums, of the shape (count, m, n), each part with the layout of D as a matrix; count may be less
               than split_k_slices
    is_ready   whether the operation has been run
    """

    def __init__(self, arguments: Any, parts: View) -> None:
        self.arguments = arguments
        self.parts = parts
        self.is_ready = False


class SplitKWorkspace(PartialSums):
    """The partial sums of a GEMM, and the problems that compute and reduce them.

    count   the number of parts; may be less than split_k_slices, so that the parts of A and B stay aligned
    """

    def __init__(self, arguments: GemmArguments, product: _tilewright.GemmArguments, outputs: Outputs) -> None:
        assert isinstance(outputs.d, View)  # lists of arrays are for mode Array
        shape, kind = _tilewright.split_k_workspace(product, arguments.split_k_slices)
        self.count = shape[0]
        self._memory = allocate(shape, kind, outputs.d.memory.device)
        super().__init__(arguments, parts_view(self._memory, kind, shape, arguments.operation.C.layout))
        flat = View(self._memory, kind, (product_of(shape),), (1,))
        self.gemms, _ = _tilewright.split_k(product, arguments.split_k_slices, flat)
        self.reduction = reduction_arguments(self.parts, outputs)


def parts_view(memory: Memory, kind: DType, shape: tuple[int, int, int], layout: LayoutType) -> View:
    """Partial sums of the shape (count, m, n), packed one part after the other, each with this layout."""
    _, m, n = shape
    return View(memory, kind, shape, (m * n, *layout.strides(m, n)))


def reduction_arguments(parts: View, outputs: Outputs) -> _tilewright.ReduceSplitKArguments:
    """tilewright.ReduceSplitKArguments, whose errors name the output D, as callers of PyCUTLASS do."""
    try:
        return _tilewright.ReduceSplitKArguments(parts, outputs.d, None, outputs.epilogue, **outputs.options)
    except InvalidArgument as error:
        raise InvalidArgument(re.sub(r"\bout\b", "D", str(error))) from None


def allocate(shape: tuple[int, ...], kind: DType, device: int | None) -> Memory:
    """Memory for a packed array, on a GPU or, if `device` is None, in host memory."""
    elements = product_of(shape)
    if device is None:
        owner: Any = numpy.empty(max(1, elements) * item_bytes(kind), numpy.uint8)
        address = owner.ctypes.data
    else:
        owner = _tilewright._DeviceArray((max(1, elements),), kind, device)
        _tilewright.synchronize(f"cuda:{device}", None)  # so that any stream may use it
        address = owner.data_ptr
    return Memory(owner, address, elements, kind, device, (elements,), (1,))


class GemmArguments(OutputArguments):
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
    split_k_slices  the number of parts of K in mode GemmSplitKParallel; in mode Gemm the number of CTAs
                    that share the K of each tile in one launch, as split_k of a design (also split_k_splices)
    batch           the number of matrices, for modes Batched and Array
    bias            whether C is a vector, one for each matrix of a batch

    Raises InvalidArgument, with the numbers, for arrays that are too small, of another type, or not in the layout, and
    for split_k_slices of mode Gemm that the operation's design cannot have.
    """

    operation: GemmOperationUniversal

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
        check_type("operation", operation, GemmOperationUniversal)
        if not isinstance(problem_size, GemmCoord):
            raise InvalidArgument(f"problem_size must be a cutlass.gemm.GemmCoord, got {problem_size!r:.80}")
        if not isinstance(gemm_mode, Mode) or gemm_mode is Mode.Invalid:
            raise InvalidArgument(f"gemm_mode must be Gemm, GemmSplitKParallel, Batched or Array, got {gemm_mode!r}")
        super().__init__(operation, problem_size, output_op, bias)
        self.A, self.B = A, B
        self.gemm_mode = gemm_mode
        if None not in (split_k_slices, split_k_splices) and split_k_slices != split_k_splices:
            raise InvalidArgument(
                f"split_k_slices and split_k_splices are two names of one number, got {split_k_slices} and "
                f"{split_k_splices}"
            )
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
        self._prepared: list[PreparedCall] | None = None
        self._workspace: SplitKWorkspace | None = None  # in mode GemmSplitKParallel
        self._is_d_left = False  # whether D is left to a ReductionOperation
        if lists and (self._has_interleaved() or (isinstance(C, (list, tuple)) and self._are_bias_vectors(C))):
            self._problems = [self._bind(*each, batch=None) for each in self._elements_of_array(A, B, C, D)]
        else:
            self._problems = [self._bind(A, B, C, D, self.batch_count if is_batch else None)]
        gemms = self._problems if self._workspace is None else self._workspace.gemms
        self._kernels = [self._kernel_for(gemm) for gemm in gemms]

    @property
    def ptr_D(self) -> SplitKWorkspace:
        """The partial sums that a ReductionOperation reads, in mode GemmSplitKParallel.

        Once this has been read, runs of the operation no longer write D. Raises InvalidArgument in other modes, and
        Unsupported for interleaved layouts, of which there are no partial sums.
        """
        if self.gemm_mode is not Mode.GemmSplitKParallel:
            raise InvalidArgument(f"ptr_D needs mode GemmSplitKParallel, got {self.gemm_mode.name}")
        if self._workspace is None:
            raise Unsupported(
                "ptr_D needs RowMajor or ColumnMajor operands: GEMMs of interleaved layouts write D in one launch"
            )
        self._is_d_left = True
        self._prepared = None
        return self._workspace

    @property
    def serial_split_k(self) -> int:
        """split_k of the kernel's design: the number of CTAs that share the K of each tile, in one launch."""
        return self.split_k_slices if self.gemm_mode is Mode.Gemm else 1

    def reorder_tensor_B(self, tensor_B: Any, problem_size: GemmCoord) -> Any:
        """Returns `tensor_B`.

        CUTLASS's kernels with an interleaved C and D need the columns of B in another order, and PyCUTLASS's arguments
        copy it. These kernels read B as it is, so that nothing is copied.
        """
        return tensor_B

    @property
    def bound(self) -> _tilewright.GemmArguments:
        """The GEMM, or the first one if each matrix is a launch of its own."""
        return self._problems[0]

    @property
    def device(self) -> int | None:
        """The ordinal of the GPU that D is on; None: host memory."""
        return self._memories[-1].device

    def current_stream(self) -> int:
        """The current stream of D's framework."""
        return current_stream(self._memories[-1])

    def bring_up_to_date(self) -> None:
        """Prepares arrays for a launch."""
        self._refresh()
        if not self._is_d_left:
            self._clear()

    def launch(self, stream: Any = None) -> None:
        """Implements GemmOperationUniversal.run()."""
        if self._prepared is None:
            self._prepared = self._prepare()
        self.bring_up_to_date()
        self._stream = self.current_stream() if stream is None else stream
        for prepared in self._prepared:
            prepared.run(stream=self._stream)
        if self._workspace is not None:
            self._workspace.is_ready = True

    def _prepare(self) -> list[PreparedCall]:
        workspace = self._workspace
        gemms = self._problems if workspace is None else workspace.gemms
        pairs = zip(gemms, self._kernels, strict=True)
        prepared = [_tilewright.prepare(gemm, kernel) for gemm, kernel in pairs]
        if workspace is not None and not self._is_d_left:
            prepared.append(_tilewright.prepare(workspace.reduction))
        return prepared

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

    def _has_interleaved(self) -> bool:
        """Whether an operand is interleaved. Lists of such arrays are not pointer arrays, so that each matrix is a launch
        of its own."""
        return any(each.layout.is_interleaved for each in (self.operation.A, self.operation.B, self.operation.C))

    def _are_bias_vectors(self, C: Any) -> bool:
        """Whether C is a list of vectors that an epilogue would add. The tensors of epilogues have no pointer arrays, so
        that each matrix is then a launch of its own."""
        output_op = self.output_op
        is_read = isinstance(output_op, OutputOp) and output_op.beta != 0
        if not C or self.operation.visitor or not is_read:
            return False
        return self.bias or self._is_vector(memory_of(C[0], "C"))

    def _bind(self, A: Any, B: Any, C: Any, D: Any, batch: int | None) -> _tilewright.GemmArguments:
        operation, size = self.operation, self.problem_size
        a = self._operand(A, "A", operation.A, size.m(), size.k(), batch)
        b = self._operand(B, "B", operation.B, size.k(), size.n(), batch)
        outputs = self._bind_outputs(C, D, batch)
        accumulator = operation.accumulator_type().kind
        interleaved = self._interleaved(has_source=outputs.options.get("C") is not None)
        if self.gemm_mode is Mode.GemmSplitKParallel and not interleaved:
            product = _gemm_arguments(a, b, outputs.d, accumulator, operation.plain_epilogue, math=operation.math)
            self._workspace = SplitKWorkspace(self, product, outputs)
        return _gemm_arguments(
            a,
            b,
            outputs.d,
            accumulator,
            outputs.epilogue,
            math=operation.math,
            interleaved=interleaved,
            **outputs.options,
        )

    def _interleaved(self, has_source: bool) -> str:
        """The letters of the interleaved operands; C has the layout of D."""
        operation = self.operation
        described = {"A": operation.A, "B": operation.B, "C": operation.C, "D": operation.C}
        given = "ABCD" if has_source else "ABD"
        return "".join(letter for letter in given if described[letter].layout.is_interleaved)

    def _kernel_for(self, problem: _tilewright.GemmArguments) -> Kernel:
        """As _own_kernel(); errors say that K was to be split in mode Gemm."""
        try:
            return self._own_kernel(problem)
        except InvalidArgument as error:
            if self.serial_split_k == 1:
                raise
            raise InvalidArgument(f"with split_k_slices = {self.serial_split_k}: {error}") from None

    def _own_kernel(self, problem: _tilewright.GemmArguments) -> Kernel:
        """The operation's own kernel. For matrices of one row or column, whose layout is ambiguous, and for partial
        sums, whose type may need another design, the most similar one. Raises InvalidArgument."""
        if self._workspace is not None:
            try:
                return self.operation.kernel_for(problem)
            except InvalidArgument:
                return self.operation.closest_kernel(problem)
        if problem.tensors or self.operation.visitor:
            return self.operation.kernel_for(problem, self.serial_split_k)
        operands = {"A": problem.A, "B": problem.B, "C": problem.C, "D": problem.out}
        if problem.beta == 0:
            operands["C"] = problem.out  # a C that is not read counts as D
        pointer_arrays = "".join(role for role, operand in operands.items() if operand.is_pointer_array)
        kernel = self.operation.kernel_of(problem.epilogue, pointer_arrays, self.serial_split_k)
        status = kernel.supports(problem)
        if not status and min(problem.m, problem.n, problem.k) <= 1:
            return self.operation.closest_kernel(problem, self.serial_split_k)
        status.raise_on_error()
        return kernel


def _gemm_arguments(*operands: Any, **options: Any) -> _tilewright.GemmArguments:
    """tilewright.GemmArguments, whose errors name the output D, as callers of PyCUTLASS do, instead of `out`."""
    try:
        return _tilewright.GemmArguments(*operands, **options)
    except InvalidArgument as error:
        raise InvalidArgument(re.sub(r"\bout\b", "D", str(error))) from None


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
