"""GemmOperationGrouped and its arguments: a list of GEMMs of different sizes with one design and one epilogue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import _tilewright
from tilewright._tilewright import Epilogue, Kernel, Operand, PreparedCall
from tilewright.errors import InvalidArgument, Unsupported

from . import cutlass
from .arguments import GemmArguments
from .array import Memory, View
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
        precompute_mode: SchedulerMode | None = None,
    ) -> None:
        if not isinstance(precompute_mode, SchedulerMode):
            raise InvalidArgument(
                f"precompute_mode must be SchedulerMode.Device or SchedulerMode.Host, got {precompute_mode!r}"
            )
        if isinstance(epilogue_functor, EpilogueVisitTree):
            raise Unsupported("GemmOperationGrouped takes no EpilogueVisitTree: use tilewright.grouped_matmul")
        self.precompute_mode = precompute_mode
        self._kernels_of_groups: dict[tuple[str, str], Kernel | None] = {}
        super().__init__(arch, tile_description, A, B, C, epilogue_functor, swizzling_functor)

    @property
    def kernel(self) -> Kernel:
        """The kernel for the current device, which computes all problems in one launch if there is such a kernel."""
        functor = self.epilogue_functor
        assert isinstance(functor, EpilogueFunctorBase)
        return self.kernel_of_groups(functor.graph(functor.epilogue_type(1.0, 0.0))) or super().kernel

    def kind_name(self) -> str:
        return "gemm_grouped"

    def kernel_of_groups(self, epilogue: Epilogue) -> Kernel | None:
        """The kernel of this design that computes all problems in one launch; None if there is none, as for operands of
        sm_90's kernels that are aligned to less than 16 bytes."""
        key = (_tilewright.device_target(), epilogue.signature)
        if key not in self._kernels_of_groups:
            try:
                self._kernels_of_groups[key] = self._make_kernel(epilogue, "ABCD", 1, "independent")
            except InvalidArgument:
                self._kernels_of_groups[key] = None
        return self._kernels_of_groups[key]


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
        self._stream: Any = None
        self._call = self._in_one_launch()

    @property
    def launch_count(self) -> int:
        """The number of launches of a run: 1, or that of the problems if no kernel of the design has groups."""
        return 1 if self._call is not None else self.problem_count

    def launch(self, stream: Any = None) -> None:
        """Implements GemmOperationGrouped.run()."""
        if self._call is None:
            for problem in self._problems:
                problem.launch(stream)
            return
        for problem in self._problems:
            problem.bring_up_to_date()
        self._stream = self._problems[0].current_stream() if stream is None else stream
        self._call.run(stream=self._stream)

    def sync(self, stream_sync: bool = True) -> None:
        """Waits for the last run. The matrices of D are undefined before it returns."""
        if self._call is None:
            for problem in self._problems:
                problem.sync(stream_sync)
        elif stream_sync and self._problems[0].device is not None:
            _tilewright.synchronize(f"cuda:{self._problems[0].device}", self._stream)

    def _in_one_launch(self) -> PreparedCall | None:
        """The call that computes all problems. None if the list is empty, if C has bias vectors, or if no kernel of the
        design has groups."""
        bound = [problem.bound for problem in self._problems]
        ordinary = [each for each in bound if not each.tensors]
        if not ordinary or any(each.tensors and each.m * each.n > 0 for each in bound):
            return None
        first = ordinary[0]
        kernel = self.operation.kernel_of_groups(first.epilogue)
        if kernel is None:
            return None
        device = self._problems[0].device

        def views(operands: list[Operand]) -> list[View]:
            return [_view(each, device) for each in operands]

        arguments = _tilewright.GroupedGemmArguments(
            views([each.A for each in bound]),
            views([each.B for each in bound]),
            views([each.out for each in bound]),
            self.operation.accumulator_type().kind,
            first.epilogue,
            C=views([each.out if each.tensors else each.C for each in bound]) if first.beta != 0 else None,
            alpha=first.alpha,
            beta=first.beta,
            math=self.operation.math,
        )
        return _tilewright.prepare(arguments, kernel) if kernel.supports(arguments) else None

    def _problem(self, index: int, size: Any, a: Any, b: Any, c: Any, d: Any) -> GemmArguments:
        try:
            return GemmArguments(self.operation, size, a, b, c, d, output_op=self.output_op)
        except InvalidArgument as error:
            raise InvalidArgument(f"problem {index}: {error}") from None


def _view(operand: Operand, device: int | None) -> View:
    """The matrix of a problem, whose arguments keep the memory alive."""
    memory = Memory(None, operand.data_ptr, None, operand.dtype, device, (), ())
    return View(memory, operand.dtype, operand.shape, operand.stride)


GroupedGemmArguments = GemmGroupedArguments
