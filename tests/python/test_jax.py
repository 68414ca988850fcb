"""JAX arrays, which cannot be written: on the host with the emulator, and on a GPU if JAX has one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # otherwise JAX allocates three quarters of the GPU's memory
jax = pytest.importorskip("jax")

import tilewright  # noqa: E402
from tilewright import GemmArguments, InvalidArgument, matmul  # noqa: E402


def has_gpu() -> bool:
    try:
        return bool(jax.devices("gpu"))
    except RuntimeError:
        return False


@pytest.fixture(params=["cpu", pytest.param("gpu", marks=pytest.mark.skipif(not has_gpu(), reason="no GPU"))])
def device(request: pytest.FixtureRequest) -> Iterator[Any]:
    yield jax.devices(request.param)[0]


def integers(device: Any, *shape: int, dtype: Any = "float32") -> Any:
    values = np.random.default_rng(sum(shape)).integers(-3, 4, shape)
    return jax.device_put(jax.numpy.asarray(values, dtype), device)


def host(array: Any) -> Any:
    return np.asarray(array).astype(np.float64)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8"])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_products_are_jax_arrays(device: Any, dtype: str, batch: tuple[int, ...]) -> None:
    a, b = integers(device, *batch, 40, 24, dtype=dtype), integers(device, *batch, 24, 56, dtype=dtype)
    out = matmul(a, b)
    assert isinstance(out, jax.Array) and out.devices() == {device}
    assert out.dtype == ("int32" if dtype == "int8" else dtype)
    np.testing.assert_array_equal(host(out), host(a) @ host(b))


def test_grouped_products_are_jax_arrays(device: Any) -> None:
    rows, experts = integers(device, 40, 24), integers(device, 3, 24, 56)
    offsets = jax.device_put(jax.numpy.asarray([16, 16, 40], "int32"), device)
    out = tilewright.grouped_matmul(rows, experts, offsets=offsets, epilogue="D = relu(acc)")
    assert isinstance(out, jax.Array) and out.devices() == {device}
    expected = np.concatenate([host(rows)[:16] @ host(experts)[0], host(rows)[16:] @ host(experts)[2]])
    np.testing.assert_array_equal(host(out), np.maximum(expected, 0))
    gradient = tilewright.grouped_matmul(rows.T, out, offsets=offsets, out_dtype="float32")
    np.testing.assert_array_equal(host(gradient)[2], host(rows)[16:].T @ host(out)[16:])


def test_results_are_used_by_jax(device: Any) -> None:
    a, b = integers(device, 512, 256), integers(device, 256, 384)
    value, expected = a, host(a)
    for _ in range(20):  # each step waits for the previous one on the streams of the other library
        value = jax.numpy.clip(matmul(value, b) @ b.T, -3, 3)
        expected = np.clip(expected @ host(b) @ host(b).T, -3, 3)
    np.testing.assert_array_equal(host(value), expected)


def test_dropped_arrays_are_kept_until_they_are_read(device: Any) -> None:
    size = 8192 if device.platform == "gpu" else 64  # takes more than a millisecond on a GPU, so that JAX returns earlier
    a, b = integers(device, size, size, dtype="float16"), integers(device, size, size, dtype="float16")
    twice = a * 2
    expected = matmul(twice, b, out_dtype="float32").block_until_ready()
    del twice
    for _ in range(5):
        out = matmul(a * 2, b, out_dtype="float32")
        others = [a * 3 for _ in range(4)]  # JAX reuses memory that nobody refers to
        assert jax.numpy.array_equal(out, expected)
        del others


def test_other_streams_wait_for_jax_arrays(device: Any) -> None:
    torch = pytest.importorskip("torch")
    if device.platform != "gpu":
        pytest.skip("streams are of a GPU")
    a, b = integers(device, 1024, 1024), integers(device, 1024, 1024)
    stream = torch.cuda.Stream()

    def late() -> Any:
        value = a
        for _ in range(30):
            value = jax.numpy.clip(value @ a, -3, 3)
        return value

    expected = host(late()) @ host(b)
    for _ in range(5):
        out = torch.empty(1024, 1024, device="cuda")
        args = GemmArguments(late(), b, out)
        tilewright.prepare(args).run(stream=stream)
        stream.synchronize()
        np.testing.assert_array_equal(out.cpu().numpy(), expected)


def test_epilogues_read_jax_arrays(device: Any) -> None:
    def epilogue(accum: Any, bias: Any) -> Any:
        return jax.nn.relu(accum + bias)

    a, b, bias = integers(device, 40, 24), integers(device, 24, 56), integers(device, 56)
    np.testing.assert_array_equal(
        host(matmul(a, b, epilogue="D = relu(acc + row(bias))", bias=bias)),
        np.maximum(host(a) @ host(b) + host(bias), 0),
    )
    np.testing.assert_array_equal(
        host(matmul(a, b, epilogue=epilogue, bias=bias)), np.maximum(host(a) @ host(b) + host(bias), 0)
    )


def test_jax_arrays_are_refused_as_outputs(device: Any) -> None:
    a, b = integers(device, 8, 8), integers(device, 8, 8)
    with pytest.raises(InvalidArgument, match="out is read-only"):
        GemmArguments(a, b, integers(device, 8, 8))


def test_tracers_are_refused(device: Any) -> None:
    with pytest.raises(InvalidArgument, match="tracers of jax.jit have no memory"):
        jax.jit(matmul)(integers(device, 8, 8), integers(device, 8, 8))


def test_memory_of_results_is_freed(device: Any) -> None:
    a, b = integers(device, 64, 64), integers(device, 64, 64)
    name = "cuda:0" if device.platform == "gpu" else ""
    before = tilewright.allocated_bytes(name)
    for _ in range(10):
        out = matmul(a, b)
    assert tilewright.allocated_bytes(name) <= before + out.nbytes
    del out
    assert tilewright.allocated_bytes(name) == before


def test_convolutions_take_nhwc() -> None:
    x, w = jax.numpy.ones((2, 6, 6, 8), "float16"), jax.numpy.ones((16, 3, 3, 8), "float16")
    got = tilewright.conv2d(x, w, padding=1, layout="nhwc")
    assert isinstance(got, jax.Array) and got.shape == (2, 6, 6, 16)
    assert (got[:, 1:-1, 1:-1] == 72).all() and (got[:, 0, 0] == 32).all()
    with pytest.raises(InvalidArgument, match='no channels-last strides: pass layout="nhwc"'):
        tilewright.conv2d(x.transpose(0, 3, 1, 2), w.transpose(0, 3, 1, 2))
