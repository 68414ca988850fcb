"""A kernel of one's own: softmax over the rows of A x B in one launch, D[m, :] = softmax(A[m, :] x B), for n <= 256.

A CTA computes 64 rows. One warpgroup loads tiles of A and B by TMA, the other multiplies them by wgmma and keeps all
columns of its rows in registers, so that A x B is never stored.
"""

import math

import numpy

from tilewright import arch
from tilewright import program as tp

ROWS, COLUMNS, DEPTH, STAGES = 64, 256, 64, 4


def fused_softmax() -> tp.Program:
    k = tp.Kernel("fused_softmax", target="sm_90a", threads=256)
    m, n, depth = k.launch("m", lower=1), k.launch("n", lower=1, upper=COLUMNS), k.launch("k", lower=1)
    lda, ldb, ldd = k.launch("lda", divisor=8), k.launch("ldb", divisor=8), k.launch("ldd")
    tile_a, tile_b = tp.smem_tile("k", "f16", ROWS, DEPTH), tp.smem_tile("k", "f16", COLUMNS, DEPTH)
    load_a = tp.TiledCopyBuilder(k, "tma", tp.Tensor("a", "f16", [m, depth], [lda, 1]), tile_a)
    load_b = tp.TiledCopyBuilder(k, "tma", tp.Tensor("b", "f16", [n, depth], [ldb, 1]), tile_b)
    mma = tp.TiledMmaBuilder(k, arch.wgmma_atom("f16", "f16", "f32"), tile_a, tile_b, n=COLUMNS)
    d = k.address("d", 4)
    k.set_grid(tp.ceil_div(m, ROWS))

    transaction_bytes = load_a.transaction_bytes + load_b.transaction_bytes
    ring = tp.Ring(
        k, STAGES, tile_a.bytes + tile_b.bytes, transaction_bytes=transaction_bytes, reader_arrivals=mma.threads
    )
    with k.If(k.thread == 0):
        ring.initialise()
    tp.synchronize(k)

    roles = tp.Roles(k, tp.Role("producer"), tp.Role("consumer"))
    steps = tp.ceil_div(depth, DEPTH)
    with roles.play("producer") as me, k.If(me.thread < 32), tp.by_one_thread(k):
        writer = tp.RingWriter(k, ring)
        with k.loop(steps) as step, writer.write() as stage:
            at, barrier = ring.stage(stage), ring.full(stage)
            load_a.copy([k.block() * ROWS, step * DEPTH], at, barrier=barrier)
            load_b.copy([0, step * DEPTH], at + tile_a.bytes, barrier=barrier)

    with roles.play("consumer") as me:
        warp = tp.broadcast(k, me.thread // 32)
        reader = tp.RingReader(k, ring)
        products = mma.zeros()
        with k.loop(steps), reader.read_by_wgmma(products) as stage:
            mma.fma(products, ring.stage(stage), ring.stage(stage) + tile_a.bytes, warp)
        reader.drain(products)
        pairs = mma.pairs(products, warp)
        for in_row in (pairs[0::2], pairs[1::2]):  # a thread has the accumulators of two rows
            store_softmax(k, in_row, k.block() * ROWS + in_row[0].row, (m, n), d, ldd)
    return k.build()


def store_softmax(
    k: tp.Kernel,
    pairs: list[tp.AccumulatorPair],
    row: tp.Number,
    extents: tuple[tp.Number, tp.Number],
    d: tp.Value,
    ldd: tp.Number,
) -> None:
    """Appends the softmax of one row, of which four adjacent lanes have the values, and its stores."""
    m, n = extents
    low_columns = [(pair.column, pair.low) for pair in pairs]
    values = low_columns + [(pair.column + 1, pair.high) for pair in pairs]
    nothing = tp.constant(k, -math.inf)
    inside = [(column, tp.choose(k, column < n, value, nothing)) for column, value in values]

    largest = inside[0][1]
    for _, value in inside[1:]:
        largest = tp.maximum(k, largest, value)
    for mask in (1, 2):
        largest = tp.maximum(k, largest, tp.shuffle_xor(k, largest, mask))

    # e^(x - largest) = 2^(x log2(e) - largest log2(e))
    log2_e = tp.constant(k, math.log2(math.e))
    shift = tp.multiply(k, largest, tp.constant(k, -math.log2(math.e)))
    powers = [(column, tp.exp2(k, tp.fma(k, value, log2_e, shift))) for column, value in inside]
    total = powers[0][1]
    for _, power in powers[1:]:
        total = tp.add(k, total, power)
    for mask in (1, 2):
        total = tp.add(k, total, tp.shuffle_xor(k, total, mask))

    scale = tp.reciprocal(k, total)
    for column, power in powers:
        holds = tp.both(row < m, column < n)
        tp.store_global_if(k, holds, d, (row * ldd + column) * 4, [tp.multiply(k, power, scale)])


def main() -> None:
    m, n, depth = 100, 200, 136
    random = numpy.random.default_rng(2026)
    a, b = (random.normal(scale=0.3, size=shape).astype(numpy.float16) for shape in ((m, depth), (n, depth)))
    d = numpy.full((m, n), numpy.nan, numpy.float32)
    fused_softmax().run(m=m, n=n, k=depth, lda=depth, ldb=depth, ldd=n, a=a, b=b, d=d)

    product = a.astype(numpy.float64) @ b.T.astype(numpy.float64)
    powers = numpy.exp(product - product.max(axis=1, keepdims=True))
    error = abs(d - powers / powers.sum(axis=1, keepdims=True)).max()
    print(f"largest error: {error:.1e}")
    assert error < 1e-5


if __name__ == "__main__":
    main()
