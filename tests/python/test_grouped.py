"""grouped_matmul() and GroupedGemmArguments on NumPy arrays.

Data are integers, so that every order of addition gives the same bits. `out` is a view in a larger array of NaN, so
that writes outside of the groups are found.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright import EpilogueArguments, GroupedGemmArguments, InvalidArgument, ShapeOnly, grouped_matmul

PATTERNS = {
    "uniform": [12, 12, 12, 12],
    "zipf": [24, 12, 8, 6, 4, 0],
    "tails": [17, 1, 7, 2, 33, 3, 5],
    "empty": [0, 0, 40, 0, 1, 0],
    "one": [37],
    "all_empty": [0, 0, 0],
}
STACK, N, K = 72, 40, 24  # no pattern has more rows than the stack


@pytest.fixture(params=["emulator:sm_90a", "emulator:sm_80", ""], ids=["sm_90a", "sm_80", "gpu"], autouse=True)
def device(request: pytest.FixtureRequest, has_gpu: bool) -> Iterator[str]:
    if request.param == "" and not has_gpu:
        pytest.skip("no GPU")
    before = tilewright.device_name()
    tilewright.configure(device=request.param or "cuda:0")
    yield request.param
    tilewright.configure(device=before if before.startswith("emulator") else "cuda:0")


def integers(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    return np.random.default_rng(seed + sum(shape)).integers(-3, 4, shape).astype(dtype)


def ends(sizes: list[int]) -> Any:
    return np.cumsum(sizes, dtype=np.int32)


def guarded(*shape: int, dtype: Any = np.float32) -> tuple[Any, Any]:
    """An array of NaN (or of 99, for integers), and a view of `shape` in the middle of it."""
    nothing = np.nan if np.issubdtype(dtype, np.floating) else 99
    around = np.full([extent + 2 for extent in shape[:-1]] + [shape[-1] + 16], nothing, dtype)
    return around, around[(*(slice(1, -1) for _ in shape[:-1]), slice(8, -8))]


def stacked(mode: str, sizes: list[int], dtype: Any = np.float32) -> tuple[Any, Any, Any]:
    """A, B and the expected result, whose elements that belong to no group are NaN (or 99)."""
    groups = len(sizes)
    shapes = {
        "ragged_m": ((STACK, K), (groups, K, N), (STACK, N)),
        "ragged_n": ((groups, N, K), (K, STACK), (N, STACK)),
        "ragged_k": ((K, STACK), (STACK, N), (groups, K, N)),
    }
    of_a, of_b, of_out = shapes[mode]
    a, b = integers(*of_a, dtype=dtype), integers(*of_b, dtype=dtype, seed=1)
    wide = np.int64 if np.issubdtype(dtype, np.integer) else np.float64
    expected = guarded(*of_out, dtype=np.int32 if dtype == np.int8 else dtype)[1].copy()
    begin = 0
    for group, size in enumerate(sizes):
        rows = slice(begin, begin + size)
        if mode == "ragged_m":
            expected[rows] = a[rows].astype(wide) @ b[group].astype(wide)
        elif mode == "ragged_n":
            expected[:, rows] = a[group].astype(wide) @ b[:, rows].astype(wide)
        else:
            expected[group] = a[:, rows].astype(wide) @ b[rows].astype(wide)
        begin += size
    return a, b, expected


def assert_only_inside(around: Any, inside: Any, expected: Any) -> None:
    """`inside`, a view of `around`, equals `expected`, and everything around it is untouched."""
    np.testing.assert_array_equal(inside, expected)
    inside[...] = 0
    touched = around != 99 if np.issubdtype(around.dtype, np.integer) else ~np.isnan(around)
    assert touched.sum() == inside.size, "something around the result was written"


@pytest.mark.parametrize("mode", ["ragged_m", "ragged_n", "ragged_k"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_ranks_say_what_is_stacked(mode: str, pattern: str) -> None:
    sizes = PATTERNS[pattern]
    a, b, expected = stacked(mode, sizes, np.float16)
    around, out = guarded(*expected.shape, dtype=np.float16)
    assert grouped_matmul(a, b, offsets=ends(sizes), out=out) is out
    assert_only_inside(around, out, expected)


@pytest.mark.parametrize("mode", ["ragged_m", "ragged_n", "ragged_k"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.float16])
def test_types(mode: str, dtype: Any) -> None:
    sizes = PATTERNS["tails"]
    a, b, expected = stacked(mode, sizes, dtype)
    around, out = guarded(*expected.shape, dtype=expected.dtype)
    grouped_matmul(a, b, offsets=ends(sizes), out=out)
    assert_only_inside(around, out, expected)


def test_bfloat16() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a, b, expected = stacked("ragged_m", [STACK])
    got = grouped_matmul(a.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16), offsets=ends([STACK]))
    assert got.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(got, expected.astype(ml_dtypes.bfloat16))


@pytest.mark.parametrize("transposed", ["a", "b", "ab"])
@pytest.mark.parametrize("mode", ["ragged_m", "ragged_n", "ragged_k"])
def test_layouts(mode: str, transposed: str) -> None:
    sizes = PATTERNS["tails"]
    a, b, expected = stacked(mode, sizes, np.float16)
    if "a" in transposed:
        a = np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2)
    if "b" in transposed:
        b = np.ascontiguousarray(b.swapaxes(-1, -2)).swapaxes(-1, -2)
    around, out = guarded(*expected.shape, dtype=np.float16)
    grouped_matmul(a, b, offsets=ends(sizes), out=out)
    assert_only_inside(around, out, expected)


@pytest.mark.parametrize("counts", [[5, 0, 16, 1], [16, 16, 16, 16], [0, 0, 0, 0]])
def test_counts_are_for_padded_batches(counts: list[int]) -> None:
    groups, most = len(counts), 16
    a, b = integers(groups, most, K, dtype=np.float16), integers(groups, K, N, dtype=np.float16)
    for group, count in enumerate(counts):
        a[group, count:] = np.nan  # padding is not read into rows of the group
    around, out = guarded(groups, most, N, dtype=np.float16)
    grouped_matmul(a, b, counts=np.array(counts, np.int32), out=out)
    expected = np.full((groups, most, N), np.nan)
    for group, count in enumerate(counts):
        expected[group, :count] = a[group, :count].astype(np.float64) @ b[group]
    assert_only_inside(around, out, expected)


def test_columns_may_be_counted() -> None:
    counts = np.array([5, 0, 8, 1], np.int32)
    a, b = integers(4, 16, K), integers(4, K, 8)
    out = np.full((4, 16, 8), np.nan, np.float32)
    args = GroupedGemmArguments(a, b, out, counts=counts, mode="masked_n")
    tilewright.run(args)
    for group, count in enumerate(counts):
        np.testing.assert_array_equal(out[group, :, :count], a[group] @ b[group, :, :count])
        assert np.isnan(out[group, :, count:]).all()
    assert args.verify()


def test_k_may_be_counted() -> None:
    counts = np.array([5, 0, 24, 1], np.int32)
    a, b = integers(4, 16, K), integers(4, K, 8)
    for group, count in enumerate(counts):
        a[group, :, count:] = np.nan
        b[group, count:] = np.nan
    out = np.full((4, 16, 8), np.nan, np.float32)
    args = GroupedGemmArguments(a, b, out, counts=counts, mode="masked_k")
    tilewright.run(args)
    for group, count in enumerate(counts):
        np.testing.assert_array_equal(out[group], a[group, :, :count] @ b[group, :count])
    assert args.verify()


@pytest.mark.parametrize("most", [1, 12])
def test_groups_without_k_beside_a_k_of_odd_bytes(most: int) -> None:
    """The zeros of a group without K are loaded from behind K, where a box of TMA must begin at a multiple of 16 bytes."""
    a, b = integers(2, 40, 16, dtype=np.float16)[:, :, :most], integers(2, 64, 16, dtype=np.float16)[:, :, :most]
    out = np.empty((2, 40, 64), np.float32)
    counts = np.array([0, most], np.int32)
    args = GroupedGemmArguments(a, b.swapaxes(1, 2), out, counts=counts, mode="masked_k")
    for kernel in tilewright.find_kernels(args)[:3]:
        out[:] = np.nan
        kernel.run(args)
        np.testing.assert_array_equal(out[0], np.zeros((40, 64)))
        np.testing.assert_array_equal(out[1], a[1].astype(np.float32) @ b[1].T.astype(np.float32))
    rows = [np.empty((40, 0), np.float16), a[1]]
    columns = [np.empty((0, 64), np.float16), np.ascontiguousarray(b[1].T)]
    made = grouped_matmul(rows, columns, out_dtype="float32")
    np.testing.assert_array_equal(made[0], out[0])
    np.testing.assert_array_equal(made[1], out[1])


@pytest.mark.parametrize("mode", ["ragged_m", "ragged_n", "ragged_k"])
def test_reductions_have_results_for_each_group(mode: str) -> None:
    sizes = PATTERNS["empty"]
    groups = len(sizes)
    a, b, expected = stacked(mode, sizes)
    m, n = expected.shape[-2:]
    text = "D = acc; row(sums) = sum(acc); column(most) = max(acc); single(amax) = absmax(acc)"
    sums = np.full(n if mode == "ragged_n" else (groups, n), -1, np.float32)
    most = np.full(m if mode == "ragged_m" else (groups, m), -1, np.float32)
    amax = np.full(groups, -1, np.float32)
    for _ in range(2):
        out = np.empty_like(expected)
        grouped_matmul(a, b, offsets=ends(sizes), out=out, epilogue=text, sums=sums, most=most, amax=amax)
        begin = 0
        for group, size in enumerate(sizes):
            rows = slice(begin, begin + size)
            begin += size
            if mode != "ragged_k" and size == 0:
                continue
            d = expected[rows] if mode == "ragged_m" else expected[:, rows] if mode == "ragged_n" else expected[group]
            np.testing.assert_array_equal(sums[rows] if mode == "ragged_n" else sums[group], d.sum(0))
            np.testing.assert_array_equal(most[rows] if mode == "ragged_m" else most[group], d.max(1))
            assert amax[group] == np.abs(d).max()
    assert (amax == -1).sum() == (0 if mode == "ragged_k" else sizes.count(0)), "empty groups have no results"


def test_kernels_with_three_reductions_of_each_group_do_not_spill() -> None:
    def floats(*shape: int) -> ShapeOnly:
        return ShapeOnly(shape, "f32")

    text = "D = acc; row(sums) = sum(acc); column(most) = max(acc); single(amax) = absmax(acc)"
    reduced = EpilogueArguments(text, sums=floats(8, 1, 2048), most=floats(4096, 1), amax=floats(8, 1, 1))
    shapes = [ShapeOnly((4096, 512), "bf16"), ShapeOnly((8, 512, 2048), "bf16"), ShapeOnly((4096, 2048), "bf16")]
    args = GroupedGemmArguments(*shapes, epilogue=reduced, offsets=ShapeOnly((8,), "s32"))
    kernel = tilewright.find_kernels(args, target="sm_90a")[0]
    assert kernel.name.startswith("sm90_gemm")
    assert not kernel.compile(args).spill_bytes, kernel.name


def test_expected_sizes_choose_the_first_kernel_and_change_no_result(device: str) -> None:
    """Of 64 groups of 4096 rows each has few: a tile of 256 rows would be nearly empty."""
    shapes = [ShapeOnly([64, 4096, 512], "f16"), ShapeOnly([64, 512, 256], "f16"), ShapeOnly([64, 4096, 256], "f16")]
    counts = ShapeOnly([64], "s32")

    def rows_of(**expected: Any) -> int:
        args = GroupedGemmArguments(*shapes, counts=counts, **expected)
        found = tilewright.find_kernels(args)
        return int(found[0].metadata.design.tile_shape[0])

    assert rows_of(expected_sizes=8) < rows_of()
    assert rows_of(expected_sizes=[8] * 64) < rows_of(expected_sizes=[4096] * 64)
    sizes = PATTERNS["tails"]
    a, b, expected = stacked("ragged_m", sizes, np.float16)
    for given in (3, sizes, [STACK] + [0] * (len(sizes) - 1), 10**9):
        got = grouped_matmul(a, b, offsets=ends(sizes), expected_sizes=given)
        np.testing.assert_array_equal(got[: sum(sizes)], expected[: sum(sizes)])
    with pytest.raises(InvalidArgument, match="not for lists or groups at addresses"):
        grouped_matmul([a], [b[0]], expected_sizes=3)


def test_lists_and_stacks_are_tuned_with_their_sizes(tmp_path: Any) -> None:
    sizes = PATTERNS["tails"]
    a, b, expected = stacked("ragged_m", sizes, np.float16)
    args = GroupedGemmArguments(a, b, np.empty_like(expected), offsets=ends(sizes))
    lists = GroupedGemmArguments(
        [integers(m, k) for m, _, k in SIZES], [integers(k, n) for _, n, k in SIZES],
        [np.empty((m, n), np.float32) for m, n, _ in SIZES],
    )  # fmt: skip
    for each in (args, lists):
        report = tilewright.tune(each, top=3, verify_only=True)
        assert [candidate["status"] for candidate in report["candidates"]] == ["sound"] * 3


def test_without_sizes_it_is_a_batch() -> None:
    a, b = integers(3, 16, K), integers(3, K, N)
    np.testing.assert_array_equal(grouped_matmul(a, b, alpha=2.0), 2 * (a @ b))


def test_the_result_is_allocated() -> None:
    sizes = PATTERNS["tails"]
    for mode in ("ragged_m", "ragged_n", "ragged_k"):
        a, b, expected = stacked(mode, sizes, np.float16)
        got = grouped_matmul(a, b, offsets=ends(sizes), out_dtype="float32")
        assert got.shape == expected.shape and got.dtype == np.float32
        np.testing.assert_array_equal(got[~np.isnan(expected)], expected[~np.isnan(expected)])
    a, b, _ = stacked("ragged_m", [STACK], np.int8)
    assert grouped_matmul(a, b, offsets=ends([STACK])).dtype == np.int32


def test_experts_may_lie_anywhere() -> None:
    sizes = PATTERNS["tails"]
    a, b, expected = stacked("ragged_m", sizes)
    experts = [each.copy() for each in b]
    got = grouped_matmul(a, experts, offsets=ends(sizes))
    np.testing.assert_array_equal(got[: sum(sizes)], expected[: sum(sizes)])


SIZES = [(17, 40, 24), (1, 8, 3), (33, 5, 64), (0, 8, 8), (8, 8, 0), (40, 48, 32)]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8])
@pytest.mark.parametrize("transposed", ["", "a", "b", "out", "ab"])
def test_lists_of_matrices_of_any_shapes(dtype: Any, transposed: str) -> None:
    if dtype != np.float16 and transposed not in ("", "ab"):
        pytest.skip("layouts are tested with float16")
    kind = np.int32 if dtype == np.int8 else dtype

    def placed(array: Any, is_transposed: bool) -> Any:
        """A view with a leading dimension of its own."""
        rows, columns = array.shape[::-1] if is_transposed else array.shape
        view = np.empty((rows + 1, columns + 3 + rows % 2), array.dtype)[:rows, :columns]
        view = view.T if is_transposed else view
        view[...] = array
        return view

    a, b, c, arounds, outs, expected = [], [], [], [], [], []
    for seed, (m, n, k) in enumerate(SIZES):
        x, y, z = (
            integers(m, k, dtype=dtype, seed=seed),
            integers(k, n, dtype=dtype, seed=seed + 9),
            integers(m, n, dtype=kind),
        )
        a.append(placed(x, "a" in transposed))
        b.append(placed(y, "b" in transposed))
        c.append(z.T.copy().T if transposed == "out" else z)
        around, out = guarded(*((n, m) if transposed == "out" else (m, n)), dtype=kind)
        arounds.append(around)
        outs.append(out.T if transposed == "out" else out)
        expected.append((2 * (x.astype(np.float64) @ y) + z).astype(kind))
    assert grouped_matmul(a, b, out=outs, c=c, alpha=2.0) is outs
    for around, out, wanted in zip(arounds, outs, expected, strict=True):
        assert_only_inside(around, out, wanted)
    made = grouped_matmul(a, b, c=c, alpha=2.0)
    for index in (0, 1, 2, 4, 5):
        np.testing.assert_array_equal(made[index], expected[index].astype(made[index].dtype))


def test_a_scale_for_each_matrix_of_a_list() -> None:
    a, b = [integers(m, k) for m, _, k in SIZES], [integers(k, n, seed=1) for _, n, k in SIZES]
    scale = np.arange(1, 1 + len(SIZES), dtype=np.float32)
    got = grouped_matmul(a, b, epilogue="D = relu(acc * single(scale))", scale=scale)
    for index, (x, y) in enumerate(zip(a, b, strict=True)):
        np.testing.assert_array_equal(got[index], np.maximum(x @ y * scale[index], 0))


def test_groups_at_addresses() -> None:
    """Addresses, extents and leading dimensions are arrays, as a program has them that computes them on the device."""
    a, b = [integers(m, k) for m, _, k in SIZES], [integers(k, n, seed=1) for _, n, k in SIZES]
    outs = [np.full((m, n), np.nan, np.float32) for m, n, _ in SIZES]
    extents = np.array(SIZES, np.int32)
    lds = np.array([(k, n, n, n) for _, n, k in SIZES], np.int32)
    pointers = [
        tilewright.PointerArray(np.array([each.ctypes.data for each in of], np.int64), shape, "f32", alignment=4)
        for of, shape in ((a, (40, 64)), (b, (64, 48)), (outs, (40, 48)))
    ]
    args = GroupedGemmArguments(*pointers, extents=extents, leading_dimensions=lds)
    assert (args.mode, args.groups, args.m, args.n, args.k) == ("independent", 6, 40, 48, 64)
    prepared = tilewright.prepare(args)
    prepared.run()
    for x, y, out in zip(a, b, outs, strict=True):
        np.testing.assert_array_equal(out, x @ y)
    extents[:, 0] //= 2
    for out in outs:
        out[...] = np.nan
    prepared.run()
    for (m, _, _), x, y, out in zip(SIZES, a, b, outs, strict=True):
        np.testing.assert_array_equal(out[: m // 2], (x @ y)[: m // 2])
        assert np.isnan(out[m // 2 :]).all()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"b": [integers(24, 8)]}, "a is a list of 2 matrices, but b is one of 1"),
        ({"b": [integers(24, 8), integers(23, 8)]}, "the rows of b of group 1 must be 24, got 23"),
        ({"b": [integers(24, 8), integers(8)]}, r"lists must have matrices, got shapes \(16, 24\) and \(8,\)"),
        ({"b": [integers(24, 8), integers(24, 8, dtype=np.float16)]}, r"b\[1\] is f16 on host, but b\[0\] is f32 on"),
        ({"b": [integers(24, 8), integers(8, 24).T]}, r"b\[1\] of shape \(24,8\) has strides \(1,24\): .* row-major"),
        ({"out": [np.empty((16, 8), np.float32)] * 2}, "the rows of out of group 0 must be 17, got 16"),
        ({"out": [np.empty((17, 8), np.float32)]}, "out is a list of 1 matrices, but a is one of 2"),
        ({"c": [np.empty((17, 8), np.float32)] * 2}, "the rows of c of group 1 must be 16, got 17"),
        ({"c": np.empty((17, 8), np.float32)}, "c must be a list of matrices, as a, b and out are"),
        ({"epilogue": "D = even(acc) + odd(acc)"}, "pairs columns"),
        ({"a": [], "b": []}, "a is an empty list"),
    ],
)
def test_errors_of_lists(change: dict[str, Any], match: str) -> None:
    lists = {"a": [integers(17, 24), integers(16, 24)], "b": [integers(24, 8), integers(24, 8)]}
    with pytest.raises(InvalidArgument, match=match):
        given = {**lists, **change}
        grouped_matmul(given.pop("a"), given.pop("b"), **given)


def test_experts_may_be_given_by_their_addresses() -> None:
    sizes = PATTERNS["tails"]
    a, b, expected = stacked("ragged_m", sizes)
    experts = [each.copy() for each in b]
    addresses = np.array([each.ctypes.data for each in experts], np.int64)
    pointers = tilewright.PointerArray(addresses, (K, N), "f32", alignment=4)
    around, out = guarded(*expected.shape)
    grouped_matmul(a, pointers, offsets=ends(sizes), out=out)
    assert_only_inside(around, out, expected)
    with pytest.raises(InvalidArgument, match="b is a PointerArray, of which no array can be made: pass out="):
        grouped_matmul(a, pointers, offsets=ends(sizes))


def test_epilogues_read_vectors_of_all_groups_and_of_each() -> None:
    sizes = PATTERNS["tails"]
    groups, total = len(sizes), sum(sizes)
    group_of = np.repeat(np.arange(groups), sizes)
    a, b, expected = stacked("ragged_m", sizes)
    product = expected[:total]
    shared, own = integers(N), integers(groups, N, seed=2)
    factor, scale = integers(STACK, seed=3), integers(groups, seed=4)
    for bias, added in (
        (shared, shared),
        (shared.reshape(1, N), shared),
        (own, own[group_of]),
        (own.reshape(groups, 1, N), own[group_of]),
    ):
        got = grouped_matmul(a, b, offsets=ends(sizes), epilogue="D = relu(acc + row(bias))", bias=bias)
        np.testing.assert_array_equal(got[:total], np.maximum(product + added, 0))
    for single, multiplied in (
        (scale, scale[group_of][:, None]),
        (scale.reshape(groups, 1, 1), scale[group_of][:, None]),
        (scale[:1], scale[0]),
    ):
        got = grouped_matmul(
            a,
            b,
            offsets=ends(sizes),
            epilogue="D = acc * single(scale) * column(factor)",
            scale=single,
            factor=factor,
        )
        np.testing.assert_array_equal(got[:total], product * multiplied * factor[:total, None])


def test_epilogues_of_stacked_columns() -> None:
    sizes = PATTERNS["tails"]
    groups, total = len(sizes), sum(sizes)
    group_of = np.repeat(np.arange(groups), sizes)
    a, b, expected = stacked("ragged_n", sizes)
    own, shared, along = integers(groups, N), integers(N, seed=1), integers(STACK, seed=2)
    for bias, added in ((own, own[group_of].T), (shared, shared[:, None])):
        got = grouped_matmul(
            a, b, offsets=ends(sizes), epilogue="D = (acc + column(bias)) * row(along)", bias=bias, along=along
        )
        np.testing.assert_array_equal(got[:, :total], (expected[:, :total] + added) * along[:total])


def test_a_vector_with_as_many_elements_as_groups() -> None:
    """A column of (m, 1) stays one column for all groups where there are as many groups as rows."""
    sizes, groups = [STACK // 8] * 8, 8
    a, b = integers(8, STACK, dtype=np.float16), integers(STACK, N, dtype=np.float16)
    column = np.arange(8, dtype=np.float32)[:, None]
    got = grouped_matmul(a, b, offsets=ends(sizes), epilogue="D = acc * column(x)", x=column, out_dtype="float32")
    for group in range(groups):
        rows = slice(group * STACK // 8, (group + 1) * STACK // 8)
        np.testing.assert_array_equal(got[group], (a[:, rows].astype(np.float64) @ b[rows]) * column)


def test_traced_functions_see_a_batch() -> None:
    sizes = PATTERNS["tails"]
    groups, total = len(sizes), sum(sizes)
    group_of = np.repeat(np.arange(groups), sizes)
    a, b, expected = stacked("ragged_m", sizes)

    def epilogue(accum: Any, bias: Any, scale: Any, shift: float) -> Any:
        before = accum * scale + bias
        return np.maximum(before, 0.0) + shift, before

    bias, scale = integers(groups, 1, N), integers(groups, 1, 1)
    before = np.full((STACK, N), np.nan, np.float32)
    got = grouped_matmul(
        a, b, offsets=ends(sizes), epilogue=epilogue, bias=bias, scale=scale, shift=2.0, before=before
    )
    plain = expected[:total] * scale[group_of, 0] + bias[group_of, 0]
    np.testing.assert_array_equal(before[:total], plain)
    np.testing.assert_array_equal(got[:total], np.maximum(plain, 0) + 2)
    assert np.isnan(before[total:]).all()


def test_gated_pairs_of_columns() -> None:
    sizes = PATTERNS["tails"]
    a, b, expected = stacked("ragged_m", sizes)
    got = grouped_matmul(a, b, offsets=ends(sizes), epilogue="D = even(acc) + 2 * odd(acc)")
    total = sum(sizes)
    assert got.shape == (STACK, N // 2)
    np.testing.assert_array_equal(got[:total], expected[:total, 0::2] + 2 * expected[:total, 1::2])


def test_c_is_stacked_as_the_result_is() -> None:
    for mode in ("ragged_m", "ragged_n", "ragged_k"):
        sizes = PATTERNS["empty"]
        a, b, expected = stacked(mode, sizes)
        c = integers(*expected.shape, seed=9)
        around, out = guarded(*expected.shape)
        grouped_matmul(a, b, offsets=ends(sizes), c=c, alpha=2.0, beta=3.0, out=out)
        assert_only_inside(around, out, 2 * expected + 3 * c)


def test_gradients_accumulate_in_place() -> None:
    sizes = PATTERNS["zipf"]
    a, b, expected = stacked("ragged_k", sizes)
    total = integers(*expected.shape, seed=9)
    before = total.copy()
    grouped_matmul(a, b, offsets=ends(sizes), c=total, out=total)
    np.testing.assert_array_equal(total, before + expected)


def test_sizes_may_change_between_runs_of_a_prepared_call() -> None:
    """As in replays of a captured graph; the array of offsets is the same."""
    a, b, _ = stacked("ragged_m", [0] * 5, np.float16)
    offsets, out = np.zeros(5, np.int32), np.empty((STACK, N), np.float16)
    args = GroupedGemmArguments(a, b, out, offsets=offsets)
    prepared = tilewright.prepare(args)
    for sizes in ([65, 0, 1, 3, 3], [0] * 5, [1, 2, 3, 4, 60], [0, 40, 0, 0, 32]):
        offsets[:] = ends(sizes)
        out[...] = np.nan
        prepared.run()
        assert args.verify(), args.verify().reason
        assert np.isnan(out[sum(sizes) :]).all() and not np.isnan(out[: sum(sizes)]).any()


def test_discovery(device: str, tmp_path: Any) -> None:
    sizes = PATTERNS["tails"]
    a, b, expected = stacked("ragged_m", sizes, np.float16)
    out = np.full(expected.shape, np.nan, np.float16)
    args = GroupedGemmArguments(a, b, out, offsets=ends(sizes))
    found = tilewright.find_kernels(args)
    assert len(found) > 3 and found.estimate_us(0) <= found.estimate_us(len(found) - 1)
    families = {kernel.metadata.family for kernel in found}
    assert families == {"simt_gemm", "sm80_gemm"} | ({"sm90_gemm"} if device != "emulator:sm_80" else set())
    for family in families:
        kernel = tilewright.find_kernels(args, lambda metadata, family=family: metadata.family == family)[0]
        assert "ragged_m" in kernel.name and kernel.supports(args)
        path = tmp_path / f"{family}.artifact"
        kernel.compile(args).save(path)
        out[...] = np.nan
        kernel.run(args, tilewright.load_artifact(path))
        np.testing.assert_array_equal(out, expected)
        same = tilewright.make_kernel(args, kernel.metadata.design)
        out[...] = np.nan
        tilewright.prepare(args, same).run()
        np.testing.assert_array_equal(out, expected)
    dense = tilewright.GemmArguments(a, b[0], out)
    assert "groups" in found[0].supports(dense).reason
    assert "groups" in tilewright.find_kernels(dense)[0].supports(args).reason


def test_every_kernel_found_is_correct() -> None:
    sizes = PATTERNS["tails"]
    a, b, expected = stacked("ragged_m", sizes, np.float16)
    out = np.empty(expected.shape, np.float16)
    args = GroupedGemmArguments(a, b, out, offsets=ends(sizes))
    kernels = tilewright.find_kernels(args)[:8]
    tilewright.compile_kernels(kernels)
    for kernel in kernels:
        out[...] = np.nan
        kernel.run(args)
        np.testing.assert_array_equal(out, expected, kernel.name)


def test_refusals_are_explained(device: str) -> None:
    a, b, _ = stacked("ragged_k", [STACK], np.float16)  # A is contiguous along the stacked k
    args = GroupedGemmArguments(a, b, np.empty((1, K, N), np.float16), offsets=ends([STACK]))
    reasons = {each.name: each.reason for each in tilewright.explain(args).refused}
    assert any("sm80_gemm" in name and " registers a thread, of 255" in reason for name, reason in reasons.items())
    if device != "emulator:sm_80":
        why = "groups that differ in k must be loaded by TMA, which A is not: k may not be its contiguous mode"
        assert any("sm90_gemm" in name and why in reason for name, reason in reasons.items())


def test_shapes_are_enough_to_find_and_compile() -> None:
    shapes = [ShapeOnly([64, K], "f16"), ShapeOnly([4, K, N], "f16"), ShapeOnly([64, N], "f16")]
    args = GroupedGemmArguments(*shapes, offsets=ShapeOnly([4], "s32"))
    assert tilewright.find_kernels(args)[0].compile(args).cubin


def test_arguments_have_attributes() -> None:
    a, b, _ = stacked("ragged_m", [40, 30])
    args = GroupedGemmArguments(a, b, np.empty((STACK, N), np.float32), offsets=ends([40, 30]), alpha=2.0)
    assert (args.mode, args.groups, args.m, args.n, args.k) == ("ragged_m", 2, STACK, N, K)
    assert (args.operation, args.alpha, args.beta, args.math) == ("grouped_gemm", 2.0, 0.0, "multiply_add")
    assert args.A.shape == (STACK, K) and args.B.shape == (2, K, N) and args.out.shape == (STACK, N)
    assert args.ends.shape == (2,) and args.ends.dtype == tilewright.DType.s32
    assert list(args.operands) == ["A", "B", "C", "D", "offsets"]
    assert repr(args).startswith("GroupedGemmArguments(A=f32(72,24) on host, B=f32(2,24,40) on host, ")


def test_promises() -> None:
    sizes = PATTERNS["tails"]
    a, b, expected = stacked("ragged_m", sizes, np.float16)
    got = grouped_matmul(a, b, offsets=ends(sizes), deterministic=True, batch_invariant=True)
    np.testing.assert_array_equal(got[: sum(sizes)], expected[: sum(sizes)])


A, B, _ = stacked("ragged_m", [12, 12, 12, 12])
OFFSETS = ends([12, 12, 12, 12])


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"offsets": [12, 24, 36, 48.5]}, r"offsets must be an array of int32 where a is, got \[12, 24, 36, 48.5\]"),
        ({"offsets": [12, 24, 36, 2**40]}, "offsets must be integers of 32 bits, got 1099511627776"),
        ({"offsets": np.array([12, 24, 36, -(2**40)])}, "offsets must be integers of 32 bits, got -1099511627776"),
        ({"offsets": [True, True, True, True]}, "offsets must be an array of int32 where a is"),
        ({"offsets": [12, 11, 36, 48]}, "offsets must not decrease, got 11 after 12 at index 1"),
        ({"offsets": OFFSETS.astype(np.float32)}, "offsets must be an array of int32, got f32"),
        ({"offsets": OFFSETS.reshape(2, 2)}, r"offsets must have one mode, with one number .*, got shape \(2,2\)"),
        ({"offsets": np.repeat(OFFSETS, 2)[::2]}, "'offsets' must be contiguous, but its stride is 2"),
        ({"offsets": OFFSETS[:3]}, "b has a batch of 4, but there are 3 groups"),
        ({"offsets": np.array([12, 11, 36, 48], np.int32)}, "offsets must not decrease, got 11 after 12 at index 1"),
        ({"offsets": np.array([12, 24, 36, 73], np.int32)}, r"offsets\[3\] must be from 0 to m = 72, got 73"),
        ({"offsets": np.array([-1, 24, 36, 48], np.int32)}, r"offsets\[0\] must be from 0 to m = 72, got -1"),
        ({"offsets": None}, "a and b of ranks 2 and 3 need offsets"),
        ({"counts": OFFSETS}, "one of offsets .*, counts .* and extents .* must be given, unless .* are lists of matrices; got 2"),
        ({"offsets": None, "counts": OFFSETS}, "counts are for batches of rank 3, got a and b of ranks 2 and 3"),
        ({"a": B}, "a and b must have ranks 2 and 3 .*, got ranks 3 and 3"),
        ({"a": A[0]}, r"a must have rank 2 or 3, got shape \(24,\)"),
        ({"b": B[:, :20]}, r"columns of a and rows of b differ: \(72,24\) and \(20,40\)"),
        ({"out": np.empty((71, N), np.float32)}, r"out must be \(72,40\), got \(71,40\)"),
        ({"out": np.empty((4, STACK, N), np.float32)}, "out is a batch of 4, but in ragged_m it is one matrix"),
        ({"out": A}, "out must be"),
        ({"bias": B}, r"grouped_matmul\(\) has no argument bias"),
        ({"epilogue": "D = acc + row(x)", "x": np.empty((3, N), np.float32)}, r"'x' must be \(1,40\), got \(3,40\)"),
        ({"epilogue": "D = acc; column(x) = sum(acc)", "x": np.empty(7, np.float32)}, r"'x' must be \(72,1\), got \(7,1\)"),
        ({"expected_sizes": [1, 2]}, "expected_sizes must be the mean size, or one for each of 4 groups, got 2"),
        ({"expected_sizes": -1}, "a size in expected_sizes .*-1"),
        ({"c": A}, r"shapes of c and out differ: \(72,24\) and \(72,40\)"),
    ],
)
def test_errors_name_what_is_wrong(change: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidArgument, match=match):
        given = {"a": A, "b": B, "offsets": OFFSETS, **change}
        grouped_matmul(given.pop("a"), given.pop("b"), **given)


@pytest.mark.parametrize("kind", [list, tuple, np.int64, np.uint8, np.uint64])
def test_other_integers_are_converted_in_host_memory(kind: Any) -> None:
    def converted(values: Any) -> Any:
        return kind(values) if kind in (list, tuple) else np.array(values, kind)

    np.testing.assert_array_equal(grouped_matmul(A, B, offsets=converted(OFFSETS))[:48], grouped_matmul(A, B, offsets=OFFSETS)[:48])
    a = integers(4, 16, K)
    got = grouped_matmul(a, B, counts=converted([3, 16, 0, 1]))
    np.testing.assert_array_equal(got[1], a[1] @ B[1])
    if kind is not np.uint8 and kind is not np.uint64:  # which the constructor refuses as types that no array has
        with pytest.raises(InvalidArgument, match="offsets must be an array of int32 where A is"):
            GroupedGemmArguments(A, B, np.empty((STACK, N), np.float32), offsets=converted(OFFSETS))


def test_lists_of_offsets_may_be_empty_or_have_integers_of_numpy() -> None:
    assert grouped_matmul(A, B[:0], offsets=[]).shape == (STACK, N)
    got = grouped_matmul(A, B[:2], offsets=[np.int64(5), np.int32(72)])
    np.testing.assert_array_equal(got[:5], A[:5] @ B[0])


def test_errors_of_counts() -> None:
    a, b = integers(2, 16, K), integers(2, K, N)
    with pytest.raises(InvalidArgument, match=r"counts\[1\] must be from 0 to m = 16, got 17"):
        grouped_matmul(a, b, counts=np.array([3, 17], np.int32))
    out, counts = np.empty((2, 16, N), np.float32), np.array([3, 1], np.int32)
    with pytest.raises(InvalidArgument, match="mode ragged_m needs offsets, got counts"):
        GroupedGemmArguments(a, b, out, counts=counts, mode="ragged_m")
    with pytest.raises(InvalidArgument, match="mode must be ragged_m, .* got 'rows'"):
        GroupedGemmArguments(a, b, out, counts=counts, mode="rows")
    with pytest.raises(InvalidArgument, match="are lists of matrices; got none"):
        GroupedGemmArguments(a, b, out)


def test_epilogue_arguments_are_reused() -> None:
    bound = EpilogueArguments("D = acc + row(bias)", bias=np.ones(N, np.float32))
    for sizes in (PATTERNS["tails"], PATTERNS["zipf"]):
        a, b, expected = stacked("ragged_m", sizes)
        got = grouped_matmul(a, b, offsets=ends(sizes), epilogue=bound)
        np.testing.assert_array_equal(got[: sum(sizes)], expected[: sum(sizes)] + 1)
