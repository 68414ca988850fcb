"""Instructions of programs, each through both lowerings, whose results are equal bits, against NumPy."""

from collections.abc import Callable

import numpy as np
import pytest
from both_lowerings import computed

from tilewright import arch
from tilewright import program as tp


@pytest.fixture(autouse=True)
def _emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_DEVICE", "emulator:sm_90a")


@pytest.mark.parametrize("separator", ["\n", " "])
def test_outputs_of_several_instructions_in_one_text_do_not_take_the_registers_of_inputs(separator: str) -> None:
    def author() -> tp.Program:
        k = tp.Kernel("sequence", target="sm_80", threads=32)
        out = k.address("out", 8)
        a, b = k.cell(tp.to_b32(k, k.thread)), k.cell(tp.to_b32(k, 0))
        with k.loop(5):
            text = f"add.u32 $0, $2, 100;{separator}add.u32 $1, $2, 1;"  # $2 is read after $0 was written
            results = k.instruction(text, tp.output("b32"), tp.output("b32"), a.get(), effect="pure")
            a.set(results[0])
            (value,) = k.instruction(
                f"add.u32 $0, $0, 1;{separator}add.u32 $0, $0, $1;", tp.update(b.get()), results[1], effect="pure"
            )
            b.set(value)
        tp.store_global(k, out, k.thread * 8, [a.get(), b.get()])
        return k.build()

    thread = np.arange(32)
    expected = np.stack([thread + 500, sum(thread + 100 * i + 2 for i in range(5))], axis=1)
    assert (computed(author, out=np.zeros((32, 2), np.int32)) == expected).all()


SIZE = 256
REGISTERS = {"int32": "b32", "uint32": "b32", "int64": "b64", "uint64": "b64", "float32": "f32", "float64": "f64"}


def elementwise(
    apply: Callable[..., tp.Value], arrays: list[np.ndarray], result: type[np.generic], target: str = "sm_80"
) -> np.ndarray:
    """apply(k, element of each array) for all elements; a Number that it returns is stored as a b32."""

    def author() -> tp.Program:
        k = tp.Kernel("elementwise", target=target, threads=128)
        k.set_grid(SIZE // 128)
        at = k.block() * 128 + k.thread
        values = []
        for i, array in enumerate(arrays):
            register = REGISTERS.get(array.dtype.name, "b16")
            values.append(tp.load_global(k, k.address(f"a{i}", 8), at * array.itemsize, register))
        value = apply(k, *values)
        if isinstance(value, tp.Number):
            value = tp.to_b32(k, value)
        tp.store_global(k, k.address("out", 8), at * np.dtype(result).itemsize, [value])
        return k.build()

    given = {f"a{i}": array for i, array in enumerate(arrays)}
    return computed(author, **given, out=np.zeros(SIZE, result))


def integers(dtype: type[np.integer], seed: int) -> np.ndarray:
    """All bits are drawn, of few of them for some elements; zeros, ones and the extreme values are among them."""
    random = np.random.default_rng(seed)
    info = np.iinfo(dtype)
    values = random.integers(info.min, info.max, SIZE, dtype=dtype, endpoint=True)
    values[: SIZE // 2] >>= random.integers(0, info.bits, SIZE // 2).astype(dtype)
    values[:5] = [0, 1, info.max, info.min, dtype(-1) if info.min else 2]
    random.shuffle(values)
    return values


def bits_of(value: int, width: int) -> str:
    return f"{value & ((1 << width) - 1):0{width}b}"


SIGNED, UNSIGNED = (np.int32, np.int64), (np.uint32, np.uint64)


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED])
def test_integers_of_32_and_64_bits(dtype: type[np.integer]) -> None:
    a, b = integers(dtype, 0), integers(dtype, 1)
    b[7] = a[7]
    is_signed = np.iinfo(dtype).min < 0
    width = np.iinfo(dtype).bits
    for function, expected in ((tp.add, a + b), (tp.subtract, a - b), (tp.multiply, a * b)):
        assert (elementwise(function, [a, b], dtype) == expected).all(), function.__name__
    for function, expected in (
        (tp.minimum, np.minimum(a, b)),
        (tp.maximum, np.maximum(a, b)),
        (tp.multiply_high, [dtype((int(x) * int(y)) >> width) for x, y in zip(a, b, strict=True)]),
    ):
        result = elementwise(lambda k, x, y, f=function: f(k, x, y, is_signed=is_signed), [a, b], dtype)
        assert (result == expected).all(), function.__name__
    for function, expected in ((tp.less, a < b), (tp.less_equal, a <= b)):
        result = elementwise(lambda k, x, y, f=function: f(k, x, y, is_signed=is_signed), [a, b], np.int32)
        assert (result == expected).all(), function.__name__
    assert (elementwise(tp.equal, [a, b], np.int32) == (a == b)).all()
    if is_signed:
        assert (elementwise(tp.absolute, [a], dtype) == np.abs(a)).all()
        assert (elementwise(lambda k, x: tp.maximum(k, x, -5), [a], dtype) == np.maximum(a, -5)).all()


