"""The names of PyCUTLASS's package `pycutlass.test`: operations are run on random operands and compared with NumPy.

    from pycutlass.test import *
    assert test_all_gemm(operation)

The problems are smaller than those of PyCUTLASS: an extent below a tile of the operation, and one of a tile and a rest.
Operands are integers whose sums are exact, so that results must be equal.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy

from tilewright._tilewright import synchronize
from tilewright.errors import InvalidArgument

from . import cutlass
from .arguments import GemmArguments
from .convolution import Conv2dArguments, Conv2dOperation
from .cutlass.conv import (
    Conv2dProblemSize,
    IteratorAlgorithm,
    Operator,
    SplitKMode,
    implicit_gemm_problem_size,
    implicit_gemm_tensor_a_extent,
    implicit_gemm_tensor_b_extent,
    implicit_gemm_tensor_c_extent,
)
from .cutlass.element import DataType
from .cutlass.gemm import GemmCoord, Mode
from .cutlass.layout import LayoutType
from .grouped import GemmGroupedArguments, GemmOperationGrouped
from .kinds import StrideSupport
from .library import DataTypeNames, OpcodeClassNames, ShortLayoutTypeNames
from .operation import GemmOperationUniversal
from .reduction import ReductionArguments, ReductionOperation
from .reference_model import Conv2dReferenceModule, ReferenceModule
from .tensor import CHANNELS_OF_BLOCK, TensorDescription

SEED = 2080
INTERLEAVED = 32


class GpuTimer:
    """Measures the time between start() and stop(), with the clock of the host, after the work before each is done."""

    def __init__(self) -> None:
        self._begin = self._end = 0.0

    def start(self, stream: Any = None) -> None:
        synchronize(stream=stream)
        self._begin = time.perf_counter()

    def stop(self, stream: Any = None) -> None:
        synchronize(stream=stream)
        self._end = time.perf_counter()

    def stop_and_wait(self, stream: Any = None) -> None:
        self.stop(stream)

    def duration(self, iterations: int = 1) -> float:
        """Milliseconds of one of `iterations`."""
        return 1000 * (self._end - self._begin) / iterations


class Layout:
    """The letters of names of GEMMs."""

    T = cutlass.RowMajor
    N = cutlass.ColumnMajor


class LayoutCombination:
    """LayoutCombination.TNT has the layouts of A, B and C: row-major, column-major, row-major."""

    NNN = (Layout.N, Layout.N, Layout.N)
    NNT = (Layout.N, Layout.N, Layout.T)
    NTN = (Layout.N, Layout.T, Layout.N)
    NTT = (Layout.N, Layout.T, Layout.T)
    TNN = (Layout.T, Layout.N, Layout.N)
    TNT = (Layout.T, Layout.N, Layout.T)
    TTN = (Layout.T, Layout.T, Layout.N)
    TTT = (Layout.T, Layout.T, Layout.T)


def get_name(
    layouts: Sequence[LayoutType],
    alignments: Sequence[int],
    element_output: DataType,
    element_accumulator: DataType,
    element_epilogue: DataType,
    cluster_shape: Sequence[int],
    threadblock_shape: Sequence[int],
    stages: int | None,
    element_a: DataType,
    element_b: DataType,
    arch: int,
    opclass: cutlass.OpClass,
    suffix: str | None = "",
) -> str:
    """The name of a test of a GEMM, which says what the operation is made of."""
    elements = zip((element_a, element_b, element_output), layouts, strict=True)
    operands = "_".join(DataTypeNames[element] + ShortLayoutTypeNames[layout] for element, layout in elements)
    tile, cluster = ("x".join(map(str, extents)) for extents in (threadblock_shape, cluster_shape))
    of_stages = "auto" if stages is None else stages
    aligned = "-".join(map(str, alignments))
    return (
        f"test_SM{arch}_Device_Gemm_{operands}_{OpcodeClassNames[opclass]}_{DataTypeNames[element_accumulator]}_{tile}_"
        f"{cluster}_{of_stages}_align{aligned}{suffix or ''}"
    )


class _Launcher:
    """What launchers have in common: random operands, and a run that is verified or timed."""

    def __init__(
        self,
        operation: GemmOperationUniversal | Conv2dOperation,
        seed: int = SEED,
        interleaved: bool = False,
        verification: bool = True,
        profiling: bool = False,
        warmup_iterations: int = 500,
        iterations: int = 500,
        **kwargs: Any,
    ) -> None:
        self.operation: Any = operation
        self.seed = seed
        self.interleaved = interleaved
        self.verification = verification
        self.profiling = profiling
        self.warmup_iterations = warmup_iterations
        self.iterations = iterations
        self.sleep_time = kwargs.get("sleep", 0)
        self.timer = GpuTimer()
        self.dtype_A = self.numpy_type(operation.A.element)
        self.dtype_B = self.numpy_type(operation.B.element)
        self.dtype_C = self.dtype_D = self.numpy_type(operation.C.element)

    @staticmethod
    def numpy_type(type: DataType) -> Any:
        """The type of NumPy, or of ml_dtypes."""
        return numpy_type(type)

    def uniform_init(self, size: Any, dtype: Any) -> Any:
        """Small integers of the type, each as likely as the others."""
        return _integers(numpy.random.default_rng(self.seed + numpy.prod(size)), size, dtype)

    def _reduction(self) -> ReductionOperation:
        """The reduction of the operation's partial sums."""
        operation = self.operation
        functor = operation.epilogue_functor
        return ReductionOperation(
            cutlass.MatrixCoord(4, 32 * operation.C.alignment),
            operation.C,
            operation.accumulator_type(),
            element_compute=functor.element_epilogue,
            epilogue_functor=functor,
            count=operation.C.alignment,
        )

    def _finish(self, runs: Sequence[tuple[Any, Any]], is_equal: Callable[[], bool], says: str) -> Any:
        """Runs each operation with its arguments. Returns whether the result is right or, with profiling, the
        milliseconds of a run."""

        def run() -> None:
            for operation, arguments in runs:
                operation.run(arguments)

        run()
        passed = True
        if self.verification:
            runs[-1][1].sync()
            passed = is_equal()
            if not passed:
                print(says)
        if not self.profiling:
            return passed
        time.sleep(self.sleep_time)
        for _ in range(self.warmup_iterations):
            run()
        self.timer.start()
        for _ in range(self.iterations):
            run()
        self.timer.stop_and_wait()
        return self.timer.duration(self.iterations)


