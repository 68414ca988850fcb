"""Kernels that are programs are tuned, saved, loaded without a compiler, prepared and pickled, as other kernels are."""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright import GemmArguments, InvalidArgument
from tilewright import program as tp


@pytest.fixture(autouse=True)
def _emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_DEVICE", "emulator:sm_90a")


def has_mlir() -> bool:
    try:
        tp.Kernel("empty", threads=32).build().ptx("mlir")
    except tilewright.ToolchainNotFound:
        return False
    return True


LANGUAGES = ["cuda", *(["mlir"] if has_mlir() else [])]

ROW_SUMS = tilewright.Operation(
    "row_sums",
    [
        tilewright.OperandDeclaration("x", ("rows", "columns"), dtypes=["f32"]),
        tilewright.OperandDeclaration("out", ("rows",), access="write", dtypes=["f32"]),
    ],
    {"scale": 1.0},
    reference=lambda x, out, scale: np.multiply(x.sum(axis=1), scale, out=out),
)


def row_sums(target: Any, name: str, threads: int, defect: float = 0.0) -> tp.Program:
    """out[row] = scale * (the sum of the row) + defect; a warp adds a row."""
    k = tp.Kernel(name, target=target, threads=threads)
    rows, columns, scale = k.launch("rows"), k.launch("columns"), k.scalar("scale")
    x, out = k.address("x", 4), k.address("out", 4)
    k.set_grid(tp.ceil_div(rows, threads // 32))
    row, lane = k.block() * (threads // 32) + k.thread // 32, k.thread % 32
    with k.If(row < rows):
        total = k.cell(tp.constant(k, 0.0))
        with k.loop(lane, columns, 32) as column:
            total.set(tp.add(k, total.get(), tp.load_global(k, x, (row * columns + column) * 4, "f32")))
        for mask in (16, 8, 4, 2, 1):
            total.set(tp.add(k, total.get(), tp.shuffle_xor(k, total.get(), mask)))
        with k.If(lane == 0):
            tp.store_global(k, out, row * 4, [tp.fma(k, total.get(), scale, tp.constant(k, defect))])
    return k.build()


class RowSums(tp.ProgramKernel):
    """Two right kernels in each language, and a wrong one."""

    @staticmethod
    def generate_kernels(metadata_filter: Any, epilogue_args: Any = None, target: Any = None) -> list[Any]:
        operands = tilewright.OperandsMetadata(ROW_SUMS, x=("f32", 1), out=("f32", 1))
        kernels = []
        for language in LANGUAGES:
            for threads, defect in ((64, 0.0), (128, 0.0), (32, 1.0)):
                name = f"row_sums_{language}_{threads}"
                program = row_sums(target, name, threads, defect)
                kernels.append(RowSums(tilewright.KernelMetadata(name, RowSums, operands), program, language))
        return kernels

    def _arguments(self, args: Any) -> dict[str, Any]:
        rows, columns = args.x.shape
        return {"rows": rows, "columns": columns, "scale": args.scale, "x": args.x, "out": args.out}


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    tilewright.register(RowSums)
    yield
    tilewright.unregister(RowSums)


def problem(rows: int = 5, columns: int = 70, scale: float = 2.0) -> tuple[Any, np.ndarray, np.ndarray]:
    """The arguments, the array that they write, and what it must have."""
    x = (np.arange(rows * columns, dtype=np.float32) % 7 - 3).reshape(rows, columns)
    out = np.full(rows, np.nan, np.float32)
    return tilewright.OperationArguments(ROW_SUMS, x=x, out=out, scale=scale), out, x.sum(axis=1) * np.float32(scale)


def named(args: Any, name: str) -> Any:
    return next(kernel for kernel in tilewright.find_kernels(args) if kernel.metadata.kernel_name == name)


def test_a_tuning_checks_programs() -> None:
    args, out, _ = problem()
    report = tilewright.tune(args, top=10, verify_only=True)
    status = {each["kernel"]: each["status"] for each in report["candidates"]}
    expected = {}
    for language in LANGUAGES:
        for threads, outcome in ((64, "sound"), (128, "sound"), (32, "wrong")):
            expected[f"row_sums_{language}_{threads}"] = outcome
    assert status == expected
    assert np.isnan(out).all()  # a tuning runs on copies


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_program_is_saved_and_loaded(language: str, tmp_path: Path) -> None:
    args, out, expected = problem()
    kernel = named(args, f"row_sums_{language}_64")
    path = str(tmp_path / "row_sums.twk")
    kernel.compile(args).save(path)
    artifact = tilewright.load_artifact(path)
    kernel.run(args, artifact)
    np.testing.assert_array_equal(out, expected)
    other, out, expected = problem(rows=3, columns=200, scale=-0.5)  # sizes and scalars are arguments of the launch
    kernel.run(other, artifact)
    np.testing.assert_array_equal(out, expected)
    with pytest.raises(InvalidArgument, match=f"the artifact is for row_sums_{language}_64"):
        named(args, f"row_sums_{language}_128").run(args, artifact)
    again = pickle.loads(pickle.dumps(artifact))
    assert again == artifact
    other, out, expected = problem(rows=2, columns=1)
    kernel.run(other, again)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_prepared_program_runs_on_other_arrays(language: str) -> None:
    args, out, expected = problem()
    prepared = tilewright.prepare(args, named(args, f"row_sums_{language}_128"))
    prepared.run()
    np.testing.assert_array_equal(out, expected)
    others, other_out, expected = problem(scale=3.0)
    prepared.run(others)
    np.testing.assert_array_equal(other_out, expected)
    with pytest.raises(InvalidArgument, match="prepared for extent 5 of mode 0 of x, got 6"):
        prepared.run(problem(rows=6)[0])


def gemm_problem(m: int = 128, n: int = 256, k: int = 64) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, b = ((np.arange(rows * k) % 5 - 2).reshape(rows, k).astype(np.float16) for rows in (m, n))
    return a, b.T, np.full((m, n), np.nan, np.float32)


PROVIDERS = ["cuda_program", *(["mlir"] if has_mlir() else [])]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_shipped_programs_are_tuned_saved_and_loaded_without_a_compiler(provider: str, tmp_path: Path) -> None:
    a, b, out = gemm_problem()
    args = GemmArguments(a, b, out)
    kernel = tilewright.find_kernels(args, providers=[provider])[0]
    path = tmp_path / "gemm.twk"
    kernel.compile(args).save(str(path))
    kernel.run(args)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32))
    script = f"""
import numpy as np, tilewright
from test_program_deployment import gemm_problem
a, b, out = gemm_problem(m=100, n=136, k=72)
args = tilewright.GemmArguments(a, b, out)
(kernel,) = [each for each in tilewright.find_kernels(args, providers=[{provider!r}]) if each.name == {kernel.name!r}]
artifact = tilewright.load_artifact({str(path)!r})
kernel.run(args, artifact)
assert (out == a.astype(np.float32) @ b.astype(np.float32)).all()
tilewright.prepare(args, kernel, artifact).run()
try:
    kernel.compile(args)
except tilewright.ToolchainNotFound:
    print("right")
"""
    environment = {
        **os.environ,
        "TILEWRIGHT_COMPILER": "none",
        "TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
    }
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False)
    assert (ran.returncode, ran.stdout.strip()) == (0, "right"), ran.stderr