@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED])
def test_bits_of_32_and_64_bits(dtype: type[np.integer]) -> None:
    a, b = integers(dtype, 2), integers(dtype, 3)
    is_signed, width = np.iinfo(dtype).min < 0, np.iinfo(dtype).bits
    for function, expected in ((tp.bitwise_and, a & b), (tp.bitwise_or, a | b), (tp.bitwise_xor, a ^ b)):
        assert (elementwise(function, [a, b], dtype) == expected).all(), function.__name__
    assert (elementwise(tp.bitwise_not, [a], dtype) == ~a).all()
    texts = [bits_of(int(x), width) for x in a]
    assert (elementwise(tp.population_count, [a], np.int32) == [text.count("1") for text in texts]).all()
    assert (elementwise(tp.leading_zeros, [a], np.int32) == [len(text.split("1")[0]) for text in texts]).all()
    assert [bits_of(int(x), width) for x in elementwise(tp.reverse_bits, [a], dtype)] == [text[::-1] for text in texts]
    counts = np.arange(SIZE, dtype=np.int32) % (width + 3)  # counts above the width shift all bits out
    left = elementwise(tp.shift_left, [a, counts], dtype)
    right = elementwise(lambda k, x, y: tp.shift_right(k, x, y, is_signed=is_signed), [a, counts], dtype)
    for x, count, of_left, of_right in zip(a, counts, left, right, strict=True):
        assert bits_of(int(of_left), width) == bits_of(int(x) << int(count), width)
        assert int(of_right) == int(x) >> int(count)
    assert (elementwise(lambda k, x: tp.shift_left(k, x, 3), [a], dtype) == a << dtype(3)).all()
    for first, count in ((0, 1), (3, 7), (0, width), (width - 4, 4)):
        result = elementwise(lambda k, x, f=first, c=count: tp.extract_bits(k, x, f, c, is_signed), [a], dtype)
        expected = [(int(x) >> first) & ((1 << count) - 1) for x in a]
        if is_signed:
            expected = [x - (1 << count) if x >> (count - 1) else x for x in expected]
        assert (result == np.array(expected, dtype)).all(), (first, count)