class GemmUniversalLauncher(_Launcher):
    """Runs a GemmOperationUniversal on random operands.

    verification   compares D with NumPy
    profiling      run() returns the milliseconds of a run, after `warmup_iterations`, as the mean of `iterations`
    """

    operation: GemmOperationUniversal

    def bytes(self, problem_size: GemmCoord, batch_count: int = 1, alpha: float = 1.0, beta: float = 0.0) -> int:
        """The bytes of the operands and of D; with beta also of C."""
        return batch_count * _bytes(self.operation, problem_size, beta)

    def flops(self, problem_size: GemmCoord, batch_count: int = 1) -> int:
        """Two for each product of elements."""
        return 2 * batch_count * problem_size.m() * problem_size.n() * problem_size.k()

    def host_reference(
        self, problem_size: GemmCoord, batch_count: int, tensor_A: Any, tensor_B: Any, tensor_C: Any, alpha: float, beta: float
    ) -> Any:
        """D of flat arrays in the operation's layouts, as NumPy computes it; `batch_count` matrices follow each other."""
        operation, size = self.operation, problem_size
        found = []
        for index in range(batch_count):
            parts = (
                each.reshape(batch_count, -1)[index] if batch_count > 1 else each.reshape(-1)
                for each in (tensor_A, tensor_B, tensor_C)
            )
            matrices = zip(parts, _shapes(operation, size)[:3], strict=True)
            a, b, c = (_from_layout(flat, each.layout, rows, columns) for flat, (each, rows, columns) in matrices)
            d = _rounded(_product(size, (a, b, c), alpha, beta), self.dtype_D)
            found.append(_in_layout(d.reshape(size.m(), size.n()), operation.C.layout))
        return numpy.concatenate(found)

    def run(
        self, mode: Mode, problem_size: GemmCoord, batch_count: int = 1, alpha: float = 1.0, beta: float = 0.0
    ) -> Any:
        """Whether D is right, or the milliseconds. `batch_count` is the number of slices of split-K."""
        operation = self.operation
        a, b, c = _gemm_operands(operation, problem_size, self.seed)
        d = numpy.zeros_like(c)
        arguments = GemmArguments(
            operation,
            problem_size,
            a,
            b,
            c,
            d,
            mode,
            output_op=operation.epilogue_type(alpha, beta),
            split_k_slices=batch_count,
        )
        runs: list[tuple[Any, Any]] = [(operation, arguments)]
        if mode is Mode.GemmSplitKParallel:
            reduction = self._reduction()
            m, n = problem_size.m(), problem_size.n()
            output_op = reduction.epilogue_type(alpha, beta)
            runs.append(
                (
                    reduction,
                    ReductionArguments(reduction, [m, n], batch_count, arguments.ptr_D, d, c, output_op=output_op),
                )
            )
        return self._finish(
            runs,
            lambda: _equals_product(operation, problem_size, (a, b, c, d), alpha, beta),
            f"wrong: {problem_size.m()} x {problem_size.n()} x {problem_size.k()}, {mode.name}, {batch_count} slices, "
            f"alpha {alpha}, beta {beta}",
        )


