"""ReductionOperation, the second kernel of parallel split-K in PyCUTLASS. Here it computes the whole GEMM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.errors import InvalidArgument

from . import cutlass
from .arguments import GemmArguments, SplitKWorkspace
from .cutlass.element import DataType
from .epilogue import EpilogueFunctorBase, LinearCombination, OutputOp
from .operation import GemmOperationUniversal
from .tensor import TensorDescription


class ReductionOperation:
    """Reduces the partial sums of split-K and applies the epilogue.

    Tilewright's kernels reduce their own partial sums. Therefore run() computes the GEMM and the epilogue in one
    launch, and run() of the GEMM in mode GemmSplitKParallel only marks its operands as ready.

    shape, element_workspace, count and partitions_per_stage have no effect.
    """

    def __init__(
        self,
        shape: cutlass.MatrixCoord,
        C: TensorDescription,
        element_accumulator: DataType,
        element_workspace: DataType | None = None,
        element_compute: DataType | None = None,
        epilogue_functor: EpilogueFunctorBase | None = None,
        count: int = 1,
        partitions_per_stage: int = 4,
    ) -> None:
        self.shape = shape
        self.C = C
        self.element_accumulator = element_accumulator
        self.element_workspace = element_workspace
        self.element_compute = element_compute
        self.epilogue_functor = epilogue_functor or LinearCombination(
            C.element, C.alignment, element_accumulator, element_compute or element_accumulator
        )
        self.count = count
        self.partitions_per_stage = partitions_per_stage

    @property
    def epilogue_type(self) -> Any:
        """Makes the arguments of the epilogue."""
        return self.epilogue_functor.epilogue_type

    def procedural_name(self) -> str:
        return f"reduce_split_k_{self.shape.row()}x{self.shape.column()}_{self.C.element.value}"

    def run(self, arguments: ReductionArguments, stream: Any = None) -> int:
        """Computes the destination on `stream`, by default the current one. Returns 0, which is CUDA_SUCCESS.

        Raises InvalidArgument if the GEMM was not run before.
        """
        if arguments.operation is not self:
            raise InvalidArgument("these are the arguments of another operation")
        if not arguments.workspace.is_ready:
            raise InvalidArgument("the GEMM of this workspace was not run yet: call its operation.run(arguments) first")
        return arguments.gemm.operation.run(arguments.gemm, stream)


class ReductionArguments:
    """The arguments of a ReductionOperation.

    problem_size   [m, n]
    partitions     split_k_slices of the GEMM's arguments
    workspace      ptr_D of the GEMM's arguments
    destination    D, as in GemmArguments
    source         C, as in GemmArguments

    Raises InvalidArgument with the numbers.
    """

    def __init__(
        self,
        operation: ReductionOperation,
        problem_size: Sequence[int],
        partitions: int,
        workspace: SplitKWorkspace,
        destination: Any,
        source: Any,
        *,
        output_op: OutputOp | None = None,
        bias: bool = False,
    ) -> None:
        if not isinstance(workspace, SplitKWorkspace):
            raise InvalidArgument(
                f"workspace must be ptr_D of GemmArguments of mode GemmSplitKParallel, got {type(workspace).__name__}"
            )
        product = workspace.arguments
        extents = [product.problem_size.m(), product.problem_size.n()]
        if [*problem_size][:2] != extents:
            raise InvalidArgument(f"problem_size is {[*problem_size]}, but that of the GEMM is {extents}")
        if partitions != product.split_k_slices:
            raise InvalidArgument(
                f"partitions is {partitions}, but split_k_slices of the GEMM is {product.split_k_slices}"
            )
        self.operation = operation
        self.workspace = workspace
        gemm = product.operation
        finished = GemmOperationUniversal(
            gemm.arch,
            gemm.tile_description,
            gemm.A,
            gemm.B,
            operation.C,
            operation.epilogue_functor,
            gemm.swizzling_functor,
        )
        self.gemm = GemmArguments(
            finished,
            product.problem_size,
            product.A,
            product.B,
            source,
            destination,
            output_op=output_op,
            bias=bias,
        )

    def sync(self) -> None:
        """Waits for the last run, after which the destination has its results."""
        self.gemm.sync()

    def free(self) -> None:
        """Has no effect: memory is released when nothing refers to it."""
