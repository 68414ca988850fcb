"""Kernels that are written in Python with @cute.jit and @cute.kernel, against the same functions in NumPy."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright import InvalidArgument, cutlass_api
from tilewright.cutlass_api import cutlass
from tilewright.cutlass_api.arguments import GemmArguments
from tilewright.cutlass_api.cutlass import cute
from tilewright.tracing import TraceError

PROVIDER = cutlass_api.providers.cutedsl.CuTeDSLProvider
SCALE = 3
TAPS = (2, -1, 5)


class Launched:
    """An implementation whose kernel has a thread for each element of out."""

    kernel: Any

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, out: cute.Tensor, stream: Any) -> None:
        m, n = out.shape
        self.kernel(a, b, out).launch(grid=(m, -(-n // 32), 1), block=[32, 1, 1], stream=stream)


def kernel_of(implementation: Any, args: Any) -> Any:
    """A kernel of a class that is registered for as long as it takes to find it."""

    class Kernel(cutlass_api.providers.cutedsl.kernel.CuteDslKernel):
        @staticmethod
        def generate_kernels(metadata_filter: Any, epilogue_args: Any = None, cc: int | None = None) -> list[Any]:
            metadata = cutlass_api.metadata.KernelMetadata(
                kernel_name=type(implementation).__name__,
                kernel_class=Kernel,
                operands=operands,
                design=cutlass_api.metadata.BLASDesignMetadata((32, 1, 1), (1, 1, 1)),
                min_cc=0,
            )
            return [Kernel(metadata)]

        def compile(self, args: Any = None, cc: Any = None) -> Any:
            compiled = self.cute_compile(implementation, args.A, args.B, args.out, None)
            return cutlass_api.artifact.CompiledArtifact(compiled, self)

        def _run(self, args: Any, artifact: Any, stream: Any, workspace: Any = None) -> None:
            self.cute_run(artifact.compiled_obj, args.A, args.B, args.out, stream)

    operands = tilewright.find_kernels(args)[0].metadata.operands
    PROVIDER.register(Kernel)
    try:
        return cutlass_api.get_kernels(args, lambda metadata: metadata.kernel_class is Kernel, providers=["cutedsl"])[0]
    finally:
        PROVIDER.unregister(Kernel)


def run(implementation: Any, *arrays: Any) -> Any:
    args = GemmArguments(*arrays)
    kernel_of(implementation, args).run(args, assume_supported_args=True)
    return arrays[2]


def arrays(dtype: Any = np.float32, m: int = 5, n: int = 37, k: int = 6, out: Any = None) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(7)
    a, b = (random.integers(-9, 10, shape).astype(dtype) for shape in ((m, k), (k, n)))
    return a, b, np.full((m, n), 99, out or dtype)


class Statements(Launched):
    """Branches, loops and integers as Python has them."""

    def __init__(self, taps: tuple[int, ...]) -> None:
        self.taps = taps

    @cute.kernel
    def kernel(self, a: cute.Tensor, b: cute.Tensor, out: cute.Tensor) -> None:
        """Every statement that kernels may have."""
        row, column_block, _ = cute.arch.block_idx()
        lane = cute.arch.thread_idx()[0]
        column: int = column_block * 32 + lane
        m, n = out.shape[0], out.shape[-1]
        if not 0 <= column < n or row >= m:
            return
        count = 0
        for i in range(column, -1, -3):
            if i % 5 == 1:
                continue
            if i < 4:
                break
            count += i
        left = column - 20
        while left < 0 and count < 1000:
            count += left // 4 + left % 7
            left += 6
        else_value = -column if column > 30 else column
        if column == 7:
            count = count * 2
        elif column == 8:
            count = count - 1
        else:
            count = max(count, else_value, row) - min(count, 3)
        for tap in cutlass.range_constexpr(len(self.taps)):
            count += self.taps[tap] * TAPS[tap] << tap
        if len(self.taps) > 5:
            count = 0
        sum = cutlass.Float32(0)
        for i in range(a.shape[1]):
            sum += a[row, i] * b[i, column] / 2
        out[row, column] = SCALE * sum + count + abs(cutlass.Int32(left)) + (count & 6)


def statements(taps: tuple[int, ...], a: Any, b: Any) -> Any:
    out = np.zeros((a.shape[0], b.shape[1]))
    for row, column in itertools.product(range(a.shape[0]), range(b.shape[1])):
        count = 0
        for i in range(column, -1, -3):
            if i % 5 == 1:
                continue
            if i < 4:
                break
            count += i
        left = column - 20
        while left < 0 and count < 1000:
            count += left // 4 + left % 7
            left += 6
        else_value = -column if column > 30 else column
        if column == 7:
            count = count * 2
        elif column == 8:
            count = count - 1
        else:
            count = max(count, else_value, row) - min(count, 3)
        for tap in range(len(taps)):
            count += taps[tap] * TAPS[tap] << tap
        out[row, column] = SCALE * (a[row] @ b[:, column] / 2) + count + abs(left) + (count & 6)
    return out


def test_statements_are_those_of_python() -> None:
    a, b, out = arrays()
    run(Statements((1, 4, -2)), a, b, out)
    np.testing.assert_array_equal(out, statements((1, 4, -2), a, b))


class Paths(Launched):
    """Names that have a value on every path to where they are read, and tuples of numbers that change later."""

    @cute.kernel
    def kernel(self, a: cute.Tensor, b: cute.Tensor, out: cute.Tensor) -> None:
        row, block, _ = cute.arch.block_idx()
        column = block * 32 + cute.arch.thread_idx()[0]
        if column >= out.shape[1]:
            return
        else:
            inside = 2
        if column % 2 == 0:
            parity = 1
            place = (row, column)
        else:
            parity = 3
            place = (row, column)
        for i in range(4):
            last = i + parity
            if last > column:
                continue
            last += 1
        while True:
            found = last * 2
            last += 1
            if found > 9:
                break
        at = (found, last)
        found = 0
        for step in range(row):
            pair = (step, found)
            found = pair[0] + pair[1]
        pair = (found, at[0])
        if row == 0:
            for tap in cutlass.range_constexpr(2):
                weight = tap + inside
        elif row == 1:
            weight = 7
        else:
            out[place] = 1000
            return
        out[place] = pair[0] + 10 * pair[1] + 100 * at[1] + 1000 * weight


def paths(row: int, column: int) -> int:
    parity = 1 if column % 2 == 0 else 3
    for i in range(4):
        last = i + parity
        if last > column:
            continue
        last += 1
    while True:
        found = last * 2
        last += 1
        if found > 9:
            break
    at = (found, last)
    found = sum(range(row))
    return 1000 if row > 1 else found + 10 * at[0] + 100 * at[1] + 1000 * (3 if row == 0 else 7)


def test_names_have_the_values_of_every_path() -> None:
    a, b, out = arrays()
    run(Paths(), a, b, out)
    np.testing.assert_array_equal(out, [[paths(row, column) for column in range(37)] for row in range(5)])


class Constants(Launched):
    @cute.kernel
    def kernel(self, a: cute.Tensor, b: cute.Tensor, out: cute.Tensor) -> None:
        row, column = cute.arch.block_idx()[0], cute.arch.thread_idx()[0]
        two = 2.0
        one = cute.math.cos(0)
        if cute.math.sqrt(4) == 2 and column < 32:
            out[row, column] = (
                cute.math.exp(two) + cute.math.log(two) + cute.math.sin(0.5) * one + cute.math.rsqrt(4) + cute.math.tanh(1.0)
            )


def test_functions_of_constants_are_numbers() -> None:
    a, b, out = arrays(np.float64, n=32)
    run(Constants(), a, b, out)
    expected = np.exp(2) + np.log(2) + np.sin(0.5) + 0.5 + np.tanh(1)
    np.testing.assert_allclose(out, np.full(out.shape, expected), rtol=1e-6)


class Product(Launched):
    @cute.kernel
    def kernel(self, a: cute.Tensor, b: cute.Tensor, out: cute.Tensor) -> None:
        row, block, _ = cute.arch.block_idx()
        column = block * 32 + cute.arch.lane_idx()
        if column < cute.size(out, mode=[1]):
            out[row, column] = a[row, 0] * b[0, column]
            for i in range(1, cute.size(a) // a.shape[0]):
                out[row, column] += a[row, i] * b[i, column]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, "bfloat16", np.int8])
def test_elements_of_every_type(dtype: Any) -> None:
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    a, b, out = arrays(dtype, m=3, k=2, out=np.int32 if dtype is np.int8 else None)
    run(Product(), a, b.T.copy().T, out)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_array_equal(out.astype(np.float64), exact)


class Numbers:
    """Numbers that change from launch to launch are parameters; other objects are known to the compiler."""

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, out: cute.Tensor, stream: Any) -> None:
        m, n = out.shape
        self.kernel(out, m * 10, m / 4, "sqrt" if m > 2 else 7.5).launch(grid=[m], block=[n])

    @cute.kernel
    def kernel(self, out: cute.Tensor, tens: Any, quarter: Any, what: Any) -> None:
        row, column = cute.arch.block_idx()[0], cute.arch.thread_idx()[0]
        value = float(tens) if what != "sqrt" else cute.math.sqrt(cutlass.Float64(tens * tens))
        out[row, column] = value + quarter + cutlass.Float16(1 / 3) * 0


def test_numbers_are_parameters() -> None:
    args = GemmArguments(*arrays(np.float64, n=4))
    kernel = kernel_of(Numbers(), args)
    artifact = kernel.compile(args)
    for m in (5, 3):
        a, b, out = arrays(np.float64, m=m, n=4)
        kernel.run(GemmArguments(a, b, out), artifact, assume_supported_args=True)
        np.testing.assert_array_equal(out, np.full((m, 4), m * 10 + m / 4))
    other = GemmArguments(*arrays(np.float64, m=2, n=4))
    with pytest.raises(InvalidArgument, match="f64 with 2 modes, int, float, sqrt, and is launched with .*, float$"):
        kernel.run(other, artifact, assume_supported_args=True)


def test_an_implementation_may_be_cuda() -> None:
    class Ones:
        source = """extern "C" __global__ void ones(float* out, int count) {
          for (int i = threadIdx.x; i < count; i += 32) out[i] = 1;
        }"""

        def __call__(self, a: Any, b: Any, out: Any, stream: Any) -> Any:
            return tilewright.Launch([1], [32], [out, tilewright.i32(out.shape[0] * out.shape[1])])

    assert (run(Ones(), *arrays()) == 1).all()


def test_findings_of_the_emulator_name_the_line_of_python() -> None:
    if not tilewright.device_name().startswith("emulator"):
        pytest.skip("needs the emulator")

    class Outside(Launched):
        @cute.kernel
        def kernel(self, a: cute.Tensor, b: cute.Tensor, out: cute.Tensor) -> None:
            row = cute.arch.block_idx()[0]
            out[row, 1000000] = 1

    with pytest.raises(tilewright.EmulationError, match=r"test_cute_kernels.py:\d+"):
        run(Outside(), *arrays())


def refused(body: str, reason: str) -> None:
    """`body` follows `row` and `column`; the error names its last line."""
    import linecache

    lines = [
        "@cute.kernel",
        "def kernel(self, a, b, out):",
        "    row, column = cute.arch.block_idx()[0], cute.arch.thread_idx()[0]",
        *("    " + line for line in body.splitlines()),
    ]
    name = f"<kernel {hash(body)}>"
    linecache.cache[name] = (len(body), None, [line + "\n" for line in lines], name)
    space = {"cute": cute, "cutlass": cutlass, "np": np, "helper": Statements.kernel}
    exec(compile("\n".join(lines), name, "exec"), space)
    kind = type("Refused", (Launched,), {"kernel": space["kernel"]})
    with pytest.raises(TraceError, match=reason) as caught:
        run(kind(), *arrays())
    assert re.match(rf"{re.escape(name)}:{len(lines)}:\d+: ", str(caught.value)), caught.value


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("x = 0\nx += a[row, 0]", "x is a number of f32 here, but of int on line 4"),
        ("x = cutlass.Float32(0)\nx = cutlass.Float64(1)", "begin with cutlass.Float64"),
        ("a[row] = 1", "a has 2 modes, and is indexed by 1 integers"),
        ("out[row, 0.5] = 1", "an index must be an integer, got a number of f32"),
        ("out[row, :] = 1", r"an expression of this kind \(Slice\)"),
        ("x, y = out.shape[0], 1, 2", "2 names are assigned 3 values"),
        ("out[row, 0] = undefined", "undefined has no value here"),
        ("out[row, 0] = np.exp(a[row, 0])", "cannot call exp of a number that depends on a thread or a launch"),
        ("out[row, 0] = helper(a, b, out)", "cannot call functions with @cute.kernel"),
        ("if row > 3:\n    x = row\nout[row, 0] = x", "x has no value on some path through the branch on line 4"),
        ("if row > 3:\n    x = 1\nelse:\n    y = 2\nout[row, 0] = x", "x has no value on some path through the branch"),
        ("for i in range(a.shape[0]):\n    x = 3.0\nout[row, 0] = x", "x has no value on some path through the loop on line 4"),
        ("for i in range(a.shape[0]): pass\nout[row, 0] = i", "i has no value on some path through the loop"),
        ("while row > 3:\n    x = 1\nx += 1", "x has no value on some path through the loop"),
        (
            "for i in range(4):\n    if row > 3: break\n    x = 1\nout[row, 0] = x",
            "x has no value on some path through the loop",
        ),
        (
            "for i in range(4):\n    if row > 3: continue\n    x = 1\nout[row, 0] = x",
            "x has no value on some path through the loop",
        ),
        ("if row > 3:\n    x = (1, 2)\nelse:\n    x = (1, 3)\nout[row, 0] = x[1]", "x is no number, and has different values"),
        ("x = (0, 1)\nfor i in range(3):\n    y = x[0]; x = (i, 1)", "x is no number, and changes in the loop on line 5"),
        ("x = sum + 1; sum = 0", "sum has no value here"),
        ("for i in cutlass.range_constexpr(3):\n    if row > i: break", "is unrolled, and cannot have break"),
        ("out[row, 0] = cute.math.log(-1.0)", r"log\(-1.0\): math domain error"),
        ("out[row, 0] = cute.math.exp()", r"exp\(\) takes one number, got 0"),
        ("out[row, 0] = cute.math.exp('2')", "a number is needed here, got '2'"),
        ("x = cutlass.range_constexpr(3)", r"range_constexpr\(\) is for the head of a loop"),
        ("x = cute.arch.alloc_smem(cutlass.Float32, 32)", "cutlass.cute.arch has no alloc_smem: there are thread_idx, block_idx"),
        ("x = cute.math.erf(a[row, 0])", "cutlass.cute.math has no erf: there are exp, log,"),
        ("with a: pass", r"a statement of this kind \(With\)"),
        ("for x in (1, 2): pass", r"a loop of a kernel is `for name in range\(...\)`"),
        ("for x in range(0, 4, row): pass", "the step of a loop must be an integer that is known"),
        ("return row", "a kernel returns nothing"),
        ("a = 3", "a is a parameter, which cannot be assigned"),
        ("x = a.colour", "has no attribute colour"),
        ("x = row.real", "a number has no attribute real"),
        ("x = (1, 2)[row]", "only tensors have elements at an index that depends"),
        ("x = (1, 2)[5]", "tuple index out of range"),
        ("x = 1 // 0", "integer division or modulo by zero"),
        ("x = a[row, 0] % 2", "cannot compute % of numbers of f32"),
        ("x = row is None", "a kernel compares numbers by"),
        ("x = 'text' + row", "a number is needed here, got 'text'"),
        ("x = row + 2**70", "does not fit into 64 bits"),
        ("x = cutlass.Float8E4M3FN(row)", "e4m3 is no type that converts"),
    ],
)
def test_what_a_kernel_cannot_have_is_named(body: str, reason: str) -> None:
    refused(body, reason)


def test_launches_are_refused() -> None:
    class Twice(Product):
        @cute.jit
        def __call__(self, a: cute.Tensor, b: cute.Tensor, out: cute.Tensor, stream: Any) -> None:
            for _ in range(2):
                self.kernel(a, b, out).launch(grid=(1,), block=(32,))

    class Flat(Product):
        @cute.jit
        def __call__(self, a: cute.Tensor, b: cute.Tensor, out: cute.Tensor, stream: Any) -> None:
            self.kernel(a, b, out).launch(grid=3, block=(32,))

    class Short(Product):
        @cute.jit
        def __call__(self, a: cute.Tensor, b: cute.Tensor, out: cute.Tensor, stream: Any) -> None:
            self.kernel(a, out).launch(grid=(1,), block=(32,))

    for implementation, reason in (
        (Twice(), "must launch one kernel, and launched 2"),
        (Flat(), "grid must have one to three integers, got 3"),
        (Short(), "kernel takes 4 arguments, and was called with 3"),
    ):
        with pytest.raises(InvalidArgument, match=reason):
            run(implementation, *arrays())
    with pytest.raises(InvalidArgument, match="kernel was launched outside of CuteDslKernel"):
        Product().kernel(1, 2, 3).launch(grid=(1,), block=(1,))
    with pytest.raises(InvalidArgument, match=r"cute.arch.thread_idx\(\) is for the body of a function"):
        cute.arch.thread_idx()
    unknown: dict[str, Any] = {"cute": cute}
    exec("@cute.kernel\ndef kernel(self, a, b, out): pass", unknown)
    with pytest.raises(TraceError, match="instead: define the kernel with def in a file or a notebook"):
        run(type("Unknown", (Launched,), {"kernel": unknown["kernel"]})(), *arrays())
    for decorator in (cute.jit, cute.kernel):
        with pytest.raises(TypeError, match="takes a function that is defined with def, got 3"):
            decorator(3)