class Conv2dLauncher(_Launcher):
    """Runs a Conv2dOperation on random tensors. The parameters are those of GemmUniversalLauncher."""

    operation: Conv2dOperation

    def bytes(self, problem_size: Conv2dProblemSize, alpha: float = 1.0, beta: float = 0.0) -> int:
        """The bytes of the matrices of the GEMM that computes the convolution; with beta also of C."""
        return _bytes(self.operation, implicit_gemm_problem_size(self.operation.conv_kind, problem_size), beta)

    def flops(self, problem_size: Conv2dProblemSize) -> int:
        """Two for each product of elements, and two for each element of D."""
        kind = self.operation.conv_kind
        gemm = implicit_gemm_problem_size(kind, problem_size)
        products = 2 * gemm.m() * gemm.n() * gemm.k()
        if kind is Operator.dgrad:
            products //= problem_size.stride_h * problem_size.stride_w
        return products + 2 * gemm.m() * gemm.n()

    def host_reference(
        self, problem_size: Conv2dProblemSize, tensor_A: Any, tensor_B: Any, tensor_C: Any, alpha: float, beta: float
    ) -> Any:
        """D of flat arrays of TensorNHWC, as NumPy computes it."""
        nhwc = TensorDescription(DataType.float64, cutlass.TensorNHWC, 1)
        reference = Conv2dReferenceModule(nhwc, nhwc, nhwc, self.operation.conv_kind)
        flat = [each.reshape(-1) for each in (tensor_A, tensor_B, tensor_C)]
        return _rounded(_run_wide(reference, flat, problem_size, alpha, beta), self.dtype_D).reshape(-1)

    def run(
        self,
        problem_size: Conv2dProblemSize,
        split_k_mode: SplitKMode = SplitKMode.Serial,
        alpha: float = 1.0,
        beta: float = 0.0,
    ) -> Any:
        """Whether D is right, or the milliseconds."""
        operation, size = self.operation, problem_size
        kind = operation.conv_kind
        extents = [
            extent(kind, size)
            for extent in (implicit_gemm_tensor_a_extent, implicit_gemm_tensor_b_extent, implicit_gemm_tensor_c_extent)
        ]
        shapes = [(each.n(), each.h(), each.w(), each.c()) for each in extents]
        random = numpy.random.default_rng(self.seed)
        types = self.dtype_A, self.dtype_B, self.dtype_C
        plain = [_integers(random, shape, dtype) for shape, dtype in zip(shapes, types, strict=True)]
        layouts = operation.A.layout, operation.B.layout, operation.C.layout
        a, b, c = (_blocked(each, layout).reshape(-1) for each, layout in zip(plain, layouts, strict=True))
        d = numpy.zeros_like(c)
        arguments = Conv2dArguments(
            operation,
            size,
            a,
            b,
            c,
            d,
            output_op=operation.epilogue_type(alpha, beta),
            split_k_mode=split_k_mode,
            split_k_slices=size.split_k_slices,
        )
        runs: list[tuple[Any, Any]] = [(operation, arguments)]
        if split_k_mode is SplitKMode.Parallel and size.split_k_slices > 1:
            reduction = self._reduction()
            gemm = implicit_gemm_problem_size(kind, size)
            reduced = ReductionArguments(
                reduction,
                [gemm.m(), gemm.n()],
                size.split_k_slices,
                arguments.ptr_D,
                d,
                c,
                output_op=reduction.epilogue_type(alpha, beta),
            )
            runs.append((reduction, reduced))

        def is_equal() -> bool:
            expected = self.host_reference(size, plain[0], plain[1], plain[2], alpha, beta).reshape(shapes[2])
            return bool((d.reshape(-1) == _blocked(expected, layouts[2]).reshape(-1)).all())

        return self._finish(
            runs,
            is_equal,
            f"wrong: {kind.name} of {shapes[0]} and {shapes[1]}, padding {size.pad_h} x {size.pad_w}, strides "
            f"{size.stride_h} x {size.stride_w}, {size.split_k_slices} slices, {split_k_mode.name}, alpha {alpha}, "
            f"beta {beta}",
        )


