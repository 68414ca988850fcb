"""GemmOperationGrouped and its arguments: a list of GEMMs of different sizes with one design and one epilogue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.errors import InvalidArgument, Unsupported

from . import cutlass
from .arguments import GemmArguments
from .cutlass.gemm import GemmCoord
from .cutlass.swizzle import Swizzle
from .epilogue import EpilogueFunctorBase, OutputOp
from .kinds import SchedulerMode
from .operation import GemmOperationUniversal
from .tensor import TensorDescription
from .tile import TileDescription
from .visitor import EpilogueVisitTree


class GemmOperationGrouped(GemmOperationUniversal):
    """D[i] = epilogue(A[i] * B[i], C[i]) for a list of problems, computed by a kernel of the given tile.

    precompute_mode  SchedulerMode.Device or SchedulerMode.Host; required, as in PyCUTLASS, and without effect: nothing
                     is precomputed

    The other parameters are those of GemmOperationUniversal. Raises InvalidArgument, with the numbers, for a design
    that no kernel has, and Unsupported for an EpilogueVisitTree, as PyCUTLASS has none here.
    """

    def __init__(
        self,
        arch: int,
        tile_description: TileDescription,
        A: TensorDescription,
        B: TensorDescription,
        C: TensorDescription,
        epilogue_functor: EpilogueFunctorBase,
        swizzling_functor: type[Swizzle] | Swizzle = cutlass.IdentitySwizzle1,
        *,
        precompute_mode: SchedulerMode | None = None,
    ) -> None:
        if not isinstance(precompute_mode, SchedulerMode):
            raise InvalidArgument(
                f"precompute_mode must be SchedulerMode.Device or SchedulerMode.Host, got {precompute_mode!r}"
            )
        if isinstance(epilogue_functor, EpilogueVisitTree):
            raise Unsupported("GemmOperationGrouped takes no EpilogueVisitTree: use tilewright.grouped_matmul")
        super().__init__(arch, tile_description, A, B, C, epilogue_functor, swizzling_functor)
        self.precompute_mode = precompute_mode


class GemmGroupedArguments:
    """The arguments of a GemmOperationGrouped: the extents and the arrays of each problem.

    problem_sizes  a GemmCoord for each problem
    A, B, C, D     lists of arrays, one for each problem, as in GemmArguments; C may be None if beta is 0
    output_op      operation.epilogue_type(alpha, beta), for all problems; the default is alpha = 1 and beta = 0

    Raises InvalidArgument, with the number of the problem, for lists of different lengths and for what GemmArguments
    refuses.
    """

    def __init__(
        self,
        operation: GemmOperationGrouped,
        problem_sizes: Sequence[GemmCoord],
        A: Sequence[Any],
        B: Sequence[Any],
        C: Sequence[Any] | None,
        D: Sequence[Any],
        *,
        output_op: OutputOp | None = None,
    ) -> None:
        if not isinstance(operation, GemmOperationGrouped):
            raise InvalidArgument(f"operation must be a GemmOperationGrouped, got {type(operation).__name__}")
        self.operation = operation
        self.problem_sizes = [*problem_sizes]
        self.problem_count = len(self.problem_sizes)
        self.output_op = output_op
        sources = [None] * self.problem_count if C is None else C
        for role, operands in (("A", A), ("B", B), ("C", sources), ("D", D)):
            if not isinstance(operands, (list, tuple)):
                raise InvalidArgument(f"{role} must be a list of arrays, got {type(operands).__name__}")
            if len(operands) != self.problem_count:
                raise InvalidArgument(
                    f"{role} is a list of {len(operands)} arrays, but there are {self.problem_count} problem sizes"
                )
        self._problems = [
            self._problem(index, size, *operands)
            for index, (size, *operands) in enumerate(zip(self.problem_sizes, A, B, sources, D, strict=True))
        ]

    def launch(self, stream: Any = None) -> None:
        """Implements GemmOperationGrouped.run()."""
        for problem in self._problems:
            problem.launch(stream)

    def sync(self, stream_sync: bool = True) -> None:
        """Waits for the last run. The matrices of D are undefined before it returns."""
        for problem in self._problems:
            problem.sync(stream_sync)

    def _problem(self, index: int, size: Any, a: Any, b: Any, c: Any, d: Any) -> GemmArguments:
        try:
            return GemmArguments(self.operation, size, a, b, c, d, output_op=self.output_op)
        except InvalidArgument as error:
            raise InvalidArgument(f"problem {index}: {error}") from None


GroupedGemmArguments = GemmGroupedArguments
