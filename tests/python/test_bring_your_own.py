"""A kernel from outside the library, examples/f64_gemm_kernel.py, is discovered, refused, compiled, run, saved and loaded
like the built-in ones. B1 to B26 are the rows of the acceptance table for user kernels. The tests run on the emulator, and
on a GPU if there is one with PyTorch."""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright import GemmArguments, InvalidArgument, Kernel, KernelMetadata, ShapeOnly

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))
from f64_gemm_kernel import F64GemmKernel  # noqa: E402


@pytest.fixture(params=["numpy", "torch.cuda"])
def make(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """f64 arrays of integers, or of NaN if no integers are given."""
    if request.param == "torch.cuda":
        torch = pytest.importorskip("torch")
        if not torch.cuda.is_available():
            pytest.skip("no GPU")
    random = np.random.default_rng(7)

    def array(*shape: int, empty: bool = False, dtype: str = "float64") -> Any:
        values = np.full(shape, np.nan) if empty else random.integers(-4, 5, shape)
        values = values.astype(dtype)
        return values if request.param == "numpy" else torch.from_numpy(values).cuda()

    yield array


def is_mine(metadata: KernelMetadata) -> bool:
    return metadata.kernel_class == F64GemmKernel


def host(array: Any) -> Any:
    return array if isinstance(array, np.ndarray) else array.cpu().numpy()


def problem(make: Callable[..., Any], batch: int = 1, m: int = 48, n: int = 40, k: int = 24) -> tuple[Any, Any, Any]:
    return make(batch, m, k), make(batch, k, n), make(batch, m, n, empty=True)


def mine(args: GemmArguments) -> Any:
    return tilewright.find_kernels(args, metadata_filter=is_mine)


@contextlib.contextmanager
def brought(
    args: GemmArguments, name: str, source: Any, launch: Callable[[GemmArguments], tilewright.Launch]
) -> Iterator[Kernel]:
    """Registers a class for the duration of the context and returns its kernel, which has F64GemmKernel's metadata except
    for the name."""
    old = mine(args)[0].metadata

    @tilewright.register
    class Brought(Kernel):
        @staticmethod
        def generate_kernels(metadata_filter: Any, epilogue_args: Any = None, target: Any = None) -> list[Kernel]:
            return [Brought(KernelMetadata(name, Brought, old.operands, old.design))]

        def _source(self) -> Any:
            return source

        def _launch(self, args: GemmArguments) -> tilewright.Launch:
            return launch(args)

    try:
        yield tilewright.find_kernels(args, providers=["Brought"])[0]
    finally:
        tilewright.unregister(Brought)


def names(kernels: Any) -> list[str]:
    return [kernel.metadata.kernel_name for kernel in kernels]


def refusal(args: GemmArguments, kernel: str) -> tilewright.RefusedKernel:
    return next(refused for refused in tilewright.explain(args).refused if refused.name == kernel)


def test_b1_b2_sixteen_are_listed_in_order() -> None:
    layouts = ["".join(letters) for letters in itertools.product("tn", repeat=3)]
    expected = [f"F64GemmKernel_tile{tile}_{layout}" for tile in ("32x32", "16x16") for layout in layouts]
    assert names(tilewright.list_kernels(is_mine)) == expected


def test_b3_b4_b5_two_are_found_and_both_compute(make: Callable[..., Any]) -> None:
    a, b, out = problem(make)
    args = GemmArguments(a, b, out, accumulator_type="float64")
    kernels = mine(args)
    assert names(kernels) == ["F64GemmKernel_tile32x32_ttt", "F64GemmKernel_tile16x16_ttt"]
    everything = names(tilewright.find_kernels(args))
    assert set(names(kernels)) < set(everything)
    for kernel in kernels:
        out[:] = float("nan")
        kernel.run(args)
        np.testing.assert_array_equal(host(out), host(a) @ host(b))


def test_b6_b7_filters_see_the_design(make: Callable[..., Any]) -> None:
    args = GemmArguments(*problem(make))

    def with_tile(m: int) -> Any:
        return tilewright.find_kernels(
            args, metadata_filter=lambda metadata: is_mine(metadata) and metadata.design.tile_shape[0] == m
        )

    assert len(with_tile(256)) == 0
    assert names(with_tile(16)) == ["F64GemmKernel_tile16x16_ttt"]


@pytest.mark.parametrize("layouts", list(itertools.product("tn", repeat=3)), ids="".join)
def test_b8_all_layouts(make: Callable[..., Any], layouts: tuple[str, str, str]) -> None:
    def array(layout: str, rows: int, columns: int, **options: Any) -> Any:
        if layout == "t":
            return make(2, rows, columns, **options)
        return make(2, columns, rows, **options).swapaxes(1, 2)

    a, b = array(layouts[0], 20, 12), array(layouts[1], 12, 18)
    out = array(layouts[2], 20, 18, empty=True)
    kernels = mine(GemmArguments(a, b, out))
    assert [name[-3:] for name in names(kernels)] == ["".join(layouts)] * 2
    for kernel in kernels:
        out[:] = float("nan")
        kernel.run(GemmArguments(a, b, out))
        np.testing.assert_array_equal(host(out), host(a) @ host(b))


def test_b9_its_own_condition_is_reported(make: Callable[..., Any]) -> None:
    kernel = mine(GemmArguments(*problem(make)))[0]
    flat = GemmArguments(*(array[0] for array in problem(make)))
    assert len(mine(flat)) == 0
    status = kernel.supports(flat)
    assert not status and status.reason == "All operands must be rank 3."
    assert refusal(flat, kernel.name).reason == "All operands must be rank 3."
    with pytest.raises(ValueError, match="All operands must be rank 3."):
        kernel.run(flat)


def test_b10_unsupported_types_are_reported(make: Callable[..., Any]) -> None:
    kernel = mine(GemmArguments(*problem(make)))[0]
    floats = GemmArguments(
        make(1, 8, 8, dtype="float32"), make(1, 8, 8, dtype="float32"), make(1, 8, 8, empty=True, dtype="float32")
    )
    assert len(mine(floats)) == 0
    assert kernel.supports(floats).code == "types"
    assert "f32" in kernel.supports(floats).reason and "f64" in kernel.supports(floats).reason
    with pytest.raises(InvalidArgument, match="f64 operands accumulate in f64, got f32"):
        GemmArguments(*problem(make), accumulator_type="float32")


def test_b11_an_unsupported_epilogue_is_reported(make: Callable[..., Any]) -> None:
    kernel = mine(GemmArguments(*problem(make)))[0]
    args = GemmArguments(*problem(make), epilogue="relu")
    assert len(mine(args)) == 0
    assert kernel.supports(args).code == "epilogue"
    assert not kernel.supports(GemmArguments(*problem(make), alpha=2.0))


def test_b12_no_workspace(make: Callable[..., Any]) -> None:
    a, b, out = problem(make)
    args = GemmArguments(a, b, out)
    kernel = mine(args)[0]
    assert kernel.get_workspace_size(args) == 0
    kernel.run(args, workspace=None)
    np.testing.assert_array_equal(host(out), host(a) @ host(b))


@pytest.mark.parametrize("target", [None, 90, "sm_90a", "sm_80", 10])
def test_b13_targets(make: Callable[..., Any], target: Any) -> None:
    args = GemmArguments(*problem(make))
    assert len(tilewright.find_kernels(args, metadata_filter=is_mine, target=target)) == 2


def test_b14_alignment() -> None:
    memory = np.zeros(100, np.uint8)
    begin = -memory.__array_interface__["data"][0] % 8
    shifted = memory[begin + 4 : begin + 4 + 64].view(np.float64).reshape(1, 2, 4)
    b, out = np.ones((1, 4, 2)), np.empty((1, 2, 2))
    with pytest.raises(InvalidArgument, match="A must be aligned to its element size of 8 bytes"):
        GemmArguments(shifted, b, out)
    aligned = memory[begin + 8 : begin + 8 + 64].view(np.float64).reshape(1, 2, 4)
    args = GemmArguments(aligned, b, out)
    assert len(mine(args)) == 2
    mine(args)[0].run(args)
    np.testing.assert_array_equal(out, aligned @ b)


@pytest.mark.parametrize(
    "extents", [(1, 3, 5, 7), (1, 1, 33, 17), (1, 33, 1, 17), (1, 33, 17, 1), (4, 19, 21, 23), (4, 1, 1, 1)]
)
@pytest.mark.parametrize("padding", [0, 3])
def test_b15_odd_sizes_and_padded_strides(
    make: Callable[..., Any], extents: tuple[int, int, int, int], padding: int
) -> None:
    batch, m, n, k = extents
    a = make(batch, m + padding, k + padding)[:, :m, :k]
    b = make(batch, k + padding, n + padding)[:, :k, :n]
    out = make(batch, m + padding, n + padding, empty=True)[:, :m, :n]
    kernels = mine(GemmArguments(a, b, out))
    assert len(kernels) == 2
    for kernel in kernels:
        out[:] = float("nan")
        kernel.run(GemmArguments(a, b, out))
        np.testing.assert_array_equal(host(out), host(a) @ host(b))


def test_b16_metadata_is_data(make: Callable[..., Any]) -> None:
    metadata = mine(GemmArguments(*problem(make)))[0].metadata
    assert metadata.kernel_name == "F64GemmKernel_tile32x32_ttt"
    assert metadata.kernel_class is F64GemmKernel
    assert metadata.min_cc == 0
    assert isinstance(metadata.design, tilewright.BLASDesignMetadata)
    assert metadata.design.tile_shape == (32, 32, 1)
    for operand in (metadata.operands.A, metadata.operands.B, metadata.operands.out):
        assert operand.dtype == tilewright.DType.f64
        assert operand.stride == (0, 0, 1)
        assert operand.divisibility == 1
    assert metadata.operands.accumulator_type == tilewright.DType.f64
    again = mine(GemmArguments(*problem(make)))[0].metadata
    assert metadata == again and hash(metadata) == hash(again)
    assert json.loads(metadata.to_json())["design"]["threadblock_shape"] == [32, 32, 1]
    with pytest.raises(AttributeError):
        metadata.kernel_name = "another"


def test_b17_registered_once_and_unregistered(make: Callable[..., Any]) -> None:
    args = GemmArguments(*problem(make))
    assert tilewright.register(F64GemmKernel) is F64GemmKernel
    assert len(mine(args)) == 2
    try:
        assert tilewright.unregister(F64GemmKernel)
        assert not tilewright.unregister(F64GemmKernel)
        assert (
            len(tilewright.find_kernels(args, metadata_filter=lambda metadata: metadata.family == "F64GemmKernel")) == 0
        )
    finally:
        tilewright.register(F64GemmKernel)
    with pytest.raises(InvalidArgument, match="'simt_gemm' is a family shipped with Tilewright"):
        tilewright.unregister("simt_gemm")


def test_scoped_registrations_restore_the_classes_of_before() -> None:
    def named(name: str) -> type[Kernel]:
        return type(name, (Kernel,), {"generate_kernels": staticmethod(lambda *_: [])})

    first, second, other = named("Twice"), named("Twice"), named("Once")
    assert tilewright.register(first) is first
    try:
        with pytest.raises(Oddity), tilewright.scoped_registrations():
            tilewright.register(second)
            tilewright.register(other)
            assert not tilewright.unregister(first), "another class of its name has replaced it"
            raise Oddity
        assert not tilewright.unregister(other)
        assert not tilewright.unregister(second)
        with tilewright.scoped_registrations():
            assert tilewright.unregister("Twice")
        assert tilewright.unregister(first)
    finally:
        tilewright.unregister("Twice")


class Oddity(Exception):
    pass


def test_b18_exceptions_of_user_code_are_reported(make: Callable[..., Any]) -> None:
    args = GemmArguments(*problem(make))

    def failing(metadata: KernelMetadata) -> bool:
        raise Oddity("filter")

    with pytest.raises(Oddity, match="filter"):
        tilewright.find_kernels(args, metadata_filter=failing)

    @tilewright.register
    class Failing(Kernel):
        @staticmethod
        def generate_kernels(metadata_filter: Any, epilogue_args: Any = None, target: Any = None) -> list[Kernel]:
            raise Oddity("generate")

    try:
        refused = {each.name: each for each in tilewright.explain(args).refused}
        assert refused["Failing"].code == "provider"
        assert refused["Failing"].reason.startswith("failed: ")
        assert refused["Failing"].reason.endswith("Oddity: generate")
        assert len(mine(args)) == 2, "the kernels of others are found"
        with pytest.raises(Oddity, match="generate"):
            tilewright.find_kernels(args, providers=["Failing"])
        assert len(tilewright.find_kernels(args, is_mine, providers=["F64GemmKernel"])) == 2
        with pytest.raises(InvalidArgument, match="unknown provider 'none'"):
            tilewright.find_kernels(args, providers=["none"])
    finally:
        tilewright.unregister(Failing)


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("method", ["generate_kernels", "_supports", "_estimate_us"])
def test_an_interruption_is_not_the_refusal_of_a_kernel(method: str, raised: type[BaseException]) -> None:
    """A Ctrl-C may arrive while a method of a kernel runs."""
    args = GemmArguments(*(np.zeros((1, 8, 8)) for _ in range(3)))

    def interrupted(*_: Any) -> Any:
        raise raised

    with brought(args, "brought", "", lambda args: tilewright.Launch(1, 1, [])) as kernel:
        setattr(type(kernel), method, interrupted)
        if method == "generate_kernels":
            tilewright.unregister(type(kernel))
            tilewright.register(type(kernel))  # calls it again
        for discover in (tilewright.find_kernels, tilewright.explain):
            with pytest.raises(raised):
                discover(args)


def test_b19_b20_compiled_once_by_shape_and_run_on_others(make: Callable[..., Any]) -> None:
    shapes = (ShapeOnly([1, 48, 24], "f64"), ShapeOnly([1, 24, 40], "f64"), ShapeOnly([1, 48, 40], "f64"))
    kernel = mine(GemmArguments(*shapes))[0]
    artifact = kernel.compile(GemmArguments(*shapes))
    for extents in [(1, 48, 40, 24), (3, 17, 9, 5)]:
        a, b, out = problem(make, *extents)
        kernel.run(GemmArguments(a, b, out), artifact, stream=None, assume_supported_args=True)
        np.testing.assert_array_equal(host(out), host(a) @ host(b))

    a, b, out = problem(make)
    prepared = tilewright.prepare(GemmArguments(a, b, out), kernel, artifact)
    prepared.run()
    np.testing.assert_array_equal(host(out), host(a) @ host(b))
    others = problem(make)
    prepared.run(GemmArguments(*others))
    np.testing.assert_array_equal(host(others[2]), host(others[0]) @ host(others[1]))
    with pytest.raises(InvalidArgument, match="prepared for m = 48, got 17"):
        prepared.run(GemmArguments(*problem(make, 1, 17, 40, 24)))
    with pytest.raises(InvalidArgument, match="shapes without memory"):
        kernel.run(GemmArguments(*shapes))


def test_artifacts_are_saved_loaded_and_checked(make: Callable[..., Any], tmp_path: Path) -> None:
    a, b, out = problem(make)
    args = GemmArguments(a, b, out)
    first, second = mine(args)
    path = str(tmp_path / "f64.twk")
    first.compile(args).save(path)
    artifact = tilewright.load_artifact(path)
    first.run(args, artifact)
    np.testing.assert_array_equal(host(out), host(a) @ host(b))
    with pytest.raises(InvalidArgument, match="the artifact is for F64GemmKernel_tile32x32_ttt"):
        second.run(args, artifact)
    damaged = bytearray((tmp_path / "f64.twk").read_bytes())
    damaged[-1] ^= 1
    (tmp_path / "f64.twk").write_bytes(damaged)
    with pytest.raises(InvalidArgument, match="SHA-256"):
        tilewright.load_artifact(path)


def test_b22_runs_compile_once(make: Callable[..., Any]) -> None:
    args = GemmArguments(*problem(make))
    kernel = mine(args)[0]
    kernel.run(args)
    compiles = tilewright.cache_counters()["compiles"]
    kernel.run(args)
    mine(args)[0].run(args)
    assert tilewright.cache_counters()["compiles"] == compiles


def test_b23_a_kernel_declares_its_architectures(make: Callable[..., Any]) -> None:
    args = GemmArguments(*problem(make))
    old = mine(args)[0].metadata

    @tilewright.register
    class Newer(Kernel):
        @staticmethod
        def generate_kernels(metadata_filter: Any, epilogue_args: Any = None, target: Any = None) -> list[Kernel]:
            return [Newer(KernelMetadata("newer", Newer, old.operands, old.design, min_cc=100))]

    try:
        assert "newer" not in names(tilewright.find_kernels(args))
        assert refusal(args, "newer").code == "architecture"
        assert refusal(args, "newer").numbers == [100]
        assert "newer" in names(tilewright.find_kernels(args, target=100))
    finally:
        tilewright.unregister(Newer)


def test_b24_ptx_needs_no_compiler(make: Callable[..., Any]) -> None:
    a, b, out = problem(make)
    args = GemmArguments(a, b, out)
    original = mine(args)[0]
    artifact = original.compile(args)

    ptx = tilewright.Source(artifact.ptx, language="ptx", symbol=artifact.symbol)
    with brought(args, "precompiled", ptx, original._launch) as precompiled:  # type: ignore[attr-defined]
        precompiled.run(args)
        np.testing.assert_array_equal(host(out), host(a) @ host(b))


def test_b25_a_class_may_be_completed_later(make: Callable[..., Any]) -> None:
    a, b, out = problem(make)
    args = GemmArguments(a, b, out)
    old = mine(args)[0].metadata

    @tilewright.register
    class Later(Kernel):
        pass

    try:
        assert len(tilewright.find_kernels(args, providers=["Later"])) == 0
        assert refusal(args, "Later").reason == "Later is registered, but does not define generate_kernels() yet"
        assert len(mine(args)) == 2
        Later.generate_kernels = staticmethod(  # type: ignore[attr-defined]
            lambda metadata_filter, epilogue_args=None, target=None: [
                Later(KernelMetadata("later", Later, old.operands, old.design))
            ]
        )
        kernel = tilewright.find_kernels(args, providers=["Later"])[0]
        with pytest.raises(InvalidArgument, match=r"Later does not define _source\(\)"):
            kernel.compile()
        Later._source = lambda self: F64GemmKernel._source(self)  # type: ignore[attr-defined, arg-type]
        Later._launch = lambda self, args: F64GemmKernel._launch(self, args)  # type: ignore[attr-defined, arg-type]
        kernel.run(args)
        np.testing.assert_array_equal(host(out), host(a) @ host(b))
    finally:
        tilewright.unregister(Later)


@pytest.mark.filterwarnings("ignore:nanobind")
def test_a_kernel_without_metadata_is_refused_in_these_words(make: Callable[..., Any]) -> None:
    class Forgets(Kernel):
        def __init__(self) -> None:
            self.tile = 8

    args = GemmArguments(*problem(make))
    for call in (lambda: Forgets().run(args), lambda: Forgets().compile(args), lambda: Forgets().supports(args)):
        with pytest.raises(TypeError, match=r"^Forgets.__init__\(\) has not called super\(\).__init__\(\)$"):
            call()


def test_a_class_of_the_same_name_replaces_the_first(make: Callable[..., Any]) -> None:
    args = GemmArguments(*problem(make))
    old = mine(args)[0].metadata

    def define(name: str) -> type[Kernel]:
        @tilewright.register
        class Cell(Kernel):
            @staticmethod
            def generate_kernels(metadata_filter: Any, epilogue_args: Any = None, target: Any = None) -> list[Kernel]:
                return [Cell(KernelMetadata(name, Cell, old.operands, old.design))]

        return Cell

    try:
        define("first")
        latest = define("second")
        found = tilewright.find_kernels(args, providers=["Cell"])
        assert names(found) == ["second"]
        assert found[0].metadata.kernel_class is latest
    finally:
        tilewright.unregister("Cell")


def test_kernels_take_only_single_matrices_by_default() -> None:
    old = mine(GemmArguments(*(np.ones((1, 8, 8)) for _ in range(3))))[0].metadata

    @tilewright.register
    class Single(Kernel):
        @staticmethod
        def generate_kernels(metadata_filter: Any, epilogue_args: Any = None, target: Any = None) -> list[Kernel]:
            return [Single(KernelMetadata("single", Single, old.operands, old.design))]

        def _source(self) -> str:
            return F64GemmKernel._source(self)  # type: ignore[arg-type]

        def _launch(self, args: GemmArguments) -> tilewright.Launch:
            return 7  # type: ignore[return-value]

    try:
        single = GemmArguments(*(np.ones((1, 8, 8)) for _ in range(3)))
        batch = GemmArguments(*(np.ones((3, 8, 8)) for _ in range(3)))
        assert len(tilewright.find_kernels(single, providers=["Single"])) == 1
        assert len(tilewright.find_kernels(batch, providers=["Single"])) == 0
        assert refusal(batch, "single").numbers == [3]
        with pytest.raises(InvalidArgument, match=r"Single._launch\(\) must return a Launch, got 7"):
            tilewright.find_kernels(single, providers=["Single"])[0].run(single)
    finally:
        tilewright.unregister(Single)


@pytest.mark.parametrize("wrong", [None, 3])
def test_generate_kernels_must_return_kernels(wrong: Any) -> None:
    @tilewright.register
    class Wrong(Kernel):
        @staticmethod
        def generate_kernels(metadata_filter: Any, epilogue_args: Any = None, target: Any = None) -> Any:
            return [wrong]

    try:
        with pytest.raises(InvalidArgument, match=f"must return kernels, got {wrong}"):
            tilewright.find_kernels(GemmArguments(*(np.ones((1, 8, 8)) for _ in range(3))), providers=["Wrong"])
    finally:
        tilewright.unregister(Wrong)


@pytest.mark.parametrize("wrong", [3, F64GemmKernel.generate_kernels, int])
def test_only_kernel_classes_are_registered(wrong: Any) -> None:
    with pytest.raises(InvalidArgument, match="a class that derives from Kernel, got"):
        tilewright.register(wrong)


@pytest.mark.parametrize("left_out", [0, 1])
def test_parameters_are_compared_with_the_kernels(make: Callable[..., Any], left_out: int) -> None:
    args, name = GemmArguments(*problem(make)), f"careless{left_out}"
    source = f'extern "C" __global__ void {name}(double* d, int n, int m) {{ if (m == n) *d = 0; }}'

    def launch(args: GemmArguments) -> tilewright.Launch:
        return tilewright.Launch(1, 1, [args.out, np.int32(4), np.int32(5)][: 3 - left_out])

    with brought(args, name, source, launch) as careless:
        if left_out == 0:
            careless.run(args)
            return
        with pytest.raises(InvalidArgument, match="takes 3 parameters, got 2"):
            careless.run(args)


@pytest.mark.parametrize("grid", [0, (1, 65536), 1 << 31])
def test_grids_that_no_gpu_launches_are_refused(make: Callable[..., Any], grid: Any) -> None:
    args = GemmArguments(*problem(make))
    source = 'extern "C" __global__ void gridless(double* d) { *d = 0; }'
    with brought(args, "gridless", source, lambda args: tilewright.Launch(grid, 1, [args.out])) as gridless:
        with pytest.raises(InvalidArgument, match=r"a grid must have 1 to \(2147483647,65535,65535\) CTAs|must be from 1x1x1"):
            gridless.run(args)


def test_parameters_have_the_offsets_of_the_kernel(make: Callable[..., Any]) -> None:
    """A float4 is aligned to 16 bytes and a struct of floats to 4, which cannot be told from their bytes."""
    a, b, out = problem(make)
    args = GemmArguments(a, b, out)
    source = (
        "struct Floats { float x, y, z, w; };\n"
        'extern "C" __global__ void aligned(int n, Floats v, double* d, int m, float4 u) {\n'
        "  d[0] = n + 10 * v.x + 100 * v.w + 1000 * m + 10000 * u.x + 100000 * u.w;\n}"
    )

    def launch(args: GemmArguments) -> tilewright.Launch:
        floats, more = np.float32([2, 0, 0, 3]).tobytes(), np.float32([5, 0, 0, 6]).tobytes()
        return tilewright.Launch(1, 1, [np.int32(1), floats, args.out, np.int32(4), more])

    with brought(args, "aligned", source, launch) as aligned:
        aligned.run(args)
        assert host(out).ravel()[0] == 654321


def test_a_launch_has_one_workspace() -> None:
    with pytest.raises(InvalidArgument, match="a launch has one workspace, cannot append another of 0 bytes"):
        tilewright.Launch(1, 32, [tilewright.Workspace(0), tilewright.Workspace(0)])


def test_a_prepared_call_checks_new_arguments() -> None:
    a, b, out = np.ones((1, 8, 8)), np.ones((1, 8, 8)), np.empty((1, 8, 8))
    args = GemmArguments(a, b, out)
    prepared = tilewright.prepare(args, mine(args)[0])
    prepared.run()
    with pytest.raises(InvalidArgument, match="epilogue"):
        prepared.run(GemmArguments(a, b, out, alpha=2.0))


def test_a_listing_is_one_iterator() -> None:
    listing = tilewright.list_kernels(lambda metadata: bool(next(listing)))
    with pytest.raises(ValueError, match="the KernelListing is in use"):
        next(listing)


def test_classes_are_registered_while_others_query() -> None:
    done = threading.Event()

    def come_and_go() -> None:
        while not done.is_set():
            tilewright.register(type("Fleeting", (Kernel,), {"generate_kernels": staticmethod(lambda *_: [])}))
            tilewright.unregister("Fleeting")

    threads = [threading.Thread(target=come_and_go) for _ in range(2)]
    for thread in threads:
        thread.start()
    args = GemmArguments(*(np.ones((1, 8, 8)) for _ in range(3)))
    for _ in range(300):
        next(iter(tilewright.list_kernels()))
        tilewright.find_kernels(args)
    done.set()
    for thread in threads:
        thread.join()


def test_threads_find_compile_and_run_at_once(make: Callable[..., Any]) -> None:
    wrong: list[int] = []

    def work(i: int) -> None:
        a, b, out = problem(make, 1 + i % 2, 8 + i % 5, 9, 4)
        args = GemmArguments(a, b, out)
        mine(args)[i % 2].run(args)
        if not np.array_equal(host(out), host(a) @ host(b)):
            wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
