"""tilewright.program: kernels that are recorded in Python, run on the emulator."""

import traceback
from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright import InvalidArgument, arch
from tilewright import program as tp


@pytest.fixture(autouse=True)
def _emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_DEVICE", "emulator:sm_90a")


def vector_add() -> tp.Program:
    k = tp.Kernel("vector_add", threads=128)
    n = k.launch("n")
    x, y, out = (k.address(name, 4) for name in ("x", "y", "out"))
    k.set_grid(tp.ceil_div(n, 128))
    i = k.block() * 128 + k.thread
    with k.If(i < n):
        sum_ = tp.add(k, tp.load_global(k, x, i * 4, "f32"), tp.load_global(k, y, i * 4, "f32"))
        tp.store_global(k, out, i * 4, [sum_])
    return k.build()


def nans(*shape: int) -> np.ndarray:
    return np.full(shape, np.nan, np.float32)


def test_a_program_is_printed_lowered_and_run() -> None:
    program = vector_add()
    listing = str(program)
    assert listing.startswith(" 1  kernel vector_add: sm_90a, 128 threads")
    assert "if thread + block_x * 128 < n:" in listing and "add.rn.f32" in listing
    assert program.parameters == [("n", "integer"), ("x", "address"), ("y", "address"), ("out", "address")]
    assert 'extern "C"' in program.cuda() and "llvm.func" in program.mlir()
    assert ".entry vector_add" in program.ptx()
    for n in (1, 300):
        x, y, out = np.arange(n, dtype=np.float32), np.full(n, 100, np.float32), nans(n)
        program.run(n=n, x=x, y=y, out=out)
        assert (out == x + y).all()


def test_arguments_are_checked() -> None:
    program, x = vector_add(), np.zeros(4, np.float32)
    with pytest.raises(InvalidArgument, match="vector_add has no parameter 'z'; it has: n, x, y, out"):
        program.run(n=4, x=x, y=x, out=x, z=1)
    with pytest.raises(InvalidArgument, match="'y' has no argument"):
        program.launch(n=4, x=256, out=256)
    assert program.check(n=4, x=256, y=2, out=256).reason == "the address of y must be a multiple of 4 bytes, got 0x2"
    assert program.check(n=0, x=256, y=256, out=256).reason == "the grid has 0 CTAs"
    assert program.launch(n=300, x=256, y=256, out=256).grid == [3, 1, 1]


def test_every_name_has_a_sentence() -> None:
    """The first line of a function's text is its signature."""
    for name in tp.__all__:
        text = (getattr(tp, name).__doc__ or "").strip()
        described = [line for line in text.splitlines() if line and not line.startswith(f"{name}(")]
        assert described, name


