"""Operands that share an array on the host: slices of its columns, outputs in place of inputs, and elements of outputs
that a kernel does not write."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright import GemmArguments, InvalidArgument, OperandDeclaration, Operation

RANDOM = np.random.default_rng(20)


def integers(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RANDOM.integers(-3, 4, shape).astype(dtype)


LOWER = Operation(
    "lower_triangle",
    [OperandDeclaration("x", ("n", "n"), dtypes=["f32"]), OperandDeclaration("out", ("n", "n"), "write", ["f32"])],
)


@tilewright.register
class LowerTriangle(tilewright.Kernel):
    """Copies the elements of x below the diagonal."""

    @staticmethod
    def generate_kernels(metadata_filter: Any, epilogue_args: Any, target: str) -> list[tilewright.Kernel]:
        operands = tilewright.OperandsMetadata(LOWER, x=("f32", 1), out=("f32", 1))
        return [LowerTriangle(tilewright.KernelMetadata("lower_triangle_copy", LowerTriangle, operands))]

    def _source(self) -> str:
        return f"""extern "C" __global__ void {self.name}(const float* x, float* out, int x_step, int out_step) {{
  const int row = blockIdx.x, column = threadIdx.x;
  if (column < row) out[row * out_step + column] = x[row * x_step + column];
}}"""

    def _launch(self, args: tilewright.OperationArguments) -> tilewright.Launch:
        (n, _), steps = args.x.shape, (args.x.stride[0], args.out.stride[0])
        return tilewright.Launch(n, n, [args.x, args.out, *(tilewright.i32(step) for step in steps)])


@pytest.mark.parametrize("way", ["run", "kernel", "prepare"])
@pytest.mark.parametrize("padding", [0, 3])
def test_elements_that_a_users_kernel_does_not_write_keep_their_values(way: str, padding: int) -> None:
    x, memory = integers(16, 16), np.full((16, 16 + padding), 7, np.float32)
    out = memory[:, :16]
    args = tilewright.OperationArguments(LOWER, x=x, out=out)
    if way == "run":
        tilewright.run(args)
    elif way == "kernel":
        tilewright.find_kernels(args)[0].run(args)
    else:
        tilewright.prepare(args).run()
    np.testing.assert_array_equal(out, np.where(np.tri(16, k=-1) == 1, x, 7))
    assert (memory[:, 16:] == 7).all()


@pytest.mark.parametrize("order", ["C", "F"])
def test_operands_may_be_slices_of_one_array(order: Any) -> None:
    memory = np.asarray(integers(48, 96), order=order)
    whole = memory if order == "C" else memory.T  # its last mode has stride 1
    a = whole[:32, :32] if order == "C" else whole[:32, :32].T
    inputs, b = a.copy(), integers(32, 32)
    before = whole.copy()
    out = whole[:32, 40:72] if order == "C" else whole[40:72, :32].T
    tilewright.matmul(a, b, out=out)
    np.testing.assert_array_equal(out, inputs @ b)
    out[...] = before[:32, 40:72] if order == "C" else before[40:72, :32].T
    np.testing.assert_array_equal(whole, before)


def test_two_outputs_may_be_slices_of_one_array() -> None:
    a, b, memory = integers(40, 24), integers(24, 32), np.full((40, 80), 9, np.float32)
    tilewright.matmul(a, b, out=memory[:, :32], epilogue="D = relu(acc); aux = acc", aux=memory[:, 40:72])
    np.testing.assert_array_equal(memory[:, :32], np.maximum(a @ b, 0))
    np.testing.assert_array_equal(memory[:, 40:72], a @ b)
    assert (memory[:, 32:40] == 9).all() and (memory[:, 72:] == 9).all()


def test_interleaved_rows_and_batches_are_apart() -> None:
    a, b, memory = integers(2, 8, 16), integers(2, 16, 24), np.zeros((2, 16, 24), np.float32)
    c = memory[:, 1::2]
    c[...] = integers(2, 8, 24)
    expected = a @ b + c
    tilewright.matmul(a, b, out=memory[:, ::2], c=c)
    np.testing.assert_array_equal(memory[:, ::2], expected)
    np.testing.assert_array_equal(c, expected - a @ b)


@pytest.mark.parametrize("columns", [(1, 33), (31, 63), (63, 95)])
def test_slices_that_share_columns_are_refused(columns: tuple[int, int]) -> None:
    memory, b = integers(32, 96), integers(32, 32)
    with pytest.raises(InvalidArgument, match="out .* overlaps a "):
        tilewright.matmul(memory[:, 32:64], b, out=memory[:, columns[0] : columns[1]])


EPILOGUES = {
    "residual": "D = acc + residual",
    "second output": "D = relu(acc) + residual; aux = acc - residual",
    "only in the second output": "D = acc; aux = residual",
    "reductions": "D = acc * 0.5 + residual; column(rows) = sum(acc); row(columns) = max(residual)",
}


def further_tensors(text: str, m: int, n: int, dtype: str) -> dict[str, np.ndarray]:
    """Arrays for the outputs other than D."""
    shapes = {"aux": ((m, n), dtype), "rows": ((m, 1), "float32"), "columns": ((1, n), "float32")}
    return {name: np.zeros(*shape) for name, shape in shapes.items() if name in text}


@pytest.mark.parametrize("name", EPILOGUES)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_residual_may_be_the_output_in_every_kernel(name: str, dtype: str) -> None:
    """The emulator reports an element that is read by one thread and written by another without an order."""
    m, n, k = 72, 80, 96
    a, b, before = integers(m, k, dtype=dtype), integers(k, n, dtype=dtype), integers(m, n, dtype=dtype)
    d = before.copy()
    tensors = further_tensors(EPILOGUES[name], m, n, dtype)
    epilogue = tilewright.EpilogueArguments(EPILOGUES[name], residual=d, **tensors)
    args = GemmArguments(a, b, d, accumulator_type="float32", epilogue=epilogue)
    product = a.astype(np.float32) @ b.astype(np.float32)
    expected = {
        "residual": product + before,
        "second output": np.maximum(product, 0) + before,
        "only in the second output": product,
        "reductions": product * 0.5 + before,
    }[name]
    seen = set()
    for kernel in tilewright.find_kernels(args):
        design = kernel.metadata.design
        kind = (kernel.metadata.kernel_class, kernel.metadata.kernel_name.split("_")[0], getattr(design, "split_k", 1))
        if kind in seen or len(seen) > 12:
            continue
        seen.add(kind)
        d[...] = before
        kernel.run(args)
        np.testing.assert_allclose(d, expected, rtol=1e-3, err_msg=kernel.name)
        if "aux" in tensors:
            aux = before if name.startswith("only") else product - before
            np.testing.assert_allclose(tensors["aux"], aux, rtol=1e-3, err_msg=kernel.name)
        if "columns" in tensors:
            np.testing.assert_array_equal(tensors["columns"][0], before.max(0), err_msg=kernel.name)
    assert len(seen) >= 2


@pytest.mark.parametrize("name", ["C", "residual"])
@pytest.mark.parametrize("of_out, of_input", [((1, 33, 40), (33, 40)), ((33, 40), (1, 33, 40)), ((33, 40), (33, 40))])
def test_a_matrix_and_a_batch_of_one_are_the_same_elements(
    name: str, of_out: tuple[int, ...], of_input: tuple[int, ...]
) -> None:
    a, b, memory = integers(33, 17), integers(17, 40), integers(33, 40)
    expected = a @ b + memory
    out, source = memory.reshape(of_out), memory.reshape(of_input)
    more: dict[str, Any] = {"c": source} if name == "C" else {"epilogue": "D = acc + residual", "residual": source}
    assert tilewright.matmul(a.reshape((*of_out[:-2], 33, 17)), b, out=out, **more) is out
    np.testing.assert_array_equal(memory, expected)


def test_one_matrix_of_a_batch_may_not_be_added_to_all() -> None:
    a, b, out = integers(3, 33, 17), integers(17, 40), integers(3, 33, 40)
    with pytest.raises(InvalidArgument, match="overlaps"):
        tilewright.matmul(a, b, c=out[0], out=out)


def test_other_inputs_may_not_be_the_output() -> None:
    """A row vector is read for every row, also after the first one was written."""
    a, b, d = integers(1, 16), integers(16, 24), integers(1, 24)
    with pytest.raises(InvalidArgument, match="'bias'.* overlaps (out|D) "):
        tilewright.matmul(a, b, out=d, epilogue="D = acc + row(bias)", bias=d)


@pytest.mark.parametrize("name", ["C", "residual"])
def test_results_in_place_of_an_input_cannot_be_verified(name: str) -> None:
    a, b, d = integers(16, 8), integers(8, 24), integers(16, 24)
    more: dict[str, Any] = {"C": d, "beta": 1.0}
    if name == "residual":
        more = {"epilogue": tilewright.EpilogueArguments("D = acc + residual", residual=d)}
    args = GemmArguments(a, b, d, **more)
    tilewright.run(args)
    with pytest.raises(InvalidArgument, match=f"{name}'? is an output too, which it has overwritten"):
        args.verify()


def test_prepared_calls_add_to_their_output_at_each_run() -> None:
    a, b, d = integers(33, 17), integers(17, 40), integers(33, 40)
    expected = d + 2 * (a @ b)
    prepared = tilewright.prepare(GemmArguments(a, b, d, epilogue=tilewright.EpilogueArguments("D = acc + r", r=d)))
    prepared.run()
    prepared.run()
    np.testing.assert_array_equal(d, expected)
