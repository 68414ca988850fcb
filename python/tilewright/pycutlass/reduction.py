"""ReductionOperation, the second kernel of split-K in parallel mode: it sums partial sums and applies the epilogue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import _tilewright
from tilewright._tilewright import PreparedCall
from tilewright.errors import InvalidArgument, Unsupported

from . import cutlass
from .argument_types import check_type
from .arguments import PartialSums, parts_view, reduction_arguments
from .array import View, current_stream, memory_of, product_of
from .cutlass.element import DataType
from .cutlass.gemm import GemmCoord
from .epilogue import EpilogueFunctorBase, LinearCombination, OutputOp
from .extents import count, two
from .output_arguments import OutputArguments
from .tensor import TensorDescription
from .visitor import EpilogueVisitTree, VisitorOutputOp


class ReductionOperation:
    """D = epilogue(sum of the parts of a workspace, C). The parts are added in ascending order.

    C                    describes the source and the destination: RowMajor, ColumnMajor, or TensorNHWC, which is a
                         row-major matrix with a row for each pixel
    element_accumulator  the type of the sums: it must be the one that the workspace's type has, which is float64 for
                         float64, int32 for int32, float32 (or float16, as a synonym) for the others
    element_workspace    the type of the workspace; by default that of the GEMM's accumulators
    element_compute      the type in which the default epilogue computes
    epilogue_functor     by default a LinearCombination; may be an EpilogueVisitTree

    shape, count and partitions_per_stage have no effect: the kernel chooses its tile.
    """

    def __init__(
        self,
        shape: cutlass.MatrixCoord,
        C: TensorDescription,
        element_accumulator: DataType,
        element_workspace: DataType | None = None,
        element_compute: DataType | None = None,
        epilogue_functor: EpilogueFunctorBase | EpilogueVisitTree | None = None,
        count: int = 1,
        partitions_per_stage: int = 4,
    ) -> None:
        self.shape = shape
        self.C = C
        self.element_accumulator = element_accumulator
        self.element_workspace = element_workspace
        self.element_compute = element_compute
        self.epilogue_functor: EpilogueFunctorBase | EpilogueVisitTree = epilogue_functor or LinearCombination(
            C.element, C.alignment, element_accumulator, element_compute or element_accumulator
        )
        if C.layout.is_interleaved or C.layout.has_blocks:
            raise Unsupported(f"C is {C.layout.name}: a ReductionOperation needs RowMajor, ColumnMajor or TensorNHWC")
        self.count = count
        self.partitions_per_stage = partitions_per_stage
        if self.epilogue_functor.element_output is not C.element:
            raise InvalidArgument(
                f"the epilogue's output is {self.epilogue_functor.element_output.name}, but C and D are {C.element.name}"
            )

    @property
    def epilogue_type(self) -> Any:
        """Makes the arguments of the epilogue."""
        return self.epilogue_functor.epilogue_type

    def procedural_name(self) -> str:
        """A name made of the shape of a block and the type of D. It is not unique."""
        return f"reduce_split_k_{self.shape.row()}x{self.shape.column()}_{self.C.element.value}"

    def run(self, arguments: ReductionArguments, stream: Any = None) -> int:
        """Enqueues the reduction on `stream`, by default the current one. Returns 0, which is CUDA_SUCCESS.

        Compiles the kernel if necessary. Raises InvalidArgument if the GEMM was not run before.
        """
        if arguments.operation is not self:
            raise InvalidArgument("these are the arguments of another operation")
        arguments.launch(stream)
        return 0


class ReductionArguments(OutputArguments):
    """The arguments of a ReductionOperation.

    problem_size   [m, n]
    partitions     the number of parts; split_k_slices of the GEMM's arguments
    workspace      ptr_D of the GEMM's arguments; or an array or CUdeviceptr with `partitions` packed matrices of
                   element_workspace (by default, element_accumulator), in the layout of the operation's C
    destination    D, as in GemmArguments
    source         C, as in GemmArguments

    The same workspace may be reduced several times, with different operations. Raises InvalidArgument with the numbers.
    """

    def __init__(
        self,
        operation: ReductionOperation,
        problem_size: Sequence[int],
        partitions: int,
        workspace: PartialSums | Any,
        destination: Any,
        source: Any,
        *,
        output_op: OutputOp | VisitorOutputOp | None = None,
        bias: bool = False,
    ) -> None:
        check_type("operation", operation, ReductionOperation)
        super().__init__(operation, GemmCoord(*two(problem_size, "problem_size"), 1), output_op, bias)
        self.workspace = workspace
        self.partitions = count(partitions, "partitions")
        parts = self._parts_of_gemm(workspace) if isinstance(workspace, PartialSums) else self._parts_of_array()
        self._problem = reduction_arguments(parts, self._bind_outputs(source, destination, None))
        self._prepared: PreparedCall | None = None

    def launch(self, stream: Any = None) -> None:
        """Implements ReductionOperation.run()."""
        if isinstance(self.workspace, PartialSums) and not self.workspace.is_ready:
            raise InvalidArgument("the operation of this workspace was not run yet: call its operation.run(arguments) first")
        if self._prepared is None:
            self._prepared = _tilewright.prepare(self._problem)
        self._refresh(stream)
        self._clear()
        self._stream = current_stream(self._memories[-1]) if stream is None else stream
        self._prepared.run(stream=self._stream)

    def free(self) -> None:
        """Has no effect: memory is released when nothing refers to it."""

    def _channels(self) -> int | None:
        workspace = self.workspace
        return workspace.arguments._channels() if isinstance(workspace, PartialSums) else None

    def _parts_of_gemm(self, workspace: PartialSums) -> View:
        gemm = workspace.arguments
        extents = [gemm.gemm_size.m(), gemm.gemm_size.n()]
        given = [self.gemm_size.m(), self.gemm_size.n()]
        if given != extents:
            raise InvalidArgument(f"problem_size is {given}, but that of the GEMM is {extents}")
        if self.partitions != gemm.split_k_slices:
            raise InvalidArgument(
                f"partitions is {self.partitions}, but split_k_slices of the GEMM is {gemm.split_k_slices}"
            )
        element = self.operation.element_workspace
        if element is not None and element.kind != workspace.parts.dtype:
            raise InvalidArgument(
                f"element_workspace is {element.name}, but the partial sums of the GEMM are {workspace.parts.dtype.name}"
            )
        return workspace.parts

    def _parts_of_array(self) -> View:
        if isinstance(self.workspace, (int, float, str)) or self.workspace is None:
            raise InvalidArgument(
                "workspace must be ptr_D of GemmArguments of mode GemmSplitKParallel, an array or a CUdeviceptr, "
                f"got {type(self.workspace).__name__}"
            )
        element = self.operation.element_workspace or self.operation.element_accumulator
        shape = (self.partitions, self.gemm_size.m(), self.gemm_size.n())
        memory = memory_of(self.workspace, "workspace")
        self._check(memory, "workspace", TensorDescription(element, self.operation.C.layout, 1), product_of(shape))
        self._check_order(memory, "workspace")
        return parts_view(memory, element.kind, shape, self.operation.C.layout)
