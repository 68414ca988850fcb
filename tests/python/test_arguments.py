"""GemmArguments and EpilogueArguments: which arrays and epilogues are accepted, refused, and how they are bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright import EpilogueArguments, GemmArguments, InvalidArgument, matmul

A = np.arange(12, dtype=np.float32).reshape(3, 4)
B = np.ones((4, 2), np.float32)


def test_alpha_and_beta_of_an_epilogue_are_those_of_the_gemm() -> None:
    def scaled(accum: Any, alpha: float) -> Any:
        return accum * alpha

    out = np.empty((3, 2), np.float32)
    for epilogue in (EpilogueArguments(scaled, alpha=5.0), EpilogueArguments("D = acc * alpha", alpha=5.0)):
        args = GemmArguments(A, B, out, epilogue=epilogue)
        assert args.alpha == 5.0
        tilewright.find_kernels(args)[0].run(args)
        np.testing.assert_array_equal(out, A @ B * 5)


def test_numbers_are_launch_arguments() -> None:
    np.testing.assert_array_equal(matmul(A, B, epilogue="D = acc * $s", s=0.5), A @ B / 2)
    np.testing.assert_array_equal(matmul(A, B, epilogue=lambda accum, s: accum * s, s=0.25), A @ B / 4)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int64, np.uint8])
def test_scalars_of_numpy_are_numbers(kind: Any) -> None:
    def scaled(accum: Any, s: Any, doubles: Any) -> Any:
        return accum * s * 2 if doubles else accum * s

    for value in (kind(2), kind(3)):
        for doubles in (np.bool_(False), np.bool_(True)):
            got = matmul(A, B, epilogue=scaled, s=value, doubles=doubles)
            np.testing.assert_array_equal(got, A @ B * float(value) * (2 if doubles else 1))
    np.testing.assert_array_equal(matmul(A, B, epilogue="D = acc * $s", s=kind(3)), A @ B * 3)


def test_classes_of_python_are_the_types_that_they_are_in_numpy() -> None:
    assert tilewright.dtype(float) is tilewright.DType.f64
    assert tilewright.dtype("float") is tilewright.DType.f32, "a name of C"
    for kind in (int, np.int64):
        with pytest.raises(InvalidArgument, match="unknown element type 'int64'"):
            tilewright.dtype(kind)


def test_scalars_of_numpy_are_read_as_copies() -> None:
    """The memory that numpy.float32(2).__array_interface__ has is freed at once."""
    epilogue = tilewright.Epilogue("D = acc * single(s)")
    for value in range(100):
        out = np.empty((3, 2), np.float32)
        args = GemmArguments(A, B, out, epilogue=EpilogueArguments(epilogue, s=np.float32(value)))
        filler = [np.full(1, -1, np.float32) for _ in range(20)]
        tilewright.run(args)
        np.testing.assert_array_equal(out, A @ B * value)
        del filler
    with pytest.raises(InvalidArgument, match="out is read-only"):
        tilewright.contract(",->", np.float32(2), np.float32(3), out=np.float32(0))


def test_c_alpha_and_beta() -> None:
    c = np.full((3, 2), 7, np.float32)
    np.testing.assert_array_equal(matmul(A, B, c=c), A @ B + 7)
    np.testing.assert_array_equal(matmul(A, B, c=c, alpha=2, beta=-1), 2 * (A @ B) - 7)
    np.testing.assert_array_equal(matmul(A, B, c=np.full((3, 2), np.nan, np.float32), beta=0), A @ B)


def gated(accum: Any) -> Any:
    return np.maximum(accum[..., ::2], 0) * accum[..., 1::2]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("epilogue", ["D = reglu(acc)", gated])
def test_gated_epilogues_store_any_layout(dtype: str, batch: tuple[int, ...], epilogue: Any) -> None:
    random = np.random.default_rng(3)
    a, b = (random.integers(-2, 3, batch + shape).astype(dtype) for shape in ((19, 8), (8, 22)))
    product = a @ b
    expected = np.maximum(product[..., ::2], 0) * product[..., 1::2]
    column_major = np.empty((*batch, 11, 19), dtype).swapaxes(-1, -2)
    for out in (None, np.empty((*batch, 19, 11), dtype), column_major):
        np.testing.assert_array_equal(matmul(a, b, out=out, epilogue=epilogue), expected)
        promised = matmul(a, b, out=out, epilogue=epilogue, batch_invariant=True, deterministic=True)
        np.testing.assert_array_equal(promised, expected)
    np.testing.assert_array_equal(column_major, expected)


def test_results_have_the_implied_or_the_requested_type() -> None:
    bytes_ = np.ones((4, 4), np.int8)
    assert matmul(bytes_, bytes_).dtype == np.int32
    assert matmul(A, B, out_dtype="float16").dtype == np.float16
    assert matmul(A.astype(np.float64), B.astype(np.float64)).dtype == np.float64


def test_an_object_with_a_device_interface_or_dlpack_is_an_array() -> None:
    class Interface:
        def __init__(self, array: Any) -> None:
            self.__array_interface__ = array.__array_interface__
            self.dtype, self.shape, self.keep = array.dtype, array.shape, array

    class DLPack:
        def __init__(self, array: Any) -> None:
            self.array, self.shape = array, array.shape

        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__()

    for kind in (Interface, DLPack):
        out = np.empty((3, 2), np.float32)
        args = GemmArguments(kind(A), kind(B), out)
        tilewright.find_kernels(args)[0].run(args)
        np.testing.assert_array_equal(out, A @ B)


def test_dlpack_arrays_marked_read_only_are_read_only() -> None:
    class DLPack:
        def __dlpack__(self, **options: Any) -> Any:
            return frozen.__dlpack__(**options)

    frozen = np.ones((3, 2), np.float32)
    frozen.setflags(write=False)
    with pytest.raises(InvalidArgument, match="out is read-only"):
        GemmArguments(A, B, DLPack())
    GemmArguments(A, B, np.empty((3, 2), np.float32), C=DLPack(), beta=1)


class OnGpu:
    """An array that claims to be on a GPU; its memory is never accessed."""

    def __init__(
        self, rows: int, columns: int, address: int, stream: int | None = None, is_read_only: bool = False
    ) -> None:
        self.dtype, self.shape, self.device = np.dtype(np.float32), (rows, columns), 0
        self.__cuda_array_interface__ = {
            "shape": self.shape,
            "typestr": "<f4",
            "data": (address, is_read_only),
            "stream": stream,
            "version": 3,
        }


def test_invalid_streams_and_streams_of_another_gpu_are_refused() -> None:
    kernel = tilewright.find_kernels(GemmArguments(A, B, np.empty((3, 2), np.float32)))[0]
    with pytest.raises(InvalidArgument, match="stream 0 in __cuda_array_interface__ is not allowed"):
        GemmArguments(OnGpu(3, 4, 4096, stream=0), OnGpu(4, 2, 8192), OnGpu(3, 2, 12288))

    class StreamOfAnother:
        device_id, ptr = 3, 64

    with pytest.raises(InvalidArgument, match="the stream belongs to cuda:3, but the arrays are on cuda:0"):
        kernel.run(GemmArguments(OnGpu(3, 4, 4096), OnGpu(4, 2, 8192), OnGpu(3, 2, 12288)), stream=StreamOfAnother())


def test_a_workspace_must_be_writable_gpu_memory() -> None:
    args = GemmArguments(A, B, np.empty((3, 2), np.float32))
    kernel = tilewright.find_kernels(args)[0]
    with pytest.raises(InvalidArgument, match="workspace must be an array on a GPU, got one on host"):
        kernel.run(args, workspace=np.zeros(64, np.uint8))
    with pytest.raises(InvalidArgument, match="workspace is read-only"):
        kernel.run(args, workspace=OnGpu(8, 8, 4096, is_read_only=True))


@pytest.mark.parametrize(
    "wrong, message",
    [
        (dict(A=np.ma.masked_array(A)), "masked arrays are not supported"),
        (dict(A=A[:, :3]), r"columns of A and rows of B differ: \(3,3\) and \(4,2\)"),
        (dict(A=A.astype(">f4")), "A: big-endian arrays are not supported"),
        (dict(A=A[0]), "A must have rank 2, or 3 with the batch first"),
        (dict(A=A.astype(np.complex64)), "unknown element type 'complex64'"),
        (dict(A=[[1.0]]), "expected an array"),
        (dict(A=A[:, ::-1]), "A has a negative stride"),
        (dict(out=np.empty((3, 3), np.float32)), r"out must be \(3,2\), got \(3,3\)"),
        (dict(out=A[:, :2]), "out .* overlaps A"),
        (dict(accumulator_type="float64"), "f32 operands accumulate in f32, got f64"),
        (dict(math="fast"), "unknown math operation 'fast'"),
        (dict(epilogue="D = relu(acc + row(bias))"), "the epilogue reads 'bias', but no tensor has that name"),
        (dict(epilogue=EpilogueArguments("D = acc", bias=B[0])), "the epilogue has no tensor 'bias'"),
        (dict(epilogue="D = nothing(acc)"), "epilogue, character"),
    ],
)
def test_invalid_arguments_are_refused(wrong: dict[str, Any], message: str) -> None:
    arguments = {"A": A, "B": B, "out": np.empty((3, 2), np.float32), **wrong}
    with pytest.raises(InvalidArgument, match=message):
        GemmArguments(**arguments)


def test_a_read_only_output_is_refused() -> None:
    out = np.empty((3, 2), np.float32)
    out.flags.writeable = False
    with pytest.raises(InvalidArgument, match="out is read-only"):
        GemmArguments(A, B, out)


def test_every_further_output_of_an_epilogue_needs_an_array() -> None:
    def two(accum: Any) -> Any:
        D = accum
        rest = accum + 1
        return D, rest

    with pytest.raises(InvalidArgument, match="the epilogue returns rest, but no array of that name is given"):
        matmul(A, B, epilogue=two)
    with pytest.raises(InvalidArgument, match="the epilogue has no parameter or output named more"):
        matmul(A, B, epilogue=two, rest=np.empty((3, 2), np.float32), more=1.0)
    rest = np.empty((3, 2), np.float32)
    np.testing.assert_array_equal(matmul(A, B, epilogue=two, rest=rest) + 1, rest)


def test_named_epilogues_have_the_type_of_d_and_their_scalars() -> None:
    h = np.full((8, 8), 200, np.float16)
    clamped = matmul(h, h, epilogue="linear_combination_clamp")
    assert (clamped == np.float16(65504)).all()
    minus = matmul(-A, B, epilogue="leaky_relu", leaky_alpha=0.5)
    np.testing.assert_array_equal(minus, -(A @ B) * 0.5)
    with pytest.raises(InvalidArgument, match="the epilogue 'relu' has no scalar 'slope'"):
        matmul(A, B, epilogue="relu", slope=0.5)


def test_arguments_that_an_epilogue_lacks_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="the epilogue does not use alpha, got 2"):
        matmul(A, B, alpha=2, epilogue="D = relu(acc)")
    with pytest.raises(InvalidArgument, match="c is given, but the epilogue does not read it"):
        matmul(A, B, c=np.ones((3, 2), np.float32), epilogue="D = relu(acc)")


@pytest.mark.parametrize("divisibility", [0, -8])
def test_a_divisibility_is_positive(divisibility: int) -> None:
    with pytest.raises(InvalidArgument, match=f"divisibility must be at least 1, got {divisibility}"):
        tilewright.TensorAttributes("float32", "row", divisibility)


def test_a_kernel_without_alpha_refuses_other_values_of_alpha() -> None:
    matrix = tilewright.TensorAttributes("float32", "row")
    kernel = tilewright.make_kernel(
        *(matrix, matrix, matrix, "float32"),
        tilewright.BLASDesignMetadata((32, 32, 16), stages=3, warp_count=(1, 1, 1)),
        epilogue=tilewright.Epilogue("D = acc"),
    )
    out = np.empty((3, 2), np.float32)
    kernel.run(GemmArguments(A, B, out))
    np.testing.assert_array_equal(out, A @ B)
    with pytest.raises(InvalidArgument, match="the problem's epilogue is"):
        kernel.run(GemmArguments(A, B, out, alpha=2.0))


def test_a_kernel_is_made_for_arguments_and_a_design() -> None:
    bias, out = np.arange(2, dtype=np.float32), np.empty((3, 2), np.float32)
    args = GemmArguments(A, B, out, epilogue=EpilogueArguments("D = acc + row(bias)", bias=bias))
    design = tilewright.BLASDesignMetadata((32, 64, 8), stages=3, warp_count=(1, 2, 1))
    kernel = tilewright.make_kernel(args, design)
    assert kernel.metadata.design.tile_shape == (32, 64, 8)
    kernel.run(args)
    np.testing.assert_array_equal(out, A @ B + bias)
    found = tilewright.find_kernels(args)[0]
    assert tilewright.make_kernel(args, found.metadata.design).metadata == found.metadata
    with pytest.raises(InvalidArgument, match="a warp tile of 15x16 is not divisible"):
        tilewright.make_kernel(args, tilewright.BLASDesignMetadata((30, 64, 8)))
    with pytest.raises(InvalidArgument, match="op_class must be simt or tensor_op, got 'cores'"):
        tilewright.BLASDesignMetadata((32, 64, 8), op_class="cores")


def test_arguments_do_not_keep_arrays_alive() -> None:
    import sys

    a = np.ones((4, 4), np.float32)
    before = sys.getrefcount(a)
    matmul(a, a)
    assert tilewright.dtype(a) == tilewright.DType.f32
    assert sys.getrefcount(a) == before


@pytest.mark.parametrize("extents", [(0, 8, 4), (8, 0, 4)])
def test_extremes_of_nothing_are_refused(extents: tuple[int, int, int]) -> None:
    m, n, k = extents
    a, b = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
    side = "row" if m == 0 else "column"
    for reduction in ("max", "min", "absmax"):
        with pytest.raises(InvalidArgument, match=r"'r' of shape \(.*\) reduces out, which has no elements"):
            matmul(a, b, epilogue=f"D = acc; {side}(r) = {reduction}(acc)", r=np.empty(8, np.float32))
    other = "column" if m == 0 else "row"
    out = matmul(a, b, epilogue=f"D = acc; {other}(r) = max(acc)", r=np.empty(0, np.float32))
    assert out.shape == (m, n)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("batch", [(), (3,)], ids=str)
@pytest.mark.parametrize("extents", [(0, 8, 4), (8, 0, 4)])
def test_sums_of_nothing_are_zero(extents: tuple[int, int, int], batch: tuple[int, ...], dtype: Any) -> None:
    m, n, k = extents
    a, b = np.ones((*batch, m, k), dtype), np.ones((*batch, k, n), dtype)
    side = "row" if m == 0 else "column"
    text = f"D = acc; {side}(r) = sum(acc); s = sum_of_squares(acc)"
    of_sums = np.float64 if dtype == np.float64 else np.float32
    around = np.full((*batch, 16), 7, of_sums)
    for _ in range(2):  # the second call is a repeated one
        r, s = around[..., ::2], np.full(batch, 7, of_sums)
        r[...] = 7
        assert matmul(a, b, epilogue=text, r=r, s=s).shape == (*batch, m, n)
        assert (r == 0).all() and (s == 0).all() and (around[..., 1::2] == 7).all()
    s, r = np.full(batch, 7, of_sums), np.full((*batch, 8), 7, of_sums)
    out = np.empty((*batch, m, n), dtype)
    arguments = GemmArguments(a, b, out, epilogue=EpilogueArguments(text, r=r, s=s))
    call = tilewright.prepare(arguments)
    for run in (call.run, lambda: call.run(arguments), lambda: tilewright.find_kernels(arguments)[0].run(arguments)):
        r[...] = s[...] = 7
        run()
        assert (r == 0).all() and (s == 0).all()


def test_sums_without_products_are_sums_of_zeros() -> None:
    r = np.full((1, 8), 7, np.float32)
    matmul(np.ones((8, 0), np.float32), np.ones((0, 8), np.float32), epilogue="D = acc; row(r) = sum(acc + 1)", r=r)
    np.testing.assert_array_equal(r, np.full((1, 8), 8))