class TestbedGrouped:
    """Runs a GemmOperationGrouped on random problems."""

    __test__ = False  # is no class of tests

    def __init__(self, operation: GemmOperationGrouped, seed: int = SEED) -> None:
        self.operation = operation
        self.seed = seed

    def run(self, problem_count: int, alpha: float = 1.0, beta: float = 0.0) -> bool:
        """Whether all D are right. Extents are multiples of 8, or of 16 for int8."""
        operation: Any = self.operation
        random = numpy.random.default_rng(self.seed)
        step = 16 if operation.A.element is DataType.int8 else 8
        sizes = [GemmCoord(*(step * int(each) for each in random.integers(1, 12, 3))) for _ in range(problem_count)]
        problems = []
        for index, size in enumerate(sizes):
            a, b, c = _gemm_operands(operation, size, self.seed + index)
            problems.append((a, b, c, numpy.zeros_like(c)))
        of_a, of_b, of_c, of_d = ([problem[i] for problem in problems] for i in range(4))
        arguments = GemmGroupedArguments(
            operation, sizes, of_a, of_b, of_c, of_d, output_op=operation.epilogue_type(alpha, beta)
        )
        operation.run(arguments)
        arguments.sync()
        return all(
            _equals_product(operation, size, problem, alpha, beta)
            for size, problem in zip(sizes, problems, strict=True)
        )


def test_all_gemm(operation: GemmOperationUniversal, testcase: str = "universal") -> bool:
    """Whether the operation computes all of some problems.

    testcase   "universal": also with beta and split-K, where the operation has it; "multistage" and "interleaved":
               alpha is 1 and beta is 0
    """
    launcher = GemmUniversalLauncher(operation, interleaved=testcase == "interleaved")
    tile_m, tile_n, tile_k = operation.tile_description.threadblock_shape
    if testcase == "interleaved":
        step_m = step_n = step_k = INTERLEAVED
    elif testcase in ("universal", "multistage"):
        # Every extent may be the contiguous one of an operand, so that it is a multiple of all alignments.
        step_m = step_n = step_k = max(
            operation.A.alignment, operation.B.alignment, operation.C.alignment, 32 // operation.A.element.bits
        )
    else:
        raise InvalidArgument(f"testcase must be universal, multistage or interleaved, got {testcase!r}")
    is_universal = testcase == "universal"
    beta = 2.0 if is_universal else 0.0
    extents_m, extents_n = (step_m, tile_m + step_m), (step_n, tile_n + step_n)
    passed = True
    for m, n, k in itertools.product(extents_m, extents_n, (step_k, 2 * tile_k + step_k)):
        passed &= launcher.run(Mode.Gemm, GemmCoord(m, n, k), 1, 1.0, beta)
    has_split = operation.arch < 90 and operation.accumulator_type() is not DataType.float16
    if is_universal and has_split:
        size = GemmCoord(extents_m[1], extents_n[0], 8 * tile_k)
        passed &= launcher.run(Mode.Gemm, size, 2, 1.0, beta)
        passed &= launcher.run(Mode.GemmSplitKParallel, size, 3, 1.0, beta)
    return passed


def test_all_conv2d(
    operation: Conv2dOperation, conv_test_sizes: Iterable[Conv2dProblemSize] = (), interleaved: bool = False
) -> bool:
    """Whether the operation computes all of some problems, and those in `conv_test_sizes`. As in PyCUTLASS, problems whose
    channels or strides are not for the operation's iterators are left out, those in `conv_test_sizes` too."""
    launcher = Conv2dLauncher(operation, interleaved=interleaved)
    sizes = [each for each in _conv_sizes(operation, interleaved) if _takes(operation, each, interleaved)]
    passed = True
    for size in [*sizes, *(each for each in conv_test_sizes if _takes(operation, each, interleaved))]:
        passed &= launcher.run(size)
    few = (IteratorAlgorithm.fixed_channels, IteratorAlgorithm.few_channels)
    is_strided_dgrad = operation.conv_kind is Operator.dgrad and operation.stride_support is StrideSupport.Strided
    if interleaved or is_strided_dgrad or operation.iterator_algorithm in few or not sizes:
        return passed
    for mode, slices in itertools.product((SplitKMode.Parallel, SplitKMode.Serial), (1, 3)):
        passed &= launcher.run(sizes[-1].reset_split_k_slices(slices), mode, 2.0, 2.0)
    return passed


