"""Operations that Python programs declare: discovery by name, checks, cache, run() and prepare()."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright import InvalidArgument, OperandDeclaration, Operation

SOURCE = """
extern "C" __global__ void {name}(const float* x, float* out, long long x_step, long long out_step, int height,
                                  int width, float weight) {{
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  if (column >= width) return;
  const float* own = x + row * x_step + column;
  const bool is_border = row == 0 || column == 0 || row == height - 1 || column == width - 1;
  float result = *own;
  if (!is_border) result = weight * (own[-x_step] + own[x_step] + own[-1] + own[1]) + (1.0f - 4.0f * weight) * *own;
  out[row * out_step + column] = result;
}}
"""


def expected_stencil(x: np.ndarray, weight: float) -> np.ndarray:
    result = x.astype(np.float64)
    inner = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    result[1:-1, 1:-1] = weight * inner.astype(np.float64) + (1 - 4 * weight) * x[1:-1, 1:-1]
    return result


def stencil_reference(x: np.ndarray, out: np.ndarray, weight: float) -> None:
    out[...] = expected_stencil(x, weight)


def check_extents(h: int, w: int) -> str | None:
    return None if h >= 2 and w >= 2 else f"a stencil needs 2 x 2 elements, got {h} x {w}"


STENCIL = Operation(
    "py_stencil",
    [
        OperandDeclaration("x", ("h", "w"), dtypes=["f32"]),
        OperandDeclaration("out", ("h", "w"), access="write", dtypes=["f32"]),
    ],
    {"weight": 0.25},
    check=check_extents,
    reference=stencil_reference,
    tolerance=1e-5,
)


@tilewright.register
class StencilKernel(tilewright.Kernel):
    @staticmethod
    def generate_kernels(metadata_filter: Any, epilogue_args: Any, target: str) -> list[tilewright.Kernel]:
        operands = tilewright.OperandsMetadata(STENCIL, x=("f32", 1), out=("f32", 1))
        return [StencilKernel(tilewright.KernelMetadata("py_stencil_rows", StencilKernel, operands))]

    def _source(self) -> str:
        return SOURCE.format(name=self.name)

    def _launch(self, args: tilewright.OperationArguments) -> tilewright.Launch:
        height, width = args.x.shape
        return tilewright.Launch(
            grid=((width + 63) // 64, height),
            block=64,
            parameters=[
                args.x,
                args.out,
                tilewright.i64(args.x.stride[0]),
                tilewright.i64(args.out.stride[0]),
                tilewright.i32(height),
                tilewright.i32(width),
                tilewright.f32(args.weight),
            ],
        )


def arrays(height: int = 20, width: int = 70) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(1).integers(-4, 5, (height, width)).astype(np.float32)
    return x, np.full((height, width), np.nan, np.float32)


def test_a_stencil_is_found_by_its_name_and_runs() -> None:
    x, out = arrays()
    args = tilewright.OperationArguments(STENCIL, x=x, out=out, weight=0.125)
    assert args.operation == "py_stencil"
    assert set(args.operands) == {"x", "out"}
    kernel = tilewright.find_kernels(args)[0]
    assert kernel.name == "py_stencil_rows"
    assert kernel.metadata.operation == "py_stencil"
    assert kernel.metadata.epilogue is None
    tilewright.run(args)
    np.testing.assert_allclose(out, expected_stencil(x, 0.125), rtol=1e-6, atol=1e-6)
    assert args.verify()
    out[3, 4] += 1
    assert "out[3,4] is" in args.verify().reason


def test_a_reference_that_writes_nothing_confirms_nothing() -> None:
    operation = Operation(
        "doubled",
        [OperandDeclaration("x", ("n",)), OperandDeclaration("out", ("n",), access="write")],
        reference=lambda x, out: 2 * x,
    )
    x = np.ones(4, np.float32)
    verified = tilewright.OperationArguments(operation, x=x, out=2 * x).verify()
    assert not verified and "out[0,0] is 2, expected" in verified.reason and "nan" in verified.reason


def test_scalars_have_default_values() -> None:
    x, out = arrays()
    tilewright.run(tilewright.OperationArguments(STENCIL, x=x, out=out))
    np.testing.assert_allclose(out, expected_stencil(x, 0.25), rtol=1e-6, atol=1e-6)


def test_prepared_calls_take_other_arrays() -> None:
    x, out = arrays()
    prepared = tilewright.prepare(tilewright.OperationArguments(STENCIL, x=x, out=out))
    other = np.ones_like(x)
    prepared.run(tilewright.OperationArguments(STENCIL, x=other, out=out))
    np.testing.assert_array_equal(out, other)
    with pytest.raises(InvalidArgument, match="prepared for extent 20 of mode 0 of x, got 10"):
        prepared.run(tilewright.OperationArguments(STENCIL, x=x[:10], out=out[:10]))


def test_the_declaration_is_checked() -> None:
    x, out = arrays()
    with pytest.raises(InvalidArgument, match="py_stencil needs the operand 'out'"):
        tilewright.OperationArguments(STENCIL, x=x)
    with pytest.raises(InvalidArgument, match="mode 1 of 'out' must be w = 70, got 69"):
        tilewright.OperationArguments(STENCIL, x=x, out=np.empty((20, 69), np.float32))
    with pytest.raises(InvalidArgument, match="'x' must be f32, got f64"):
        tilewright.OperationArguments(STENCIL, x=x.astype(np.float64), out=out)
    with pytest.raises(InvalidArgument, match="a stencil needs 2 x 2 elements, got 1 x 70"):
        tilewright.OperationArguments(STENCIL, x=x[:1], out=out[:1])
    with pytest.raises(InvalidArgument, match="out is read-only"):
        tilewright.OperationArguments(STENCIL, x=x, out=np.broadcast_to(np.float32(0), x.shape))
    with pytest.raises(InvalidArgument, match="no operand or scalar 'height': it has weight, x, out"):
        tilewright.OperationArguments(STENCIL, x=x, out=out, height=3.0)


def test_a_product_of_named_extents_is_computed_by_the_gemm_kernels() -> None:
    operation = Operation(
        "py_transposed_gemm",
        [
            OperandDeclaration("a", ("m", "k")),
            OperandDeclaration("b", ("k", "n")),
            OperandDeclaration("out", ("n", "m"), access="write"),
        ],
        {"alpha": 1.0},
        product=("a", "b", "out"),
    )
    rng = np.random.default_rng(2)
    a = rng.integers(-3, 4, (33, 16)).astype(np.float16)
    b = rng.integers(-3, 4, (16, 40)).astype(np.float16)
    out = np.full((40, 33), np.nan, np.float32)
    args = tilewright.OperationArguments(operation, a=a, b=b, out=out, alpha=2.0)
    assert tilewright.find_kernels(args)[0].metadata.operation == "gemm"
    tilewright.run(args)
    np.testing.assert_array_equal(out, 2 * (a.astype(np.float32) @ b.astype(np.float32)).T)
    assert args.verify()


def test_kernels_of_other_operations_are_not_offered() -> None:
    a, b = np.ones((20, 16), np.float32), np.ones((16, 70), np.float32)
    explanation = tilewright.explain(tilewright.GemmArguments(a, b, np.empty((20, 70), np.float32)))
    assert all(kernel.metadata.operation == "gemm" for kernel in explanation.kernels)
    refused = {each.name: each for each in explanation.refused}
    assert refused["py_stencil_rows"].code == "operation"


def test_typed_numbers() -> None:
    assert repr(tilewright.i32(-5)) == "TypedNumber(-5)"
    for make, value in ((tilewright.i32, 2**31), (tilewright.u32, -1), (tilewright.u64, 2**64)):
        with pytest.raises((InvalidArgument, TypeError, OverflowError)):
            make(value)


class Unregistered(StencilKernel):
    """A kernel that the program makes itself, so that no generate_kernels() gives it a target."""

    def __init__(self, name: str) -> None:
        operands = tilewright.OperandsMetadata(STENCIL, x=("f32", 1), out=("f32", 1))
        super().__init__(tilewright.KernelMetadata(name, Unregistered, operands))


@pytest.mark.parametrize("way", ["run", "compile", "prepare", "compile_kernels"])
def test_a_kernel_without_a_target_has_that_of_its_first_use(way: str) -> None:
    x, out = arrays()
    args = tilewright.OperationArguments(STENCIL, x=x, out=out)
    kernel = Unregistered(f"own_{way}")
    if way == "prepare":
        tilewright.prepare(args, kernel).run()
    elif way == "run":
        kernel.run(args)
    else:
        artifact = kernel.compile(args) if way == "compile" else tilewright.compile_kernels([kernel])[0]
        assert artifact.target == tilewright.device_target()
        kernel.run(args, artifact)
    np.testing.assert_allclose(out, expected_stencil(x, 0.25), rtol=1e-6, atol=1e-6)


def test_a_kernel_may_be_compiled_for_another_target_first() -> None:
    x, out = arrays()
    kernel = Unregistered("own_sm_80")
    assert kernel.compile(cc="sm_80").target == "sm_80"
    with pytest.raises(InvalidArgument, match="own_sm_80 is compiled for sm_80, but emulator:sm_90a is sm_90a"):
        kernel.run(tilewright.OperationArguments(STENCIL, x=x, out=out))
