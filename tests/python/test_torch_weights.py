"""Narrow weights in PyTorch: tensors, the operator, and the benchmark of programs on tiny problems."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")

import tilewright  # noqa: E402
import tilewright.torch  # noqa: E402
from tilewright import InvalidArgument, pack_weights, weight_matmul  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def on_hopper() -> Iterator[None]:
    """Kernels with narrow weights need wgmma."""
    is_hopper = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
    if not is_hopper:
        tilewright.configure(device="emulator:sm_90a")
    yield
    if not is_hopper:
        tilewright.configure(device="auto")


@pytest.mark.parametrize("kind", ["s4", "s8", "e4m3"])
def test_tensors_are_packed_and_multiplied(kind: str) -> None:
    torch.manual_seed(3)
    weights = torch.randint(-8, 8, (72, 192), dtype=torch.int8)
    scales = 2.0 ** torch.randint(-1, 2, (3, 72))
    values = weights.double() * scales.double().T.repeat_interleave(64, 1)
    given = weights.to(torch.float8_e4m3fn) if kind == "e4m3" else weights
    packed = pack_weights(given, scales.bfloat16(), None if kind == "e4m3" else kind)
    x = torch.randint(-3, 4, (2, 5, 192)).bfloat16()
    assert torch.equal(weight_matmul(x, packed), (x.double() @ values.T).bfloat16())
    assert torch.equal(tilewright.torch.weight_linear(x, packed), (x.double() @ values.T).bfloat16())


def test_the_operator_is_one_node_and_has_no_gradient() -> None:
    packed = pack_weights(torch.ones(64, 128, dtype=torch.int8), torch.ones(64).bfloat16(), "s4")
    x = torch.ones(3, 128).bfloat16()
    operands = (x, packed.data, packed.scales, "s4", 64, 0)
    torch.library.opcheck(torch.ops.tilewright.weight_linear, operands, test_utils=("test_schema", "test_faketensor"))
    x.requires_grad_()
    with pytest.raises(InvalidArgument, match="x requires a gradient"):
        weight_matmul(x, packed)
    with pytest.raises(InvalidArgument, match="computes no gradients"):
        tilewright.torch.weight_linear(x, packed).sum().backward()


@pytest.mark.skipif(torch.cuda.is_available(), reason="the benchmark would time kernels")
def test_the_benchmark_of_programs_verifies_on_the_emulator(tmp_path: pathlib.Path) -> None:
    paths = os.pathsep.join(str(pathlib.Path(each).resolve()) for each in sys.path if each)
    done = subprocess.run(
        [sys.executable, ROOT / "bench/programs.py", "--smoke", "--json", tmp_path / "programs.json"],
        capture_output=True,
        text=True,
        timeout=500,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "15 kernels, wrong: none" in done.stdout
    assert done.stdout.count("wrong: none") == 5