class _Extents(Protocol):
    def m(self) -> int: ...
    def n(self) -> int: ...
    def k(self) -> int: ...


def numpy_type(type: DataType) -> Any:
    """The type of NumPy, or of ml_dtypes, for an element type."""
    names = {
        DataType.float64: "float64",
        DataType.float32: "float32",
        DataType.tfloat32: "float32",
        DataType.float16: "float16",
        DataType.int8: "int8",
        DataType.int32: "int32",
        DataType.u8: "uint8",
    }
    if type is DataType.bfloat16:
        import ml_dtypes

        return numpy.dtype(ml_dtypes.bfloat16)
    if type not in names:
        raise InvalidArgument(f"there are no test operands of {type.name}")
    return numpy.dtype(names[type])


def _integers(random: numpy.random.Generator, shape: Any, dtype: Any) -> Any:
    least = 0 if dtype == numpy.uint8 else -2
    return random.integers(least, 3, shape).astype(dtype)


def _gemm_operands(operation: GemmOperationUniversal, size: _Extents, seed: int) -> list[Any]:
    """A, B and C as flat arrays in their layouts."""
    random = numpy.random.default_rng(seed)
    m, n, k = size.m(), size.n(), size.k()
    operands = ((operation.A, m, k), (operation.B, k, n), (operation.C, m, n))
    return [
        _in_layout(_integers(random, (rows, columns), numpy_type(each.element)), each.layout)
        for each, rows, columns in operands
    ]