def test_numbers_are_expressions() -> None:
    k = tp.Kernel("numbers", threads=32)
    n, thread = k.launch("n", divisor=8, upper=1000), k.thread
    assert (str(n * 2 + 1 + n), str(7 - thread), str(2 * (thread // 4) % 4)) == (
        "n * 3 + 1",
        "7 - thread",
        str(thread // 4 % 2 * 2),
    )
    assert ((n // 8).divisor, n.upper, (thread & 3).upper, (1 << (thread % 4)).upper) == (1, 1000, 3, 8)
    assert bool((n % 8) == 0) and int((n % 8) + 5) == 5  # decided while the kernel is recorded
    assert (n == n).is_static and hash(n * 2) == hash(n + n)
    with pytest.raises(TypeError, match=r"'thread < 5' is known only when the kernel runs.*k\.If"):
        if thread < 5:
            pass
    with pytest.raises(TypeError, match=r"k\.If"):
        assert 3 < thread < 5
    with pytest.raises(TypeError, match="no Python integer"):
        range(n)
    with pytest.raises(TypeError):
        thread + 0.5
    with pytest.raises(TypeError):
        thread + True
    with pytest.raises(InvalidArgument):
        thread + tp.Kernel("other").thread


def test_control_flow_carries_cells() -> None:
    """Cells that change places, a cell that one arm changes, and an Else."""
    k = tp.Kernel("control_flow", threads=32)
    n, out = k.launch("n"), k.address("out", 4)
    a, b = k.cell(tp.constant(k, 1.0)), k.cell(tp.constant(k, 2.0))
    evens, steps = k.cell(0, 1 << 20), k.cell(0, 1 << 20)
    with k.loop(n) as i:
        old = a.get()
        a.set(b.get())
        b.set(old)
        with k.If(i % 2 == 1):
            b.set(tp.add(k, b.get(), tp.constant(k, 10.0)))
        with k.Else():
            evens.set_within(evens.get() + 1)
            a.set(tp.add(k, a.get(), tp.constant(k, 0.5)))
        with k.loop(1, i, 2):
            steps.set_within(steps.get() + 1)
    with k.If(k.thread == 0):
        results = [a.get(), b.get(), tp.to_f32(k, evens.get()), tp.to_f32(k, steps.get())]
        for index, value in enumerate(results):
            tp.store_global(k, out, index * 4, [value])
    program = k.build()
    for count in (0, 1, 2, 5):
        x, y, even, odd_steps = 1.0, 2.0, 0, 0
        for i in range(count):
            x, y = y, x
            if i % 2 == 1:
                y += 10
            else:
                even += 1
                x += 0.5
            odd_steps += len(range(1, i, 2))
        out_array = nans(4)
        program.run(n=count, out=out_array)
        assert out_array.tolist() == [x, y, even, odd_steps]


def test_what_is_decided_while_recording() -> None:
    """Branches whose condition is static, and a loop that never runs."""
    k = tp.Kernel("decided", threads=32)
    out, value, number = k.address("out", 4), k.cell(tp.constant(k, 1.0)), k.cell(0, 8)
    with k.If(k.thread == k.thread):
        value.set(tp.constant(k, 2.0))
        number.set(3)
    with k.Else():
        value.set(tp.constant(k, 5.0))
    with k.If(0):
        value.set(tp.constant(k, 7.0))
    with k.loop(0):
        value.set(tp.constant(k, 9.0))
    tp.store_global(k, out, k.thread * 4, [tp.add(k, value.get(), tp.to_f32(k, number.get()))])
    result = nans(32)
    k.build().run(out=result)
    assert (result == 5).all()


def test_else_must_follow_its_if() -> None:
    k = tp.Kernel("refused")
    with pytest.raises(InvalidArgument, match="must directly follow the end of its first arm"), k.Else():
        pass
    with k.If(k.thread < 1):
        pass
    tp.synchronize(k)
    with pytest.raises(InvalidArgument, match="must directly follow"), k.Else():
        pass
    with k.If(k.thread < 1):
        pass
    with k.Else():
        pass
    with pytest.raises(InvalidArgument, match="must directly follow"), k.Else():
        pass
    k.build()


def test_errors_are_at_the_authors_line() -> None:
    k = tp.Kernel("refused")
    inside = None
    with k.loop(4) as i:
        inside, cell = i, k.cell(0, 4)
    try:
        tp.to_f32(k, inside + 1)  # the author's line
    except InvalidArgument as refused:
        assert "exists only in a loop or branch that has ended" in str(refused)
        (last, *_) = [each for each in reversed(traceback.extract_tb(refused.__traceback__)) if each.filename == __file__]
        assert "the author's line" in (last.line or "")
    else:
        pytest.fail("nothing was refused")
    with pytest.raises(InvalidArgument, match="the cell was made in a loop or branch that has ended"):
        cell.get()
    with pytest.raises(InvalidArgument, match=r"names \$1, but has 1 operands"):
        k.instruction("mov.b32 $0, $1;", tp.output("b32"))
    with pytest.raises(InvalidArgument, match="b16, b32, b64, f32 or f64, got 'f8'"):
        tp.output("f8")
    with pytest.raises(InvalidArgument, match="300000 bytes of shared memory, sm_90a has 232448"):
        k.shared(300000)
    with pytest.raises(ZeroDivisionError), k.loop(2):
        raise ZeroDivisionError
    with pytest.raises(InvalidArgument, match="1 loops or branches are still open"):
        k.build()


def test_a_kernel_is_built_once() -> None:
    k = tp.Kernel("once")
    k.build()
    with pytest.raises(InvalidArgument, match="the kernel has been built"):
        tp.synchronize(k)
    with pytest.raises(InvalidArgument, match="the kernel has been built"):
        k.build()


def test_numbers_and_cells_outlive_their_kernel() -> None:
    def made() -> tuple[tp.Number, tp.NumberCell]:
        k = tp.Kernel("gone")
        return k.launch("n") * 3, k.cell(1, 4)

    number, cell = made()
    assert (str(number), str(cell.get())) == ("n * 3", "1")


def test_ptx_of_ones_own_and_shared_memory() -> None:
    """Reverses 64 integers through shared memory, with popc of the index added."""
    k = tp.Kernel("reverse", threads=64)
    x, out = k.address("x", 4), k.address("out", 4)
    memory = k.shared(64 * 4)
    tp.store_shared(k, memory.address + k.thread * 4, [tp.load_global(k, x, k.thread * 4, "b32")])
    tp.synchronize(k)
    value = tp.load_shared(k, memory.address + (63 - k.thread) * 4, "b32")
    (bits,) = k.instruction("popc.b32 $0, $1;", tp.output("b32"), tp.number(k.thread), effect="pure")
    (total,) = k.instruction("add.u32 $0, $1, $2;", tp.output("b32"), value, bits, effect="pure")
    tp.store_global(k, out, k.thread * 4, [total])
    numbers, result = np.arange(64, dtype=np.int32) * 7, np.zeros(64, np.int32)
    k.build().run(x=numbers, out=result)
    assert result.tolist() == [int(numbers[63 - i]) + i.bit_count() for i in range(64)]


def test_the_emulator_names_the_line_of_a_race() -> None:
    k = tp.Kernel("race", threads=64)
    x, out = k.address("x", 4), k.address("out", 4)
    memory = k.shared(64 * 4)
    tp.store_shared(k, memory.address + k.thread * 4, [tp.load_global(k, x, k.thread * 4, "b32")])
    tp.store_global(k, out, k.thread * 4, [tp.load_shared(k, memory.address + (63 - k.thread) * 4, "b32")])
    program = k.build()
    (line,) = (at for at, text in enumerate(str(program).splitlines(), 1) if "ld.shared" in text)
    with pytest.raises(tilewright.EmulationError, match=rf"race\.tw:{line}\b"):
        program.run(x=np.zeros(64, np.int32), out=np.zeros(64, np.int32))


MIXES = ["tma_wgmma", "cp_async_wgmma", "tma_mma", "tma_register_wgmma"]


def small_integers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float16)


def test_gemm_of_the_library() -> None:
    a, b, d = small_integers(72, 64), small_integers(64, 40, seed=1), nans(72, 40)
    args = tilewright.GemmArguments(a, b, d, accumulator_type="f32")
    shape: dict[str, Any] = {"warp_count": (4, 1, 1), "op_class": "tensor_op", "mix": "tma_wgmma"}
    design = tilewright.BLASDesignMetadata((64, 64, 64), stages=3, **shape)
    listing = str(tp.gemm("library_gemm", args, design))
    assert "kernel library_gemm: sm_90a, 256 threads" in listing and "wgmma.mma_async.sync.aligned.m64n64k16" in listing
    refused = tilewright.BLASDesignMetadata((64, 64, 64), stages=20, **shape)
    with pytest.raises(InvalidArgument, match=r"bytes of shared memory"):
        tp.gemm("library_gemm", args, refused)


def test_a_tile_of_the_other_major_is_refused_in_these_words() -> None:
    k = tp.Kernel("majors", threads=128)
    tile_a, tile_b = tp.smem_tile("k", "f16", 64, 64), tp.smem_tile("mn", "f16", 128, 64)
    atom = arch.wgmma_atom("f16", "f16", "f32")
    with pytest.raises(InvalidArgument, match="^B: .*; the tile is MN-major, and its major is given as K-major$"):
        tp.TiledMmaBuilder(k, atom, tile_a, tile_b, n=128)
    assert tp.TiledMmaBuilder(k, atom, tile_a, tile_b, n=128, b_major="mn").threads == 128


def authored_gemm(mix: str) -> tp.Program:
    """A persistent, warp-specialised GEMM with the regions of Python; atoms are exchanged, the calls are the same."""
    k = tp.Kernel("authored", threads=256)
    m, n, depth = (k.launch(name, lower=1) for name in ("m", "n", "k"))
    tile_a, tile_b = tp.smem_tile("k", "f16", 64, 64), tp.smem_tile("k", "f16", 64, 64)
    copy_atom = "cp_async" if mix == "cp_async_wgmma" else "tma"
    load_a = tp.TiledCopyBuilder(k, copy_atom, tp.Tensor("a", "f16", [m, depth], [k.launch("lda", 8), 1]), tile_a, 128)
    load_b = tp.TiledCopyBuilder(k, copy_atom, tp.Tensor("b", "f16", [n, depth], [k.launch("ldb", 8), 1]), tile_b, 128)
    if mix == "tma_mma":
        mma = tp.TiledMmaBuilder(
            k, arch.mma_atom(16, 8, 16, "f16", "f16", "f32"), tile_a, tile_b, warps=(2, 2)
        )
    else:
        source = "registers" if mix == "tma_register_wgmma" else "shared_memory"
        mma = tp.TiledMmaBuilder(k, arch.wgmma_atom("f16", "f16", "f32", source), tile_a, tile_b, n=64)
    d, ldd = k.address("d", 4), k.launch("ldd")
    ring = tp.Ring(
        k,
        2,
        tile_a.bytes + tile_b.bytes,
        transaction_bytes=load_a.transaction_bytes + load_b.transaction_bytes,
        writer_arrivals=1 if copy_atom == "tma" else 128,
        reader_arrivals=4,
    )
    with k.If(k.thread == 0):
        ring.initialise()
    tp.synchronize(k)
    roles = tp.Roles(k, tp.Role("producer", registers=40), tp.Role("consumer", registers=232))
    tiles = tp.PersistentTiles(k, tp.ceil_div(m, 64), tp.ceil_div(n, 64), max_groups=2)
    steps = tp.ceil_div(depth, 64)

    def produce(me: tp.RoleThread) -> None:
        writer = tp.RingWriter(k, ring)
        with tiles.for_each() as tile, k.loop(steps) as step, writer.write() as stage:
            to, barrier = ring.stage(stage), ring.full(stage)
            load_a.copy([tile.m * 64, step * 64], to, thread=me.thread, barrier=barrier)
            load_b.copy([tile.n * 64, step * 64], to + tile_a.bytes, thread=me.thread, barrier=barrier)
            if copy_atom == "cp_async":
                tp.cp_async_arrive(k, barrier)

    with roles.play("producer") as me:
        if copy_atom == "cp_async":
            produce(me)
        else:
            with k.If(me.thread < 32), tp.by_one_thread(k):
                produce(me)

    with roles.play("consumer") as me:
        warp = tp.broadcast(k, me.thread // 32)

        def release(barrier: tp.Number) -> None:
            tp.synchronize_warp(k)
            with k.If(me.thread % 32 == 0):
                tp.mbarrier_arrive(k, barrier)

        reader = tp.RingReader(k, ring, release)
        with tiles.for_each() as tile:
            products = mma.zeros()
            with k.loop(steps):
                if mix == "tma_mma":
                    with reader.read() as stage:
                        mma.fma(products, ring.stage(stage), ring.stage(stage) + tile_a.bytes, warp)
                else:
                    with reader.read_by_wgmma(products) as stage:
                        mma.fma(products, ring.stage(stage), ring.stage(stage) + tile_a.bytes, warp)
            if mma.uses_wgmma:
                reader.drain(products)
            for pair in mma.pairs(products, warp):
                row = tile.m * 64 + pair.row
                for column, value in ((pair.column, pair.low), (pair.column + 1, pair.high)):
                    inside = tp.both(row < m, tile.n * 64 + column < n)
                    tp.store_global_if(k, inside, d, (row * ldd + tile.n * 64 + column) * 4, [value])
    return k.build()


@pytest.mark.parametrize(("mix", "language"), [*((mix, "cuda") for mix in MIXES), ("tma_wgmma", "mlir")])
def test_a_gemm_is_authored_in_python(mix: str, language: str) -> None:
    program = authored_gemm(mix)
    program.language = language
    if language == "mlir":
        try:
            program.ptx("mlir")
        except tilewright.ToolchainNotFound as missing:
            pytest.skip(str(missing))
    m, n, depth = 70, 130, 200
    a, b, d = small_integers(m, depth), small_integers(n, depth, seed=1), nans(m, n)
    program.run(m=m, n=n, k=depth, lda=depth, ldb=depth, ldd=n, a=a, b=b, d=d)
    assert (d == a.astype(np.float32) @ b.T.astype(np.float32)).all()


DOUBLE = tilewright.Operation(
    "double_program",
    [
        tilewright.OperandDeclaration("x", ("n",), dtypes=["f32"]),
        tilewright.OperandDeclaration("out", ("n",), access="write", dtypes=["f32"]),
    ],
    reference=lambda x, out: np.multiply(x, 2, out=out),
)


class Double(tp.ProgramKernel):
    """A registered kernel that is a program."""

    @staticmethod
    def generate_kernels(metadata_filter, epilogue_args, target):
        k = tp.Kernel("double_kernel", target=target, threads=64)
        n, x, out = k.launch("n", upper=4096), k.address("x", 4), k.address("out", 4)
        k.set_grid(tp.ceil_div(n, 64))
        i = k.block() * 64 + k.thread
        with k.If(i < n):
            tp.store_global(k, out, i * 4, [tp.multiply(k, tp.load_global(k, x, i * 4, "f32"), tp.constant(k, 2.0))])
        operands = tilewright.OperandsMetadata(DOUBLE, x="f32", out="f32")
        return [Double(tilewright.KernelMetadata("double_f32", Double, operands), k.build())]

    def _arguments(self, args):
        return {"n": args.x.shape[0], "x": args.x, "out": args.out}


def test_a_registered_kernel_is_a_program() -> None:
    tilewright.register(Double)
    try:
        x, out = np.arange(100, dtype=np.float32), nans(100)
        args = tilewright.OperationArguments(DOUBLE, x=x, out=out)
        (kernel,) = tilewright.find_kernels(args)
        assert kernel.metadata.kernel_class is Double
        tilewright.run(args)
        assert (out == 2 * x).all() and args.verify()
        large = np.zeros(5000, np.float32)
        refused = kernel.supports(tilewright.OperationArguments(DOUBLE, x=large, out=large.copy()))
        assert refused.reason == "n must be from 0 to 4096, got 5000"
    finally:
        tilewright.unregister(Double)
