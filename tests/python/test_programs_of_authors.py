"""Programs as newcomers write them from docs/programs.md, run through both lowerings, whose results are equal bits."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from both_lowerings import computed

import tilewright
from tilewright import InvalidArgument, arch
from tilewright import program as tp
from tilewright.layout import ComposedLayout, Layout


@pytest.fixture(autouse=True)
def _emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_DEVICE", "emulator:sm_90a")


def nans(*shape: int) -> np.ndarray:
    return np.full(shape, np.nan, np.float32)


def histogram() -> tp.Program:
    k = tp.Kernel("histogram", target="sm_80", threads=128)
    n, values, counts = k.launch("n"), k.address("values"), k.address("counts", 4)
    k.set_grid(3)
    bins = k.shared(256 * 4)
    with k.loop(k.thread, 256, k.threads) as at:
        tp.store_shared(k, bins.address + at * 4, [tp.to_b32(k, 0)])
    tp.synchronize(k)
    with k.loop(k.block() * k.threads + k.thread, n, k.blocks() * k.threads) as i:
        (byte,) = k.instruction("ld.global.u8 $0, [$1];", tp.output("b32"), tp.global_address(k, values, i))
        tp.add_shared(k, bins.address + k.number(byte, 256) * 4, tp.to_b32(k, 1))
    tp.synchronize(k)
    with k.loop(k.thread, 256, k.threads) as at:
        tp.add_global(k, counts, at * 4, tp.load_shared(k, bins.address + at * 4, "b32"))
    return k.build()


def streamed_sums(ctas: int) -> Callable[[], tp.Program]:
    """out[tile] is the sum of x[tile], of which each element is a step, by CTAs of one warp that share tiles."""

    def author() -> tp.Program:
        k = tp.Kernel("streamed_sums", threads=32)
        tiles, steps, x, out = k.launch("tiles", 1, 1), k.launch("steps", 1, 1), k.address("x", 4), k.address("out", 4)
        streamed = tp.StreamedTiles(k, tiles, 1, steps, max_ctas=ctas)
        memory = k.workspace(streamed.ctas * 4)
        cta = streamed.cta()

        def flag(of: tp.Number) -> tp.Number:
            return memory.flags + of * 4

        with streamed.for_each(cta) as part:
            total = k.cell(tp.constant(k, 0.0))
            with k.loop(part.first_step, part.end_step) as step:
                total.set(tp.add(k, total.get(), tp.load_global(k, x, (part.tile.m * steps + step) * 4, "f32")))
            with k.If(tp.equal(part.first_step, 0)):
                with k.If(streamed.is_continued(part)):
                    tp.wait_for_flag(k, memory.address, flag(cta + 1))
                    rest = tp.load_global(k, memory.address, memory.data + (cta + 1) * 4, "f32")
                    tp.lower_flag(k, memory.address, flag(cta + 1))
                    total.set(tp.add(k, total.get(), rest))
                tp.store_global_if(k, tp.equal(k.thread, 0), out, part.tile.m * 4, [total.get()])
            with k.Else():
                tp.store_global_if(k, tp.equal(k.thread, 0), memory.address, memory.data + cta * 4, [total.get()])
                tp.raise_flag(k, memory.address, flag(cta))
        return k.build()

    return author


@pytest.mark.parametrize(("tiles", "steps", "ctas"), [(7, 9, 5), (1, 3, 5), (12, 5, 5), (5, 1, 4), (40, 7, 132)])
def test_ctas_that_share_tiles_exchange_sums_through_the_workspace(tiles: int, steps: int, ctas: int) -> None:
    x = np.arange(tiles * steps, dtype=np.float32).reshape(tiles, steps)
    program = streamed_sums(ctas)
    assert [name for name, _ in program().parameters] == ["tiles", "steps", "x", "out"]
    for _ in range(2):  # the flags of the first launch are 0 again
        sums = computed(program, "out", tiles=tiles, steps=steps, x=x, out=nans(tiles))
        assert (sums == x.sum(axis=1)).all()


def test_a_kernel_has_one_workspace_whose_size_is_known_at_launch() -> None:
    k = tp.Kernel("twice", threads=32)
    with pytest.raises(InvalidArgument, match="depends on values of the kernel"):
        k.workspace(k.block() * 4 + 4)
    k.workspace(4)
    with pytest.raises(InvalidArgument, match="a kernel has one workspace"):
        k.workspace(4)


def test_histogram_with_a_loop_over_the_grid() -> None:
    values = np.random.default_rng(0).integers(0, 256, 1000).astype(np.uint8)
    counts = computed(histogram, "counts", n=1000, values=values, counts=np.zeros(256, np.int32))
    assert (counts == np.bincount(values, minlength=256)).all()


def argmax() -> tp.Program:
    k = tp.Kernel("argmax", target="sm_80", threads=32)
    rows, n = k.launch("rows", lower=1), k.launch("n", lower=1)
    x, out = k.address("x", 4), k.address("out", 4)
    k.set_grid(rows)
    best, place = k.cell(tp.constant(k, -math.inf)), k.cell(0, 1 << 31)

    def consider(value: tp.Value, at: tp.Number) -> None:
        is_first = tp.both(tp.equal(k, value, best.get()), at < place.get())
        is_better = tp.select(is_first, 1, tp.less(k, best.get(), value))
        best.set(tp.choose(k, is_better, value, best.get()))
        place.set_within(tp.select(is_better, at, place.get()))

    with k.loop(k.thread, n, 32) as column:
        consider(tp.load_global(k, x, (k.block() * n + column) * 4, "f32"), column)
    for mask in (16, 8, 4, 2, 1):
        at = tp.shuffle_xor(k, tp.to_b32(k, place.get()), mask)
        consider(tp.shuffle_xor(k, best.get(), mask), k.number(at))
    with k.If(k.thread == 0):
        tp.store_global(k, out, k.block() * 4, [tp.to_b32(k, place.get())])
    return k.build()


def test_argmax_compares_values() -> None:
    x = np.random.default_rng(1).integers(-20, 20, (6, 77)).astype(np.float32)
    out = computed(argmax, "out", rows=6, n=77, x=x, out=np.full(6, -1, np.int32))
    assert (out == x.argmax(axis=1)).all()


def attention() -> tp.Program:
    """softmax(q x keys' x scale) x values of 64 queries per CTA and 32 keys at a time; P is a tile in shared memory."""
    queries, keys, depth = 64, 32, 64
    k = tp.Kernel("attention", target="sm_80", threads=128)
    m, n = k.launch("m", lower=1), k.launch("n", lower=1)
    tile_q, tile_k = tp.smem_tile("k", "f16", queries, depth), tp.smem_tile("k", "f16", keys, depth)
    tile_v, tile_p = tp.smem_tile("mn", "f16", depth, keys), tp.smem_tile("k", "f16", queries, keys, 64)
    copies = [
        tp.TiledCopyBuilder(k, "cp_async", tensor, tile, threads=128)
        for tensor, tile in (
            (tp.Tensor("q", "f16", [m, depth], [depth, 1]), tile_q),
            (tp.Tensor("keys", "f16", [n, depth], [depth, 1]), tile_k),
            (tp.Tensor("values", "f16", [depth, n], [1, depth]), tile_v),
        )
    ]
    atom = arch.mma_atom(16, 8, 16, "f16", "f16", "f32")
    scores = tp.TiledMmaBuilder(k, atom, tile_q, tile_k)
    sums = tp.TiledMmaBuilder(k, atom, tile_p, tile_v, b_major="mn")
    out, scale = k.address("out", 8), k.scalar("scale")
    k.set_grid(tp.ceil_div(m, queries))
    of_q, of_k, of_v, of_p = (k.shared(tile.bytes, 1024).address for tile in (tile_q, tile_k, tile_v, tile_p))
    warp, first = tp.broadcast(k, k.thread // 32), k.block() * queries
    nothing = tp.constant(k, -math.inf)
    largest, total = [k.cell(nothing) for _ in range(2)], [k.cell(tp.constant(k, 0)) for _ in range(2)]
    result = sums.zeros()

    copies[0].copy([first, 0], of_q, thread=k.thread)
    with k.loop(tp.ceil_div(n, keys)) as step:
        copies[1].copy([step * keys, 0], of_k, thread=k.thread)
        copies[2].copy([0, step * keys], of_v, thread=k.thread)
        tp.cp_async_commit(k)
        tp.cp_async_wait(k, 0)
        tp.synchronize(k)
        products = scores.zeros()
        scores.fma(products, of_q, of_k, warp)
        pairs, changes = scores.pairs(products, warp), []
        for half in range(2):  # a thread has accumulators of two rows
            new, powers = largest[half].get(), []
            for pair in pairs[half::2]:
                for column, value in ((pair.column, pair.low), (pair.column + 1, pair.high)):
                    powers.append(tp.choose(k, step * keys + column < n, tp.multiply(k, value, scale), nothing))
                    new = tp.maximum(k, new, powers[-1])
            for mask in (1, 2):
                new = tp.maximum(k, new, tp.shuffle_xor(k, new, mask))
            changes.append(tp.exp2(k, tp.subtract(k, largest[half].get(), new)))
            largest[half].set(new)
            powers = [tp.exp2(k, tp.subtract(k, power, new)) for power in powers]
            total[half].set(tp.multiply(k, total[half].get(), changes[half]))
            for power in powers:
                total[half].set(tp.add(k, total[half].get(), power))
            for pair, low, high in zip(pairs[half::2], powers[0::2], powers[1::2], strict=True):
                at = tp.offset_of(tile_p.layout, [pair.row, pair.column]) * 2
                tp.store_shared(k, of_p + at, [tp.pack(k, "f16", low, high)])
        rows = iter(range(1 << 30))

        def shrink(pair: tp.AccumulatorPair) -> tuple[tp.Value, tp.Value]:
            change = changes[next(rows) % 2]
            return tp.multiply(k, pair.low, change), tp.multiply(k, pair.high, change)

        sums.transform(result, warp, shrink)
        tp.synchronize_warp(k)
        sums.fma(result, of_p, of_v, warp)
        tp.synchronize(k)
    pairs = sums.pairs(result, warp)
    for half in range(2):
        whole = total[half].get()
        for mask in (1, 2):
            whole = tp.add(k, whole, tp.shuffle_xor(k, whole, mask))
        for pair in pairs[half::2]:
            at = ((first + pair.row) * depth + pair.column) * 4
            values = [tp.divide(k, pair.low, whole), tp.divide(k, pair.high, whole)]
            tp.store_global_if(k, first + pair.row < m, out, at, values)
    return k.build()


def test_attention_changes_accumulators() -> None:
    m, n, depth = 70, 75, 64
    random = np.random.default_rng(2)
    q, keys, values = (random.normal(size=(rows, depth)).astype(np.float16) for rows in (m, n, n))
    scale = math.log2(math.e) / math.sqrt(depth)
    out = computed(attention, "out", m=m, n=n, q=q, keys=keys, values=values, scale=scale, out=nans(m, depth))
    powers = np.exp(q.astype(np.float64) @ keys.T.astype(np.float64) / math.sqrt(depth))
    expected = powers / powers.sum(axis=1, keepdims=True) @ values.astype(np.float64)
    assert abs(out - expected).max() < 2e-3


def chained_products() -> tp.Program:
    """(a x b') x c' of 64x64 tiles: the accumulators of the first product are A of the second, in registers."""
    k = tp.Kernel("chained_products", threads=128)
    tile = tp.smem_tile("k", "f16", 64, 64)
    memory = []
    for name in ("a", "b", "c"):
        memory.append(k.shared(tile.bytes, 1024).address)
        load = tp.TiledCopyBuilder(k, "cp_async", tp.Tensor(name, "f16", [64, 64], [64, 1]), tile, threads=128)
        load.copy([0, 0], memory[-1], thread=k.thread)
    tp.cp_async_commit(k)
    tp.cp_async_wait(k, 0)
    tp.fence_proxy_async(k)
    tp.synchronize(k)
    of_memory = tp.TiledMmaBuilder(k, arch.wgmma_atom("f16", "f16", "f32"), tile, tile, n=64)
    of_registers = tp.TiledMmaBuilder(k, arch.wgmma_atom("f16", "f16", "f32", "registers"), tile, tile, n=64)
    warp = tp.broadcast(k, k.thread // 32)
    first, second = of_memory.zeros(), of_registers.zeros()
    of_memory.fma(first, memory[0], memory[1], warp)
    tp.wait_for_wgmma(k, 0, first.cells)
    pairs = [tp.pack(k, "f16", pair.low, pair.high) for pair in of_memory.pairs(first, warp)]
    # 16 columns of k are four pairs: two rows of the first eight columns, and of the others.
    of_registers.fma_fragments(second, [pairs[i : i + 4] for i in range(0, len(pairs), 4)], memory[2])
    tp.wait_for_wgmma(k, 0, second.cells)
    d = k.address("d", 8)
    for pair in of_registers.pairs(second, warp):
        tp.store_global(k, d, (pair.row * 64 + pair.column) * 4, [pair.low, pair.high])
    return k.build()


def test_accumulators_are_fragments_of_the_next_product() -> None:
    random = np.random.default_rng(4)
    a, b, c = (random.integers(-2, 3, (64, 64)).astype(np.float16) for _ in range(3))
    d = computed(chained_products, "d", a=a, b=b, c=c, d=nans(64, 64))
    assert (d == a.astype(np.float32) @ b.astype(np.float32).T @ c.astype(np.float32).T).all()


def cluster_sum() -> tp.Program:
    k = tp.Kernel("cluster_sum", threads=32, cluster=(4, 1, 1))
    n, x, out = k.launch("n", lower=1), k.address("x", 4), k.address("out", 4)
    k.set_grid(4)
    parts = k.shared(4 * 4)
    total = k.cell(tp.constant(k, 0))
    with k.loop(k.cluster_rank * 32 + k.thread, n, 128) as i:
        total.set(tp.add(k, total.get(), tp.load_global(k, x, i * 4, "f32")))
    for mask in (16, 8, 4, 2, 1):
        total.set(tp.add(k, total.get(), tp.shuffle_xor(k, total.get(), mask)))
    tp.synchronize_cluster(k)  # CTA 0 runs
    with k.If(k.thread == 0):
        tp.store_shared_at(k, parts.address + k.cluster_rank * 4, 0, [total.get()])
    tp.synchronize_cluster(k)
    with k.If(tp.both(k.thread == 0, k.cluster_rank == 0)):
        a, b, c, d = tp.load_shared(k, parts.address, "f32", 4)
        tp.store_global(k, out, 0, [tp.add(k, tp.add(k, a, b), tp.add(k, c, d))])
    return k.build()


def test_sums_of_a_cluster() -> None:
    x = np.random.default_rng(5).integers(-3, 4, 1000).astype(np.float32)
    assert computed(cluster_sum, "out", n=1000, x=x, out=nans(1))[0] == x.sum()


def convolution(copy: str) -> tp.Program:
    """3x3, NHWC, by windows: the tile of A has 8x8 pixels of one image, and begins a pixel before them for some taps."""
    size, channels, filters = 8, 64, 64
    k = tp.Kernel("convolution", threads=256)
    images, height, width = (k.launch(name, lower=1) for name in ("images", "height", "width"))
    tile_a, tile_b = tp.smem_tile("k", "f16", size * size, channels), tp.smem_tile("k", "f16", filters, channels)
    # The same tile with a mode for each of the tensor: (x, y, image, channel).
    window = Layout((size, size, 1, channels), (channels, channels * size, 0, 1))
    pixels = tp.SharedTile(ComposedLayout(tile_a.layout.swizzle, 0, window), "f16")
    row = width * channels
    tensor = tp.Tensor("x", "f16", [width, height, images, channels], [channels, row, row * height, 1])
    threads = 1 if copy == "tma" else 128
    load_a = tp.TiledCopyBuilder(k, copy, tensor, pixels, threads=threads)
    of_w = tp.Tensor("w", "f16", [filters, 9 * channels], [9 * channels, 1])
    load_b = tp.TiledCopyBuilder(k, copy, of_w, tile_b, threads=threads)
    mma = tp.TiledMmaBuilder(k, arch.wgmma_atom("f16", "f16", "f32"), tile_a, tile_b, n=filters)
    y = k.address("y", 8)
    k.set_grid(tp.ceil_div(width, size), tp.ceil_div(height, size), images)
    first_x, first_y, image = k.block(0) * size, k.block(1) * size, k.block(2)
    ring = tp.Ring(
        k,
        2,
        tile_a.bytes + tile_b.bytes,
        transaction_bytes=load_a.transaction_bytes + load_b.transaction_bytes,
        writer_arrivals=threads,
        reader_arrivals=128,
    )
    with k.If(k.thread == 0):
        ring.initialise()
    tp.synchronize(k)
    roles = tp.Roles(k, tp.Role("producer"), tp.Role("consumer"))

    def produce(thread: tp.Number | int) -> None:
        writer = tp.RingWriter(k, ring)
        with k.loop(9) as tap, writer.write() as stage:
            to, barrier = ring.stage(stage), ring.full(stage)
            at = [first_x + tap % 3 - 1, first_y + tap // 3 - 1, image, 0]
            load_a.copy(at, to, thread=thread, barrier=barrier)
            load_b.copy([0, tap * channels], to + tile_a.bytes, thread=thread, barrier=barrier)
            if copy == "cp_async":
                tp.cp_async_arrive(k, barrier)

    with roles.play("producer") as me:
        if copy == "cp_async":
            produce(me.thread)
        else:
            with k.If(me.thread < 32), tp.by_one_thread(k):
                produce(0)
    with roles.play("consumer") as me:
        warp, reader, sums = tp.broadcast(k, me.thread // 32), tp.RingReader(k, ring), mma.zeros()
        with k.loop(9), reader.read_by_wgmma(sums) as stage:
            mma.fma(sums, ring.stage(stage), ring.stage(stage) + tile_a.bytes, warp)
        reader.drain(sums)
        for pair in mma.pairs(sums, warp):
            at_x, at_y = first_x + pair.row % size, first_y + pair.row // size
            place = ((image * height + at_y) * width + at_x) * filters + pair.column
            tp.store_global_if(k, tp.both(at_x < width, at_y < height), y, place * 4, [pair.low, pair.high])
    return k.build()


@pytest.mark.parametrize("copy", ["tma", "cp_async"])
def test_convolution_by_windows(copy: str) -> None:
    images, height, width, channels = 2, 9, 11, 64
    random = np.random.default_rng(3)
    x = random.integers(-2, 3, (images, height, width, channels)).astype(np.float16)
    w = random.integers(-2, 3, (64, 3, 3, channels)).astype(np.float16)
    extents = {"images": images, "height": height, "width": width}
    y = computed(lambda: convolution(copy), "y", **extents, x=x, w=w, y=nans(images, height, width, 64))
    padded = np.pad(x.astype(np.float32), ((0, 0), (1, 1), (1, 1), (0, 0)))
    taps = ((i, j) for i in range(3) for j in range(3))
    expected = sum(padded[:, i : i + height, j : j + width] @ w[:, i, j].astype(np.float32).T for i, j in taps)
    assert (y == expected).all()


def transpose() -> tp.Program:
    """y = x^T by tiles, which TMA loads and stores; threads exchange rows and columns in swizzled shared memory."""
    edge = 64
    k = tp.Kernel("transpose", threads=128)
    m, n = k.launch("m"), k.launch("n")
    tile = tp.smem_tile("k", "f16", edge, edge)
    lines_of_x, lines_of_y = k.launch("ldx", divisor=8), k.launch("ldy", divisor=8)
    load = tp.TiledCopyBuilder(k, "tma", tp.Tensor("x", "f16", [m, n], [lines_of_x, 1]), tile)
    store = tp.TiledCopyBuilder(k, "tma", tp.Tensor("y", "f16", [n, m], [lines_of_y, 1]), tile)
    k.set_grid(tp.ceil_div(m, edge), tp.ceil_div(n, edge))
    of_x, of_y, barrier = (k.shared(*memory).address for memory in ((tile.bytes, 1024), (tile.bytes, 1024), (8, 8)))
    with k.If(k.thread == 0):
        tp.mbarrier_init(k, barrier, 1)
        tp.fence_mbarrier_init(k)
        tp.mbarrier_arrive_expect(k, barrier, load.transaction_bytes)
        load.copy([k.block(0) * edge, k.block(1) * edge], of_x, barrier=barrier)
    tp.synchronize(k)
    tp.mbarrier_wait(k, barrier, 0)
    with k.loop(k.thread, edge * edge, k.threads) as i:
        row, column = i // edge, i % edge
        element = tp.load_shared(k, of_x + tp.offset_of(tile.layout, [row, column]) * 2, "b16")
        tp.store_shared(k, of_y + tp.offset_of(tile.layout, [column, row]) * 2, [element])
    tp.fence_proxy_async(k)
    tp.synchronize(k)
    with k.If(k.thread == 0):
        store.store([k.block(1) * edge, k.block(0) * edge], of_y)
        tp.tma_store_commit(k)
        tp.tma_store_wait_read(k, 0)
    return k.build()


def test_a_transposing_copy_by_tma() -> None:
    x = np.random.default_rng(4).standard_normal((100, 136)).astype(np.float16)
    y = computed(transpose, "y", m=100, n=136, ldx=136, ldy=104, x=x, y=np.full((136, 104), np.nan, np.float16))
    assert (y[:, :100] == x.T).all() and np.isnan(y[:, 100:]).all()


def normalised_rows() -> tp.Program:
    """(x - mean) / sqrt(variance) of rows, each by a cluster: its CTAs send each other their partial sums."""
    ctas = 4
    k = tp.Kernel("normalised_rows", threads=128, cluster=(ctas, 1, 1))
    rows, n = k.launch("rows"), k.launch("n", divisor=ctas)
    x, out = k.address("x", 4), k.address("out", 4)
    k.set_grid(ctas, rows)
    parts = k.shared(ctas * 4 * 8, 8)  # of each CTA and warp: the sum and the sum of squares
    first, part = k.block(1) * n + k.cluster_rank * (n // ctas), n // ctas
    sums = [k.cell(tp.constant(k, 0.0)) for _ in range(2)]
    with k.loop(k.thread, part, k.threads) as i:
        value = tp.load_global(k, x, (first + i) * 4, "f32")
        sums[0].set(tp.add(k, sums[0].get(), value))
        sums[1].set(tp.fma(k, value, value, sums[1].get()))
    for cell in sums:
        for mask in (16, 8, 4, 2, 1):
            cell.set(tp.add(k, cell.get(), tp.shuffle_xor(k, cell.get(), mask)))
    lane, warp = k.thread % 32, k.thread // 32
    tp.synchronize_cluster(k)  # the other CTAs have started
    with k.If(lane < ctas):
        to = parts.address + (k.cluster_rank * 4 + warp) * 8
        tp.store_shared_at(k, to, lane, [cell.get() for cell in sums])
    tp.synchronize_cluster(k)
    totals = [tp.constant(k, 0.0), tp.constant(k, 0.0)]
    for i in range(ctas * 4):
        pair = tp.load_shared(k, parts.address + i * 8, "f32", 2)
        totals = [tp.add(k, totals[j], pair[j]) for j in range(2)]
    mean, squares = (tp.divide(k, total, tp.to_f32(k, n)) for total in totals)
    scale = tp.divide(k, 1.0, tp.square_root(k, tp.subtract(k, squares, tp.multiply(k, mean, mean))))
    with k.loop(k.thread, part, k.threads) as i:
        centred = tp.subtract(k, tp.load_global(k, x, (first + i) * 4, "f32"), mean)
        tp.store_global(k, out, (first + i) * 4, [tp.multiply(k, centred, scale)])
    return k.build()


def test_rows_that_clusters_normalise() -> None:
    x = np.random.default_rng(5).standard_normal((3, 1000)).astype(np.float32)
    out = computed(normalised_rows, "out", rows=3, n=1000, x=x, out=nans(3, 1000))
    expected = (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)
    assert np.abs(out - expected).max() < 1e-4


def gemm_of_two_consumers() -> tp.Program:
    """relu(A x B + bias) in f16, B row-major: a persistent GEMM in which two warpgroups share a tile of 128 rows."""
    rows, columns, depth = 128, 128, 64
    k = tp.Kernel("gemm_of_two_consumers", threads=384)
    m, n, extent_k = (k.launch(name, lower=1) for name in ("m", "n", "k"))
    lda, ldb, ldd = k.launch("lda", divisor=8), k.launch("ldb", divisor=8), k.launch("ldd", divisor=2)
    tile_a, tile_b = tp.smem_tile("k", "f16", rows, depth), tp.smem_tile("mn", "f16", columns, depth)
    load_a = tp.TiledCopyBuilder(k, "tma", tp.Tensor("a", "f16", [m, extent_k], [lda, 1]), tile_a)
    load_b = tp.TiledCopyBuilder(k, "tma", tp.Tensor("b", "f16", [n, extent_k], [1, ldb]), tile_b)
    atom = arch.wgmma_atom("f16", "f16", "f32")
    mma = tp.TiledMmaBuilder(k, atom, tile_a, tile_b, n=columns, b_major="mn", warps=(8, 1))
    d, bias = k.address("d", 4), k.address("bias", 4)
    loaded = load_a.transaction_bytes + load_b.transaction_bytes
    ring = tp.Ring(k, 3, tile_a.bytes + tile_b.bytes, transaction_bytes=loaded, reader_arrivals=mma.threads)
    with k.If(k.thread == 0):
        ring.initialise()
    tp.synchronize(k)
    roles = tp.Roles(k, tp.Role("producer", registers=40), tp.Role("consumer", 2, registers=232))
    tiles = tp.PersistentTiles(k, tp.ceil_div(m, rows), tp.ceil_div(n, columns), max_groups=2)
    steps = tp.ceil_div(extent_k, depth)
    with roles.play("producer") as me, k.If(me.thread < 32), tp.by_one_thread(k):
        writer = tp.RingWriter(k, ring)
        with tiles.for_each() as tile, k.loop(steps) as step, writer.write() as stage:
            load_a.copy([tile.m * rows, step * depth], ring.stage(stage), barrier=ring.full(stage))
            to = ring.stage(stage) + tile_a.bytes
            load_b.copy([tile.n * columns, step * depth], to, barrier=ring.full(stage))
    with roles.play("consumer") as me:
        warp = tp.broadcast(k, me.warpgroup * 4 + me.thread // 32)
        reader = tp.RingReader(k, ring)
        with tiles.for_each() as tile:
            products = mma.zeros()
            with k.loop(steps), reader.read_by_wgmma(products) as stage:
                mma.fma(products, ring.stage(stage), ring.stage(stage) + tile_a.bytes, warp)
            reader.drain(products)
            for pair in mma.pairs(products, warp):
                row, column = tile.m * rows + pair.row, tile.n * columns + pair.column
                results = []
                for offset, value in ((0, pair.low), (1, pair.high)):
                    added = tp.load_global_if(k, column + offset < n, bias, (column + offset) * 4, "f32")
                    results.append(tp.maximum(k, tp.add(k, value, added), 0.0))
                is_inside = tp.both(row < m, column < n)
                tp.store_global_if(k, is_inside, d, (row * ldd + column) * 2, [tp.pack(k, "f16", *results)])
    return k.build()


def test_a_gemm_of_two_consumers() -> None:
    random = np.random.default_rng(6)
    m, n, depth = 200, 264, 200
    a, b = (random.integers(-2, 3, shape).astype(np.float16) for shape in ((m, depth), (depth, n)))
    bias = random.integers(-9, 9, n).astype(np.float32)
    sizes = {"m": m, "n": n, "k": depth, "lda": depth, "ldb": n, "ldd": n}
    d = computed(gemm_of_two_consumers, "d", a=a, b=b, bias=bias, d=np.full((m, n), np.nan, np.float16), **sizes)
    assert (d == np.maximum(a.astype(np.float32) @ b.astype(np.float32) + bias, 0).astype(np.float16)).all()


def multistage_gemm() -> tp.Program:
    """A x B^T as kernels of sm_80 compute it: all threads copy by cp.async, two groups ahead, and multiply."""
    rows, columns, depth, stages = 64, 64, 32, 3
    k = tp.Kernel("multistage_gemm", target="sm_80", threads=128)
    m, n, extent_k = (k.launch(name, lower=1) for name in ("m", "n", "k"))
    line = k.launch("ld", divisor=8)
    tile_a, tile_b = tp.smem_tile("k", "f16", rows, depth), tp.smem_tile("k", "f16", columns, depth)
    load_a = tp.TiledCopyBuilder(k, "cp_async", tp.Tensor("a", "f16", [m, extent_k], [line, 1]), tile_a, threads=128)
    load_b = tp.TiledCopyBuilder(k, "cp_async", tp.Tensor("b", "f16", [n, extent_k], [line, 1]), tile_b, threads=128)
    atom = arch.mma_atom(16, 8, 16, "f16", "f16", "f32")
    mma = tp.TiledMmaBuilder(k, atom, tile_a, tile_b, warps=(2, 2))
    d = k.address("d", 4)
    k.set_grid(tp.ceil_div(m, rows), tp.ceil_div(n, columns))
    memory = k.shared(stages * (tile_a.bytes + tile_b.bytes), 1024)
    steps, warp = tp.ceil_div(extent_k, depth), tp.broadcast(k, k.thread // 32)

    def stage(step: tp.Number | int) -> tp.Number:
        return memory.address + step % stages * (tile_a.bytes + tile_b.bytes)

    def load(step: tp.Number | int) -> None:
        with k.If(step < steps):
            load_a.copy([k.block(0) * rows, step * depth], stage(step), thread=k.thread)
            load_b.copy([k.block(1) * columns, step * depth], stage(step) + tile_a.bytes, thread=k.thread)
        tp.cp_async_commit(k)

    for step in range(stages - 1):
        load(step)
    products = mma.zeros()
    with k.loop(steps) as step:
        tp.cp_async_wait(k, stages - 2)
        tp.synchronize(k)
        load(step + stages - 1)
        mma.fma(products, stage(step), stage(step) + tile_a.bytes, warp)
    for pair in mma.pairs(products, warp):
        row, column = k.block(0) * rows + pair.row, k.block(1) * columns + pair.column
        for at, value in ((column, pair.low), (column + 1, pair.high)):
            tp.store_global_if(k, tp.both(row < m, at < n), d, (row * n + at) * 4, [value])
    return k.build()


def test_a_multistage_gemm() -> None:
    random = np.random.default_rng(7)
    m, n, depth = 100, 70, 200
    a, b = (random.integers(-2, 3, (lines, depth)).astype(np.float16) for lines in (m, n))
    d = computed(multistage_gemm, "d", m=m, n=n, k=depth, ld=depth, a=a, b=b, d=nans(m, n))
    assert (d == a.astype(np.float32) @ b.astype(np.float32).T).all()


def refused(text: str, error: type[Exception] = InvalidArgument) -> Any:
    return pytest.raises(error, match=text)


def test_operators_of_values_name_the_function() -> None:
    k = tp.Kernel("operators")
    value = tp.constant(k, 1.0)
    with refused(r"write tp\.add\(k, a, b\)", TypeError):
        value + value  # type: ignore[operator]
    with refused(r"write tp\.less\(k, a, b\)", TypeError), k.If(value < 2.0):  # type: ignore[operator]
        pass
    with refused(r"write tp\.equal\(k, a, b\)", TypeError), k.If(value == 2.0):
        pass
    with refused(r"compare Values by tp\.less\(k, a, b\)", TypeError), k.If(value):  # type: ignore[arg-type]
        pass
    with refused("write `with k.loop", TypeError):
        for _ in k.loop(4):  # type: ignore[attr-defined]
            pass
    with refused("Numbers are divided by //", TypeError):
        k.thread / 2  # type: ignore[operator]
    with refused(r"\(thread - 1\) / 2: thread - 1 may be negative \(from -1 to 126\)"):
        (k.thread - 1) // 2
    with refused(r"a must be a Value or a Python number, got Number\(thread\); to_f32\(k, number\)", TypeError):
        tp.add(k, k.thread, 2.0)  # type: ignore[arg-type]
    assert value in [tp.add(k, value, 1), value]
    wide = tp.multiply(k, 2, tp.constant_f64(k, 0.5))
    assert (wide.type, tp.fma(k, 2, value, 1.5).type) == ("f64", "f32")


def test_arguments_of_a_run_are_named() -> None:
    k = tp.Kernel("copies", threads=128)
    n, x = k.launch("n"), k.address("x", 4)
    tp.TiledCopyBuilder(k, "cp_async", tp.Tensor("a", "f16", [n, 64], [64, 1]), tp.smem_tile("k", "f16", 64, 64), 128)
    tp.store_global(k, x, 0, [tp.to_b32(k, n)])
    program = k.build()
    array, a = np.zeros(1, np.int32), np.zeros((7, 64), np.float16)
    with refused("copies needs the arguments n, a, which were not given"):
        program.run(x=array)
    with refused("copies has no parameter 'm'"):
        program.run(m=1, x=array, a=a)
    with refused("n must be an integer, got 4.5", TypeError):
        program.run(n=4.5, x=array, a=a)
    with refused(r"x must be an array, got \[1\]", TypeError):
        program.run(n=1, x=[1], a=a)
    with refused("copies reads 'a' as elements of f16, the array has f32"):
        program.run(n=1, x=array, a=a.astype(np.float32))
    program.run(n=np.int64(7), x=array, a=a)
    assert array[0] == 7


@pytest.mark.parametrize("language", ["cuda", "mlir"])
def test_a_wrong_instruction_is_named_with_its_line(language: str) -> None:
    k = tp.Kernel("wrong", target="sm_80", threads=32)
    x = k.address("x", 4)
    (value,) = k.instruction("foo.f32 $0, $1;", tp.output("f32"), tp.constant(k, 1.0))
    tp.store_global(k, x, 0, [value])
    program = k.build()
    program.language = language
    (line,) = (at for at, text in enumerate(str(program).splitlines(), 1) if "foo.f32" in text)
    with refused(rf"error   : .*'foo'\n  at /?wrong\.tw:{line}: foo\.f32", tilewright.CompileError):
        program.run(x=nans(1))


def scheduled_tiles() -> tp.Program:
    """out = 2 x by tiles of 64, which CTAs take from a counter in global memory, as many as each has time for."""
    k = tp.Kernel("scheduled_tiles", target="sm_80", threads=64)
    n = k.launch("n")
    x, out, counter = k.address("x", 4), k.address("out", 4), k.address("counter", 4)
    k.set_grid(4)
    taken = k.shared(4).address
    tiles = tp.ceil_div(n, 64)
    tile = k.cell(k.block(), 1 << 31)
    with k.While(lambda: tile.get() < tiles):
        i = tile.get() * 64 + k.thread
        with k.If(i < n):
            tp.store_global(k, out, i * 4, [tp.multiply(k, tp.load_global(k, x, i * 4, "f32"), 2.0)])
        with k.If(k.thread == 0):
            tp.store_shared(k, taken, [tp.add(k, tp.atomic_add(k, counter, 0, tp.to_b32(k, 1)), k.blocks())])
        tp.synchronize(k)
        tile.set(k.number(tp.load_shared(k, taken, "b32")))
        tp.synchronize(k)
    return k.build()


@pytest.mark.parametrize("n", [1, 64, 1000])
def test_a_loop_without_counter_takes_tiles_from_a_scheduler(n: int) -> None:
    x = np.arange(n, dtype=np.float32)
    assert (computed(scheduled_tiles, "out", n=n, x=x, out=nans(n), counter=np.zeros(1, np.int32)) == 2 * x).all()


def found_places() -> tp.Program:
    """The place of each value in sorted keys, by bisection, and the number of its steps, which differ among threads."""
    k = tp.Kernel("found_places", target="sm_80", threads=64)
    n, keys, values, out = k.launch("n"), k.address("keys", 4), k.address("values", 4), k.address("out", 8)
    value = tp.load_global(k, values, k.thread * 4, "f32")
    low, high, steps = k.cell(0, 1 << 31), k.cell(n, 1 << 31), k.cell(tp.to_b32(k, 0))
    last = k.cell(tp.constant(k, -1.0))  # a value that the loop carries
    with k.While(lambda: low.get() < high.get()):
        middle = (low.get() + high.get()) // 2
        last.set(tp.load_global(k, keys, middle * 4, "f32"))
        with k.If(tp.less(k, last.get(), value)):
            low.set_within(middle + 1)
        with k.Else():
            high.set_within(middle)
        steps.set(tp.add(k, steps.get(), 1))
    tp.store_global(k, out, k.thread * 8, [tp.to_b32(k, low.get()), steps.get()])
    return k.build()


@pytest.mark.parametrize("n", [0, 1, 37])
def test_a_loop_without_counter_ends_at_another_iteration_in_each_thread(n: int) -> None:
    random = np.random.default_rng(6)
    keys, values = np.sort(random.random(n).astype(np.float32)), random.random(64).astype(np.float32)
    padded = np.append(keys, np.float32(9))
    out = computed(found_places, "out", n=n, keys=padded, values=values, out=np.zeros((64, 2), np.int32))
    assert (out[:, 0] == np.searchsorted(keys, values)).all() and (out[:, 1] <= n.bit_length()).all()


def test_the_condition_of_a_loop_is_a_function_of_cells() -> None:
    k = tp.Kernel("conditions", target="sm_80", threads=32)
    left = k.cell(tp.constant(k, 8.0))
    with pytest.raises(TypeError, match="so that it is a function: lambda: cell.get"), k.While(k.thread < 3):
        pass
    with (
        pytest.raises(InvalidArgument, match="the condition of a loop appends no instructions: let the body set a cell"),
        k.While(lambda: tp.less(k, 0.0, left.get())),
    ):
        pass


def test_the_listing_has_loops_without_counter() -> None:
    assert "while n_0 < ceil_div(n, 64), n_0 = block_x then r_1:" in str(scheduled_tiles())
