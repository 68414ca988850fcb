"""tilewright.program: what the builder and a run refuse, and results that both lowerings must have."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewright import InvalidArgument, arch
from tilewright import program as tp
from tilewright.errors import CompileError, EmulationError
from tilewright.layout import ComposedLayout, Layout

LANGUAGES = ("cuda", "mlir")


@pytest.fixture(autouse=True)
def _emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_DEVICE", "emulator:sm_90a")


def refused(text: str, error: type[Exception] = InvalidArgument) -> Any:
    return pytest.raises(error, match=text)


def results(program: tp.Program, out: np.ndarray, **arguments: Any) -> list[np.ndarray]:
    """The array `out` of the program after a run of each lowering."""
    found = []
    for language in LANGUAGES:
        program.language = language
        own = out.copy()
        program.run(out=own, **arguments)
        found.append(own)
    return found


def small(*shape: int, dtype: Any = np.float16, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)


def flag(k: tp.Kernel, condition: tp.Number) -> tp.Value:
    """1 where the condition holds, else 0, by a branch."""
    cell = k.cell(0, 2)
    with k.If(condition):
        cell.set(1)
    return tp.to_b32(k, cell.get())


def test_negative_constants_in_selections_relations_and_offsets() -> None:
    k = tp.Kernel("negative", target="sm_80", threads=32)
    q, x, out, t = k.launch("q", upper=100), k.address("x", 4), k.address("out", 4), k.thread
    end = tp.global_address(k, x, 400)
    values = [
        flag(k, tp.select(t < 16, q, -1) < 0),
        tp.load_global(k, end, tp.select(t < 16, 0 - t - 1, -50) * 4, "b32"),
        tp.load_global(k, end, -4 - t * 4, "b32"),
        flag(k, tp.select(t < 16, q, -2) > 0),
        tp.load_global(k, end, (t - 60) * 4, "b32"),
        flag(k, tp.minimum(t, q - 20) == -13),
    ]
    for i, value in enumerate(values):
        tp.store_global(k, out, (t * len(values) + i) * 4, [value])
    lane = np.arange(32)
    expected = [lane >= 16, np.where(lane < 16, 99 - lane, 50), 99 - lane, lane < 16, lane + 40, lane >= 0]
    for got in results(k.build(), np.zeros((32, 6), np.int32), q=7, x=np.arange(100, dtype=np.int32)):
        assert (got == np.stack(expected, 1)).all()


def test_conditions_are_numbers_that_are_not_0() -> None:
    k = tp.Kernel("conditions", target="sm_80", threads=32)
    n, out, t = k.launch("n"), k.address("out", 4), k.thread
    values = [
        flag(k, tp.both(t % 4, t < n)),
        tp.to_b32(k, tp.select(t - 100, 1, 0)),
        flag(k, t - 100),
        tp.choose(k, t - 3, tp.to_b32(k, 1), tp.to_b32(k, 0)),
        tp.choose(k, (t - 3) * 2**32, tp.to_b32(k, 1), tp.to_b32(k, 0)),  # whose low 32 bits are 0
        flag(k, tp.negation(tp.both(t - 3, t - 3))),
    ]
    for i, value in enumerate(values):
        tp.store_global(k, out, (t * len(values) + i) * 4, [value])
    lane = np.arange(32)
    expected = [lane % 4 != 0, lane >= 0, lane >= 0, lane != 3, lane != 3, lane == 3]
    for got in results(k.build(), np.zeros((32, 6), np.int32), n=32):
        assert (got == np.stack(expected, 1)).all()


def test_static_numbers_are_divided_as_in_python() -> None:
    thread = tp.Kernel("division", threads=32).thread
    for a in (-100, -96, 100):
        number = tp.minimum(thread, a) if a < 0 else tp.maximum(thread, a)
        for b in (7, 32):
            assert (int(number // b), int(number % b)) == (a // b, a % b)
    with refused(r"thread - 1 may be negative"):
        (thread - 1) % 8


def test_counters_are_at_least_the_first_number_of_their_loop() -> None:
    k = tp.Kernel("counters", threads=32)
    with k.loop(1, k.launch("n")) as i:
        assert ((i - 1) // 2).lower == 0


def test_integers_lanes_and_atomic_operations() -> None:
    k = tp.Kernel("operations", target="sm_80", threads=32)
    x, out, t = k.address("x"), k.address("out", 4), k.thread
    counters = k.shared(12)
    with k.If(t < 3):
        tp.store_shared(k, counters.address + t * 4, [tp.to_b32(k, 0)])
    tp.synchronize(k)
    lane, byte = tp.to_b32(k, t), tp.load_global_byte(k, x, t, is_signed=True)
    tp.store_global_byte(k, x, t, tp.add(k, byte, 1))
    values = [
        tp.subtract(k, tp.multiply(k, tp.add(k, lane, 5), lane), 7),
        byte,
        tp.from_f32(k, "s32", tp.multiply(k, tp.to_f32(k, byte, "s32"), 0.5)),
        tp.ballot(k, t % 3),
        tp.shuffle_up(k, lane, 1),
        tp.shuffle_down(k, lane, 2),
        tp.load_global_byte(k, x, 32 + t),
    ]
    width = 10
    for i, value in enumerate(values):
        tp.store_global(k, out, (t * width + i) * 4, [value])
    old = tp.atomic_add_shared(k, counters.address, tp.to_b32(k, 2))  # each lane gets another even number
    place = k.number(old, 64) // 2
    tp.store_global(k, out, (place * width + 7) * 4, [tp.to_b32(k, place)])
    tp.atomic_max_shared(k, counters.address + 4, lane)
    won = tp.atomic_cas_shared(k, counters.address + 8, tp.to_b32(k, 0), tp.add(k, lane, 1))
    tp.store_global(k, out, (t * width + 8) * 4, [won])
    tp.synchronize(k)
    tp.store_global(k, out, (t * width + 9) * 4, [tp.load_shared(k, counters.address + 4, "b32")])
    program = k.build()
    at = np.arange(32)
    for language in LANGUAGES:
        program.language = language
        got, memory = np.zeros((32, width), np.int32), (np.arange(64) - 5).astype(np.int8)
        program.run(x=memory, out=got)
        assert (got[:, 0] == (at + 5) * at - 7).all() and (got[:, 1] == at - 5).all()
        assert (got[:, 2] == np.rint((at - 5) * 0.5)).all()
        assert (got[:, 3] == np.int32(sum(1 << i for i in range(32) if i % 3) - 2**32)).all()
        assert (got[:, 4] == np.maximum(at - 1, 0)).all() and (got[:, 5] == np.where(at < 30, at + 2, at)).all()
        assert (got[:, 6] == at + 27).all() and (got[:, 7] == at).all() and (got[:, 9] == 31).all()
        assert sorted(set(got[:, 8].tolist()))[0] == 0 and (got[:, 8] == 0).sum() == 1
        assert (memory[:32] == at - 4).all()
    with refused("b must be an integer beside a b32", TypeError):
        tp.add(k, lane, 0.5)


def test_atomic_operations_on_global_memory_return_the_old_value() -> None:
    k = tp.Kernel("atomics", target="sm_80", threads=32)
    x, out, t = k.address("x", 4), k.address("out", 4), k.thread
    old = [
        tp.atomic_add(k, x, t * 4, tp.to_b32(k, t)),
        tp.atomic_max(k, x, 128 + t * 4, tp.to_b32(k, 3)),
        tp.atomic_cas(k, x, 256 + t * 4, tp.to_b32(k, 7), tp.to_b32(k, t)),
    ]
    for i, value in enumerate(old):
        tp.store_global(k, out, (i * 32 + t) * 4, [value])
    program, lane = k.build(), np.arange(32)
    for language in LANGUAGES:
        program.language = language
        memory, got = np.stack([lane, lane - 10, lane % 8]).astype(np.int32), np.zeros((3, 32), np.int32)
        before = memory.copy()
        program.run(x=memory, out=got)
        assert (got == before).all()
        assert (memory == np.stack([2 * lane, np.maximum(lane - 10, 3), np.where(lane % 8 == 7, lane, lane % 8)])).all()


@pytest.mark.parametrize("dtype", [np.uint32, np.int64, np.uint64, np.int16, np.uint16, np.bool_])
def test_arrays_of_integers_without_a_type_of_elements(dtype: Any) -> None:
    size = np.dtype(dtype).itemsize
    k = tp.Kernel("copies_bytes", target="sm_80", threads=32)
    x, out = k.address("x"), k.address("out")
    for byte in range(size):
        at = k.thread * size + byte
        tp.store_global_byte(k, out, at, tp.load_global_byte(k, x, at))
    x, out = (np.arange(32) % 2 if dtype is np.bool_ else np.arange(32) + 7).astype(dtype), np.zeros(32, dtype)
    k.build().run(x=x, out=out)
    assert (out == x).all()


def test_parameters_may_have_any_name() -> None:
    k = tp.Kernel("names", target="sm_80", threads=32)
    number, x = k.launch("operands"), k.address("verify", 4)
    tp.store_global(k, x, k.thread * 4, [tp.to_b32(k, number)])
    x = np.zeros(32, np.int32)
    k.build().run(operands=3, verify=x)
    assert (x == 3).all()


@pytest.mark.parametrize(("dtype", "sums"), [("s8", "s32"), ("tf32", "f32")])
def test_wgmma_reads_mn_major_operands_of_16_bits_only(dtype: str, sums: str) -> None:
    columns = 128 * 8 // arch.sizeof_bits(dtype)
    k_major, mn_major = tp.smem_tile("k", dtype, 128, columns), tp.smem_tile("mn", dtype, 128, columns)
    atom = arch.wgmma_atom(dtype, dtype, sums)
    with refused(f"reads B K-major only: MN-major operands must have 16-bit types, got {dtype}"):
        tp.TiledMmaBuilder(tp.Kernel("mn_major"), atom, k_major, mn_major, n=128, b_major="mn")
    with refused(f"reads A K-major only: MN-major operands must have 16-bit types, got {dtype}"):
        tp.TiledMmaBuilder(tp.Kernel("mn_major"), atom, mn_major, k_major, n=128, a_major="mn")


def builder(k: tp.Kernel, n: int = 64, source: str = "shared_memory") -> tp.TiledMmaBuilder:
    tile_a, tile_b = tp.smem_tile("k", "f16", 64, 64), tp.smem_tile("k", "f16", n, 64)
    return tp.TiledMmaBuilder(k, arch.wgmma_atom("f16", "f16", "f32", source), tile_a, tile_b, n=n)


def test_numbers_of_warps_and_accumulators_are_those_of_the_product() -> None:
    k = tp.Kernel("warps", threads=256)
    mma, other = builder(k), builder(k, n=128)
    at = k.shared(3 * 8192, 1024).address
    with refused(r"4 warps multiply, so that `warp` must be from 0 to 3, got thread / 32, which is from 0 to 7"):
        mma.fma(mma.zeros(), at, at, k.thread // 32)
    with refused(r"`warp` must be from 0 to 3, got thread, which is from 0 to 255"):
        mma.pairs(mma.zeros(), k.thread)
    with refused("those of another product: this one has 1 cells of 32 f32 registers, got 1 of 64 f32"):
        mma.fma(other.zeros(), at, at, 0)
    registers = builder(k, source="registers")
    for count, value in ((3, tp.to_b32(k, 0)), (4, tp.constant(k, 0.0))):
        with refused("a fragment of A has 4 b32 registers"):
            registers.fma_fragments(registers.zeros(), [[value] * count] * 4, at)


def products_of_some_tiles(changes: bool) -> tp.Program:
    """Products of ones for two tiles: the first has n steps, the second none."""
    k = tp.Kernel("zeros", threads=128)
    n, out = k.launch("n"), k.address("out", 4)
    mma = builder(k, n=8)
    memory, warp = k.shared(8192 + 1024, 1024), tp.broadcast(k, k.thread // 32)
    with k.loop(k.thread, memory.bytes // 4, 128) as i:
        tp.store_shared(k, memory.address + i * 4, [tp.to_b32(k, 0x3C003C00)])
    tp.fence_proxy_async(k)
    tp.synchronize(k)
    with k.loop(2) as tile:
        sums = mma.zeros()
        if changes:
            mma.transform(sums, warp, lambda pair: (tp.add(k, pair.low, 1), tp.add(k, pair.high, 1)))
        with k.loop(tp.select(tile == 0, n, 0)):
            mma.fma(sums, memory.address, memory.address + 8192, warp)
            tp.wait_for_wgmma(k, 0, sums.cells)
        for pair in mma.pairs(sums, warp):
            tp.store_global(k, out, (tile * 512 + pair.row * 8 + pair.column) * 4, [pair.low, pair.high])
    return k.build()


@pytest.mark.parametrize("changes", [False, True])
def test_accumulators_without_a_product_are_zero(changes: bool) -> None:
    for n in (0, 2):
        for got in results(products_of_some_tiles(changes), np.full((2, 64, 8), np.nan, np.float32), n=n):
            assert (got[0] == 64 * n + changes).all() and (got[1] == changes).all()


def test_a_loop_that_runs_needs_no_zeros() -> None:
    k = tp.Kernel("runs", threads=128)
    mma, at = builder(k), k.shared(8192, 1024).address
    sums = mma.zeros()
    with k.loop(tp.ceil_div(k.launch("depth", lower=1), 64)):
        mma.fma(sums, at, at, 0)
    tp.wait_for_wgmma(k, 0, sums.cells)
    mma.pairs(sums, 0)
    assert "mov.b32" not in str(k.build())


def loaded_tile(strides: Callable[[tp.Number], list[Any]]) -> tp.Program:
    """out = the 64x64 tile of a tensor [m, k]."""
    k = tp.Kernel("loads", threads=128)
    extents, lda = [k.launch("m", lower=1), k.launch("k", lower=1)], k.launch("lda", divisor=8)
    out, tile = k.address("out", 2), tp.smem_tile("k", "f16", 64, 64)
    memory, barrier = k.shared(tile.bytes, 1024), k.shared(8)
    load = tp.TiledCopyBuilder(k, "tma", tp.Tensor("a", "f16", extents, strides(lda)), tile)
    with k.If(k.thread == 0):
        tp.mbarrier_init(k, barrier.address, 1)
        tp.fence_mbarrier_init(k)
        tp.mbarrier_arrive_expect(k, barrier.address, load.transaction_bytes)
        load.copy([0, 0], memory.address, barrier=barrier.address)
    tp.synchronize(k)
    tp.mbarrier_wait(k, barrier.address, 0)
    with k.loop(k.thread, 64 * 64, 128) as i:
        element = tp.load_shared(k, memory.address + tp.offset_of(tile.layout, [i // 64, i % 64]) * 2, "b16")
        tp.store_global(k, out, i * 2, [element])
    return k.build()


def test_a_launch_has_the_tensor_that_the_kernel_declares() -> None:
    program, a = loaded_tile(lambda lda: [lda, 1]), small(64, 64)
    wide = small(70, 80)
    for array, lda in ((a, 64), (a.ravel(), 64), (a.reshape(8, 8, 64), 64), (wide, 80), (wide[:, :64], 80)):
        out = np.zeros((64, 64), np.float16)
        program.run(m=64, k=64, lda=lda, a=array, out=out)
        assert (out == (wide[:64, :64] if lda == 80 else a)).all()
    declared = r"loads declares the Tensor 'a' with extents \(64, 64\) and strides \(64, 1\) for this launch; "
    wrong = {r"\(64, 64\) and the strides \(1, 64\)": np.asfortranarray(a), r"\(32, 128\)": a.reshape(32, 128)}
    for shape, array in wrong.items():
        with refused(declared + "the array has the shape " + shape):
            program.run(m=64, k=64, lda=64, a=array, out=np.zeros((64, 64), np.float16))
    with refused(r"extents \(64, 64\) and strides \(32, 1\) for this launch"):
        program.run(m=64, k=64, lda=32, a=a, out=a.copy())
    with refused(r"extents \(65, 64\)"):
        program.run(m=65, k=64, lda=64, a=a, out=a.copy())


def test_modes_of_an_array_in_row_major_order_may_be_declared_in_another_order() -> None:
    k = tp.Kernel("images", threads=32)
    images, height, width = (k.launch(name, lower=1) for name in ("images", "height", "width"))
    row = width * 64
    tensor = tp.Tensor("x", "f16", [width, height, images, 64], [64, row, row * height, 1])
    swizzle, pixels = tp.smem_tile("k", "f16", 64, 64).layout.swizzle, Layout((8, 8, 1, 64), (64, 512, 0, 1))
    tp.TiledCopyBuilder(k, "cp_async", tensor, tp.SharedTile(ComposedLayout(swizzle, 0, pixels), "f16"), 32)
    program = k.build()
    program.run(images=2, height=3, width=5, x=np.zeros((2, 3, 5, 64), np.float16))
    with refused("declares the Tensor 'x'"):
        program.run(images=2, height=3, width=5, x=np.zeros((2, 5, 3, 64), np.float16))


def test_arrays_of_addresses_are_row_major_and_of_the_declared_type() -> None:
    k = tp.Kernel("addresses", target="sm_80", threads=32)
    x = k.address("x", 4, "f32")
    tp.store_global(k, x, k.thread * 4, [tp.to_f32(k, k.thread)])
    program = k.build()
    program.run(x=np.zeros((4, 16), np.float32)[:, :8])  # padded rows
    with refused("addresses reads 'x' as elements of f32, the array has f64"):
        program.run(x=np.zeros(32))
    with refused("addresses reads 'x' as elements of f32, the array has int64"):
        program.run(x=np.zeros(32, np.int64))
    for array in (np.zeros(64, np.float32)[::2], np.zeros((8, 8), np.float32).T):
        with refused("addresses takes the address of 'x' as memory in row-major order; the array has"):
            program.run(x=array)


def test_parameters_are_named_by_indices_that_exist() -> None:
    k = tp.Kernel("parameters", threads=32)
    k.address("x", 4)
    with refused("the kernel has 1 parameters, none with the index 9"):
        tp.prefetch_tensor_map(k, 9)
    with refused("none with the index 3"):
        tp.tma_load(k, k.shared(128, 128).address, 3, [0, 0], k.shared(8).address)
    with refused("none with the index -1"):
        k.instruction("mov.b64 $0, $1;", tp.output("b64"), tp.address_of(-1))
    with refused("the parameter 0, 'x', is no tensor map"):
        tp.prefetch_tensor_map(k, 0)
    with refused(r"names \$0\.2, but \$0 has 2 registers"):
        k.instruction("mov.b32 $0.2, 0;", tp.output("b32", 2))
    with refused(r"has a \$ without the number of an operand"):
        k.instruction("mov.b32 $0, $;", tp.output("b32"))


def test_numbers_that_are_known_while_recording_are_checked_there() -> None:
    k = tp.Kernel("known", threads=64)
    with refused("readers arrive 1 to 1048575 times at the mbarrier of a stage, got 0"):
        tp.Ring(k, 2, 64, reader_arrivals=0)
    with refused("writers arrive 1 to 1048575 times"):
        tp.Ring(k, 2, 64, writer_arrivals=1 << 20)
    with refused("the mbarriers of a ring need sm_90, the target is sm_80"):
        tp.Ring(tp.Kernel("ampere", target="sm_80"), 2, 64)
    with refused("an mbarrier counts 1 to 1048575 arrivals, got 0"):
        tp.mbarrier_init(k, k.shared(8).address, 0)
    with refused("the number of a named barrier must be from 1 to 15, got 16"):
        tp.named_barrier(k, 16, 64)
    for threads in (48, 128):
        with refused(f"a named barrier has a multiple of 32 threads, at most the 64 of the kernel, got {threads}"):
            tp.named_barrier(k, 1, threads)
    with refused("the mask of a shuffle must be from 0 to 31, got 32"):
        tp.shuffle_xor(k, tp.to_b32(k, 0), 32)
    with refused("the distance of a shuffle must be from 0 to 31, got -1"):
        tp.shuffle_up(k, tp.to_b32(k, 0), -1)
    with refused("a grid has the modes 0 to 2, got 3"):
        k.block(3)
    with refused("the number of pending groups must be from 0"):
        tp.cp_async_wait(k, -1)
    with refused("has no array among its parameters"):
        tp.Kernel("nothing", threads=32).build().run()


def test_a_stage_that_wgmma_reads_has_a_group() -> None:
    k = tp.Kernel("groups", threads=128)
    mma, ring = builder(k), tp.Ring(k, 2, 64, reader_arrivals=128)
    reader, sums = tp.RingReader(k, ring), mma.zeros()
    with refused("no group of wgmma was committed while the stage was read"), reader.read_by_wgmma(sums):
        pass


@pytest.mark.parametrize("language", LANGUAGES)
def test_wgmma_that_ptxas_serialises_is_refused(language: str) -> None:
    """The 240 accumulators of a thread and two groups of wgmma need more registers than there are."""
    k = tp.Kernel("serialised", threads=128)
    out, n = k.address("out", 4), k.launch("n")
    tile_a, tile_b = tp.smem_tile("k", "f16", 192, 64), tp.smem_tile("k", "f16", 160, 64)
    mma = tp.TiledMmaBuilder(k, arch.wgmma_atom("f16", "f16", "f32"), tile_a, tile_b, n=160)
    at, warp, sums = k.shared(tile_a.bytes + tile_b.bytes, 1024).address, tp.broadcast(k, k.thread // 32), mma.zeros()
    with k.loop(n):
        mma.fma(sums, at, at + tile_a.bytes, warp)
        tp.wait_for_wgmma(k, 0, sums.cells)
    for pair in mma.pairs(sums, warp):
        tp.store_global(k, out, (pair.row * 160 + pair.column) * 4, [pair.low, pair.high])
    program = k.build()
    program.language = language
    with refused("the assembler ignored setmaxnreg or serialised wgmma", CompileError):
        program.run(n=1, out=np.zeros((192, 160), np.float32))


def test_the_listing_has_the_numbers_by_which_messages_name_its_lines() -> None:
    k = tp.Kernel("numbered", target="sm_80", threads=32)
    tp.store_global(k, k.address("x", 4), k.thread * 4, [tp.constant(k, 1.0)])
    lines = str(k.build()).splitlines()
    assert [line.split()[0] for line in lines] == [str(i) for i in range(1, len(lines) + 1)]
    assert lines[0].startswith("1  kernel numbered: sm_80, 32 threads") and lines[3].startswith("4    v1: f32 =")


def test_accesses_outside_of_the_memory_that_shared_has_reserved() -> None:
    k = tp.Kernel("bounds", target="sm_90a", threads=128)
    n, value = k.launch("n"), tp.constant(k, 0)
    first, second = k.shared(64 * 4).address, k.shared(128 * 4).address
    tile = tp.smem_tile("k", "f16", 64, 64)
    load = tp.TiledCopyBuilder(k, "cp_async", tp.Tensor("x", "f16", [64, 64], [64, 1]), tile, threads=128)
    ring = tp.Ring(k, 2, 1024)
    small = k.shared(4096, 1024).address

    with refused(r"thread 64 accesses 4 bytes at shared \+ 256, and another thread accesses the 256 bytes from shared"):
        tp.store_shared(k, first + k.thread * 4, [value])
    with refused(r"thread 63 accesses 8 bytes at shared \+ 252, which are not all among the 256 bytes from shared \+ 0"):
        with k.If(k.thread < 64):
            tp.store_shared(k, first + k.thread * 4, [value, value])
    k.end_branch()
    with refused(r"thread 1 accesses 4 bytes at shared \+ 256, and another thread accesses the 256 bytes from"):
        tp.load_shared(k, second + k.thread * 4 - 4, "f32")
    with refused(r"an instruction accesses 4 bytes at shared \+ [0-9]+, which no shared\(\) has reserved"):
        tp.add_shared(k, small + 4096, value)
    with refused(r"an instruction accesses 4 bytes at shared - 4, which no shared\(\) has reserved"):
        tp.load_shared(k, first - 4, "f32")
    with refused(r"an instruction accesses 8192 bytes at shared \+ [0-9]+, which are not all among the 4096 bytes"):
        load.copy([0, 0], small, thread=k.thread)
    with refused("behind the end of the [0-9]+ bytes that the kernel has reserved"):
        tp.load_shared(k, small + 4096 + n * 4, "f32")
    with refused("thread 64 accesses 1 bytes at shared"):
        tp.store_shared_byte(k, first + 192 + k.thread, tp.to_b32(k, 0))
    with refused("the stages of the ring are 0 to 1, got 2"):
        ring.stage(2)

    # 8 bytes of odd threads begin at no multiple of 8, unless only even ones access them.
    with refused(r"thread 1 accesses 8 bytes at shared \+ 260, which must be a multiple of 8"):
        tp.load_shared(k, second + k.thread % 64 * 4, "f32", 2)
    with refused(r"an instruction accesses 16 bytes at shared \+ 260, which must be a multiple of 16"):
        tp.load_shared(k, second + 4, "f32", 4)
    with k.If(k.thread % 2 == 0), k.If(n > 5):
        tp.load_shared(k, second + k.thread % 64 * 4, "f32", 2)

    # What is inside, or may be inside in all threads that get there, is accepted.
    with k.If(k.thread < 64):
        tp.store_shared(k, first + k.thread * 4, [value])
    with k.If(n > 5):
        tp.store_shared(k, first + k.thread * 4, [value])
    with k.If(k.thread >= 64):
        with k.If(k.thread % 2 == 0):
            tp.store_shared(k, first + (k.thread - 64) * 4, [value, value])
    with k.loop(n) as i:
        tp.store_shared(k, first + i * 4, [value])
    with refused("thread 0 accesses 4 bytes .* which no shared"), k.If(n > 5):
        tp.store_shared(k, small + 4096 + k.thread * 4, [value])


def ordered_sums(is_atomic: bool) -> tp.Program:
    """Both warps add to out[0]."""
    k = tp.Kernel("ordered_sums", target="sm_80", threads=64)
    out = k.address("out", 4)
    with k.If(k.thread % 32 == 0):
        if is_atomic:
            tp.add_global(k, out, 0, tp.to_b32(k, 1))
        else:
            tp.store_global(k, out, 0, [tp.add(k, tp.load_global(k, out, 0, "b32"), 1)])
    return k.build()


@pytest.mark.parametrize("language", LANGUAGES)
def test_runs_on_the_emulator_find_races_in_global_memory(language: str) -> None:
    program, sums = ordered_sums(is_atomic=False), np.zeros(1, np.int32)
    program.language = language
    with refused("global race .* at /?ordered_sums.tw:[0-9]+", EmulationError):
        program.run(out=sums)
    program.checks_global_memory = False
    program.run(out=sums)
    program = ordered_sums(is_atomic=True)
    sums[0] = 0
    program.run(out=sums)
    assert sums[0] == 2


def test_names_of_cuda_are_told_their_own() -> None:
    for name, own in (("syncthreads", "synchronize"), ("exp", "exp2"), ("popc", "population_count")):
        assert own in tp.__all__
        with pytest.raises(AttributeError, match=f"no attribute '{name}'; did you mean '{own}'"):
            getattr(tp, name)