def test_bytes_of_words() -> None:
    a, b, c = (integers(np.int32, seed) for seed in (4, 5, 6))
    of_a, of_b = (x.view(np.int8).reshape(-1, 4).astype(np.int32) for x in (a, b))
    assert (elementwise(tp.dot_bytes, [a, b, c], np.int32) == c + (of_a * of_b).sum(axis=1, dtype=np.int32)).all()
    of_a, of_b = (x.view(np.uint8).reshape(-1, 4).astype(np.uint32) for x in (a, b))
    result = elementwise(lambda k, x, y, z: tp.dot_bytes(k, x, y, z, is_signed=False), [a, b, c], np.uint32)
    assert (result == c.view(np.uint32) + (of_a * of_b).sum(axis=1, dtype=np.uint32)).all()
    result = elementwise(lambda k, x, y: tp.permute_bytes(k, x, y, 0x7250), [a, b], np.uint32)
    chosen = [of_a[:, 0], of_b[:, 1], of_a[:, 2], of_b[:, 3]]
    assert (result == sum(byte.astype(np.uint32) << (8 * i) for i, byte in enumerate(chosen))).all()


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.float32, np.int32, np.float16])
def test_shuffles_move_registers_of_all_types(dtype: type[np.generic]) -> None:
    a = np.random.default_rng(7).integers(0, 256, (SIZE, np.dtype(dtype).itemsize)).astype(np.uint8)
    lanes = np.arange(SIZE) % 32
    for function, source in (
        (lambda k, x: tp.shuffle_xor(k, x, 5), lanes ^ 5),
        (lambda k, x: tp.shuffle_up(k, x, 3), np.where(lanes < 3, lanes, lanes - 3)),
        (lambda k, x: tp.shuffle_down(k, x, 4), np.where(lanes > 27, lanes, lanes + 4)),
        (lambda k, x: tp.shuffle(k, x, k.thread % 7), np.arange(SIZE) % 128 % 7),
    ):
        result = elementwise(function, [a.view(dtype).reshape(-1)], dtype)
        assert (result.view(np.uint8).reshape(a.shape) == a[np.arange(SIZE) // 32 * 32 + source]).all()


def floats() -> np.ndarray:
    random = np.random.default_rng(8)
    values = (random.standard_normal(SIZE) * 2.0 ** random.integers(-18, 18, SIZE)).astype(np.float32)
    values[:12] = [0, -0.0, np.inf, -np.inf, np.nan, 448, 449, -1e6, 0.5, 1.5, 2.5, 127.5]
    return values


@pytest.mark.parametrize("name", ["e4m3", "e5m2"])
def test_conversions_of_fp8(name: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}[name]
    a, most = floats(), float(ml_dtypes.finfo(dtype).max)
    expected = np.clip(a, -most, most).astype(dtype)  # keeps NaNs
    is_number = ~np.isnan(a)
    bytes_of = elementwise(lambda k, x: tp.from_f32(k, name, x), [a], np.uint32, "sm_89")
    assert (bytes_of[is_number] == expected.view(np.uint8)[is_number]).all() and (bytes_of < 256).all()
    pairs = elementwise(lambda k, x: tp.pack(k, name, x, tp.multiply(k, x, 2.0)), [a], np.uint16, "sm_89")
    doubled = np.clip(a * np.float32(2), -most, most).astype(dtype)
    both = expected.view(np.uint8).astype(np.uint16) | doubled.view(np.uint8).astype(np.uint16) << 8
    assert (pairs[is_number] == both[is_number]).all()
    every = np.arange(SIZE, dtype=np.uint32) | 0x5A00  # only the low byte is converted
    wide = every.astype(np.uint8).view(dtype).astype(np.float32)
    result = elementwise(lambda k, x: tp.to_f32(k, x, name), [every], np.float32, "sm_89")
    assert np.array_equal(result, wide, equal_nan=True)
    for i in range(2):
        two = (np.arange(SIZE) << (8 * i)).astype(np.uint16)
        result = elementwise(lambda k, x, i=i: tp.unpack(k, name, x)[i], [two], np.float32, "sm_89")
        assert np.array_equal(result, wide, equal_nan=True)
    with pytest.raises(ValueError, match="sm_89"):
        elementwise(lambda k, x: tp.from_f32(k, name, x), [a], np.uint32, "sm_80")


def test_conversions_of_small_integers_and_f64() -> None:
    a = floats()
    a[4] = 3
    for name, dtype in (("s8", np.int8), ("u8", np.uint8)):
        info = np.iinfo(dtype)
        result = elementwise(lambda k, x, n=name: tp.from_f32(k, n, x), [a], np.int32)
        assert (result == np.clip(np.rint(a), info.min, info.max)).all()
        every = np.arange(SIZE, dtype=np.uint32) | 0xA500
        result = elementwise(lambda k, x, n=name: tp.to_f32(k, x, n), [every], np.float32)
        assert (result == every.astype(np.uint8).view(dtype)).all()
    assert (elementwise(lambda k, x: tp.from_f32(k, "f64", x), [a], np.float64) == a).all()
    wide = a.astype(np.float64) * (1 + 2.0**-30)
    assert (elementwise(lambda k, x: tp.to_f32(k, x, "f64"), [wide], np.float32) == wide.astype(np.float32)).all()


def test_mistakes_of_operands_are_refused_in_the_words_of_the_author() -> None:
    k = tp.Kernel("mistakes", target="sm_90a", threads=32)
    of_f32, of_f64, of_b32 = tp.constant(k, 1), tp.constant_f64(k, 1), tp.to_b32(k, 1)
    for match, call in (
        (r"add\(\) takes operands of one type, got f32 and f64", lambda: tp.add(k, of_f32, of_f64)),
        (r"add\(\) takes operands of one type, got f32 and b32", lambda: tp.add(k, of_f32, of_b32)),
        (r"equal\(\) takes operands of one type, got b32 and f32", lambda: tp.equal(k, of_b32, of_f32)),
        (r"bitwise_and\(\) takes b16, b32 or b64 registers, got f32", lambda: tp.bitwise_and(k, of_f32, of_f32)),
        (r"divide\(\) takes f32 or f64 registers, got b32", lambda: tp.divide(k, of_b32, 2)),
        (r"less\(\) is unsigned for integers only, got f32", lambda: tp.less(k, of_f32, 2.0, is_signed=False)),
        (r"the number of bits .* from bit 30 on must be from 1 to 2, got 3", lambda: tp.extract_bits(k, of_b32, 30, 3)),
        (r"the distance of shift_left\(\) takes one b32 register, got 1 f32", lambda: tp.shift_left(k, of_b32, of_f32)),
        (r"a shuffle moves one register, got 2 f32", lambda: tp.shuffle_xor(k, tp.join_registers(k, [of_f32] * 2), 1)),
        (r"pack\(\) has no s32", lambda: tp.pack(k, "s32", of_f32, of_f32)),
    ):
        with pytest.raises(ValueError, match=match):
            call()
    with pytest.raises(TypeError, match="b must be an integer beside a b32, got 0.5"):
        tp.add(k, of_b32, 0.5)


NAMES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "tf32": "float32",
    "f64": "float64",
    "s8": "int8",
    "u8": "uint8",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
}
ATOMS = [
    (16, 8, 8, "f16", "f32"),
    (16, 8, 16, "f16", "f32"),
    (16, 8, 16, "f16", "f16"),
    (16, 8, 8, "f16", "f16"),
    (16, 8, 8, "bf16", "f32"),
    (16, 8, 4, "tf32", "f32"),
    (16, 8, 8, "tf32", "f32"),
    (8, 8, 16, "s8", "s32"),
    (16, 8, 16, "u8", "s32"),
    (16, 8, 32, "s8", "s32"),
    (16, 8, 32, "e4m3", "f32"),
    (16, 8, 32, "e5m2", "f32"),
    (8, 8, 4, "f64", "f64"),
    (16, 8, 4, "f64", "f64"),
    (16, 8, 8, "f64", "f64"),
    (16, 8, 16, "f64", "f64"),
]


@pytest.mark.parametrize("major", ["k", "mn"])
@pytest.mark.parametrize("atom", ATOMS, ids=lambda atom: "m{}n{}k{}_{}_{}".format(*atom))
def test_products_by_mma_of_all_shapes_and_majors(atom: tuple[int, int, int, str, str], major: str) -> None:
    """d = a x b' of one tile, which 96 threads copy that do not divide it."""
    m, n, k_of_atom, element, accumulator = atom
    rows, depth = 64, 64
    ml_dtypes = pytest.importorskip("ml_dtypes")
    numpy_name = NAMES[element]
    dtype = np.dtype(getattr(ml_dtypes, numpy_name, None) or numpy_name)
    row_major = major == "k"

    def author() -> tp.Program:
        k = tp.Kernel("products", target="sm_90a", threads=96)
        tiles, memory = [], []
        for name, extent in (("a", rows), ("b", 64)):
            tiles.append(tp.smem_tile(major, element, extent, depth))
            strides = [depth, 1] if row_major else [1, extent]
            load = tp.TiledCopyBuilder(
                k, "cp_async", tp.Tensor(name, element, [extent, depth], strides), tiles[-1], threads=96
            )
            memory.append(k.shared(tiles[-1].bytes, 1024).address)
            load.copy([0, 0], memory[-1], thread=k.thread)
        tp.cp_async_commit(k)
        tp.cp_async_wait(k, 0)
        tp.synchronize(k)
        with k.If(k.thread < 64):
            warp = tp.assume(k, tp.broadcast(k, k.thread // 32), 2)
            mma = tp.TiledMmaBuilder(
                k,
                arch.mma_atom(m, n, k_of_atom, element, element, accumulator),
                *tiles,
                warps=(2, 1),
                a_major=major,
                b_major=major,
            )
            sums = mma.zeros()
            mma.fma(sums, *memory, warp)
            mma.transform(sums, warp, lambda pair: (pair.low, pair.high))
            size = 8 if accumulator == "f64" else 4
            out = k.address("out", 16)
            for pair in mma.pairs(sums, warp):
                tp.store_global(k, out, (pair.row * 64 + pair.column) * size, [pair.low, pair.high])
        return k.build()

    random = np.random.default_rng(9)
    a, b = (random.integers(0 if element == "u8" else -3, 4, (extent, depth)).astype(dtype) for extent in (rows, 64))
    given = [x if row_major else np.ascontiguousarray(x.T) for x in (a, b)]
    result = {"f64": np.float64, "s32": np.int32}.get(accumulator, np.float32)
    out = computed(author, a=given[0], b=given[1], out=np.zeros((rows, 64), result))
    assert (out == a.astype(np.float64) @ b.astype(np.float64).T).all()


def test_accumulators_of_f16_by_wgmma() -> None:
    def author() -> tp.Program:
        k = tp.Kernel("halves", target="sm_90a", threads=128)
        tile = tp.smem_tile("k", "f16", 64, 64)
        memory = [k.shared(tile.bytes, 1024).address for _ in range(2)]
        for name, to in zip("ab", memory, strict=True):
            load = tp.TiledCopyBuilder(k, "cp_async", tp.Tensor(name, "f16", [64, 64], [64, 1]), tile, threads=128)
            load.copy([0, 0], to, thread=k.thread)
        tp.cp_async_commit(k)
        tp.cp_async_wait(k, 0)
        tp.fence_proxy_async(k)
        tp.synchronize(k)
        mma = tp.TiledMmaBuilder(k, arch.wgmma_atom("f16", "f16", "f16"), tile, tile, n=64)
        warp, sums, out = tp.broadcast(k, k.thread // 32), mma.zeros(), k.address("out", 8)
        mma.fma(sums, *memory, warp)
        tp.wait_for_wgmma(k, 0, sums.cells)
        mma.transform(sums, warp, lambda pair: (pair.low, tp.multiply(k, pair.high, 2.0)))
        for pair in mma.pairs(sums, warp):
            tp.store_global(k, out, (pair.row * 64 + pair.column) * 4, [pair.low, pair.high])
        return k.build()

    random = np.random.default_rng(10)
    a, b = (random.integers(-3, 4, (64, 64)).astype(np.float16) for _ in range(2))
    expected = a.astype(np.float32) @ b.astype(np.float32).T * np.array([1, 2] * 32)
    assert (computed(author, a=a, b=b, out=np.zeros((64, 64), np.float32)) == expected).all()