def _in_layout(matrix: Any, layout: LayoutType) -> Any:
    """The elements of a matrix in the order of their offsets."""
    rows, columns = matrix.shape
    if layout is LayoutType.RowMajor:
        ordered = matrix
    elif layout is LayoutType.ColumnMajor:
        ordered = matrix.T
    elif layout is LayoutType.ColumnMajorInterleaved32:
        ordered = matrix.reshape(rows, columns // INTERLEAVED, INTERLEAVED).transpose(1, 0, 2)
    elif layout is LayoutType.RowMajorInterleaved32:
        ordered = matrix.reshape(rows // INTERLEAVED, INTERLEAVED, columns).transpose(0, 2, 1)
    else:
        raise InvalidArgument(f"{layout.name} is no layout of a matrix")
    return numpy.ascontiguousarray(ordered).reshape(-1)


def _from_layout(flat: Any, layout: LayoutType, rows: int, columns: int) -> Any:
    """The inverse of _in_layout()."""
    places = _in_layout(numpy.arange(rows * columns).reshape(rows, columns), layout)
    matrix = numpy.empty(rows * columns, flat.dtype)
    matrix[places] = flat
    return matrix.reshape(rows, columns)


def _blocked(tensor: Any, layout: LayoutType) -> Any:
    """A tensor of NHWC, or of KRSC, in its layout."""
    first, second, third, channels = tensor.shape
    blocks = (channels // CHANNELS_OF_BLOCK, CHANNELS_OF_BLOCK)
    if layout is LayoutType.TensorNHWC:
        return tensor
    order = (3, 1, 2, 0, 4) if layout is LayoutType.TensorC32RSK32 else (0, 3, 1, 2, 4)
    return numpy.ascontiguousarray(tensor.reshape(first, second, third, *blocks).transpose(order))


def _run_wide(reference: Any, operands: Sequence[Any], size: Any, alpha: float, beta: float) -> Any:
    """The reference before it is rounded to the type of C."""
    a, b, c = (each.astype(numpy.float64) for each in operands)
    return reference.run(a, b, c, size, alpha, beta)


def _rounded(expected: Any, dtype: Any) -> Any:
    """The expected result, rounded or saturated to a type."""
    if numpy.issubdtype(dtype, numpy.integer):
        limits = numpy.iinfo(dtype)
        expected = numpy.clip(expected, limits.min, limits.max)
    return expected.astype(dtype)


def _bytes(operation: Any, size: _Extents, beta: float) -> int:
    """The bytes of A, B and D, as PyCUTLASS counts them, and of C if beta is not 0."""
    m, n, k = size.m(), size.n(), size.k()
    of_a, of_b, of_c = (each.element.bits for each in (operation.A, operation.B, operation.C))
    return int(of_a * m // 8 * k + of_b * n // 8 * k + of_c * m // 8 * n * (1 if beta == 0 else 2))


def _shapes(operation: GemmOperationUniversal, size: _Extents) -> list[tuple[TensorDescription, int, int]]:
    """The descriptions, rows and columns of A, B, C and D."""
    m, n, k = size.m(), size.n(), size.k()
    return [(operation.A, m, k), (operation.B, k, n), (operation.C, m, n), (operation.C, m, n)]


def _product(size: _Extents, operands: Sequence[Any], alpha: float, beta: float) -> Any:
    """alpha * A @ B + beta * C of matrices, before it is rounded to the type of C."""
    row_major = TensorDescription(DataType.float64, cutlass.RowMajor, 1)
    reference = ReferenceModule(row_major, row_major, row_major)
    return _run_wide(reference, operands, GemmCoord(size.m(), size.n(), size.k()), alpha, beta)


def _equals_product(
    operation: GemmOperationUniversal, size: _Extents, operands: Sequence[Any], alpha: float, beta: float
) -> bool:
    a, b, c, d = (
        _from_layout(flat, each.layout, rows, columns)
        for flat, (each, rows, columns) in zip(operands, _shapes(operation, size), strict=True)
    )
    expected = _rounded(_product(size, (a, b, c), alpha, beta), d.dtype)
    return bool((d.reshape(-1) == expected.reshape(-1)).all())


def _conv_sizes(operation: Conv2dOperation, interleaved: bool) -> list[Conv2dProblemSize]:
    """Problems with paddings, strides, and channels that are multiples of the alignments."""
    step = CHANNELS_OF_BLOCK if interleaved else max(each.alignment for each in (operation.A, operation.B, operation.C))
    c = operation.A.alignment if operation.iterator_algorithm is IteratorAlgorithm.fixed_channels else step
    return [
        Conv2dProblemSize(
            cutlass.Tensor4DCoord(images, height, width, c),
            cutlass.Tensor4DCoord(filters, taps, taps, c),
            cutlass.Tensor4DCoord(padding, padding, padding, padding),
            cutlass.MatrixCoord(stride, stride),
            cutlass.MatrixCoord(1, 1),
            cutlass.conv.Mode.cross_correlation,
            1,
            1,
        )
        for images, height, width, filters, taps, padding, stride in (
            (1, 1, 1, step, 1, 0, 1),
            (1, 7, 8, 2 * step, 3, 1, 2),
            (2, 9, 7, 3 * step, 3, 0, 3),
            (1, 8, 9, 2 * step, 3, 1, 1),
        )
    ]


def _takes(operation: Conv2dOperation, size: Conv2dProblemSize, interleaved: bool) -> bool:
    """Whether PyCUTLASS's tests run the problem: its channels and strides are for the operation's iterators."""
    if interleaved:
        return size.C % CHANNELS_OF_BLOCK == 0 and size.K % CHANNELS_OF_BLOCK == 0
    algorithm, alignment = operation.iterator_algorithm, operation.A.alignment
    if algorithm is IteratorAlgorithm.fixed_channels and size.C != alignment:
        return False
    if algorithm is IteratorAlgorithm.few_channels and size.C % alignment != 0:
        return False
    is_unity = (size.stride_h, size.stride_w) == (1, 1)
    return operation.conv_kind is not Operator.dgrad or is_unity == (operation.stride_support is StrideSupport.Unity)


def add_names(names: Mapping[str, object]) -> None:
    """Adds names to this module. `from pycutlass.test import *` gives programs those of pycutlass, too."""
    for name, value in names.items():
        globals().setdefault(name, value)
        if name not in __all__:
            __all__.append(name)


__all__ = [
    "Conv2dLauncher",
    "GemmUniversalLauncher",
    "GpuTimer",
    "Layout",
    "LayoutCombination",
    "TestbedGrouped",
    "get_name",
    "test_all_conv2d",
    "test_all_gemm",
]
