"""CuPy arrays on a GPU: kernels are launched on the streams that the arrays are ordered by."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

cupy = pytest.importorskip("cupy")
try:
    cupy.cuda.runtime.getDeviceCount()
except cupy.cuda.runtime.CUDARuntimeError:
    pytest.skip("no GPU", allow_module_level=True)

from tilewright import GemmArguments, InvalidArgument, find_kernels, grouped_matmul, matmul  # noqa: E402

RANDOM = np.random.default_rng(3)


def integers(*shape: int) -> Any:
    return cupy.asarray(RANDOM.integers(-3, 4, shape).astype(np.float32))


def late_copy(stream: Any, of: Any) -> Any:
    """A copy of an array that the stream writes after a delay."""
    late = cupy.full_like(of, np.nan)
    cupy.cuda.get_current_stream().synchronize()
    with stream:
        slow = cupy.ones((1 << 26,), np.float32)
        for _ in range(50):
            slow *= 1.0001
        late[...] = of
    return late


def test_products() -> None:
    a, b = integers(40, 24), integers(24, 56)
    out = matmul(a, b)
    assert isinstance(out, cupy.ndarray)
    np.testing.assert_array_equal(out.get(), a.get() @ b.get())
    np.testing.assert_array_equal(matmul(a[:, ::2].copy(), b[::2]).get(), a.get()[:, ::2] @ b.get()[::2])


def test_grouped_products() -> None:
    rows, experts = integers(40, 24), integers(3, 24, 56)
    offsets = cupy.asarray([16, 16, 40], np.int32)
    out = grouped_matmul(rows, experts, offsets=offsets)
    assert isinstance(out, cupy.ndarray)
    for begin, end, expert in ((0, 16, 0), (16, 40, 2)):
        np.testing.assert_array_equal(out.get()[begin:end], rows.get()[begin:end] @ experts.get()[expert])
    with pytest.raises(InvalidArgument, match="offsets must be an array of int32"):
        grouped_matmul(rows, experts, offsets=offsets.astype(np.int64))


def test_the_current_stream_is_followed() -> None:
    a, b = integers(128, 64), integers(64, 96)
    stream = cupy.cuda.Stream(non_blocking=True)
    late = late_copy(stream, a)
    with stream:
        out = matmul(late, b)
    stream.synchronize()
    np.testing.assert_array_equal(out.get(), a.get() @ b.get())


def test_results_are_allocated_on_the_given_stream() -> None:
    a, b = integers(128, 64), integers(64, 96)
    stream = cupy.cuda.Stream(non_blocking=True)
    late = late_copy(stream, a)
    for given in (stream, stream.ptr):
        out = matmul(late, b, stream=given)
        stream.synchronize()
        np.testing.assert_array_equal(out.get(), a.get() @ b.get())


def test_frameworks_with_different_streams_are_refused() -> None:
    torch = pytest.importorskip("torch")
    a, b = integers(64, 64), integers(64, 64)
    out = torch.empty(64, 64, device="cuda")
    matmul(a, b, out=out)
    assert np.array_equal(out.cpu().numpy(), a.get() @ b.get())
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), pytest.raises(InvalidArgument, match="the current streams of the arrays' frameworks differ, "):
        matmul(a, b, out=out)
    matmul(a, b, out=out, stream=stream)
    stream.synchronize()


class Named:
    """Has only __cuda_array_interface__, which names the stream on which the array is written."""

    def __init__(self, array: Any, stream: Any) -> None:
        self.dtype, self.shape, self.array = array.dtype, array.shape, array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, "stream": stream.ptr}


def test_the_launch_waits_for_streams_that_arrays_name() -> None:
    a, b = integers(128, 64), integers(64, 96)
    expected = a.get() @ b.get()
    writer, other = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    for run_in in (None, other):
        late, out = Named(late_copy(writer, a), writer), cupy.full((128, 96), np.nan, np.float32)
        cupy.cuda.get_current_stream().synchronize()
        args = GemmArguments(late, b, Named(out, other))
        find_kernels(args)[0].run(args, stream=run_in)
        (run_in or other).synchronize()
        cupy.cuda.Device().synchronize()
        np.testing.assert_array_equal(out.get(), expected)


class Lent:
    """Lends its memory by DLPack until the capsule is released, as JAX arrays do."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, *, stream: int, **options: Any) -> Any:
        return self.array.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_borrowed_memory_is_kept_until_it_is_read() -> None:
    a, b, out = integers(128, 64), integers(64, 96), cupy.empty((128, 96), np.float32)
    stream = cupy.cuda.Stream(non_blocking=True)
    kernel = find_kernels(GemmArguments(a, b, out))[0]
    kernel.run(GemmArguments(a, b, out))
    own = sys.getrefcount(a)
    late_copy(stream, a)  # the kernel waits for this copy
    kernel.run(GemmArguments(Lent(a), b, out), stream=stream)
    assert sys.getrefcount(a) == own + 1
    stream.synchronize()
    kernel.run(GemmArguments(Lent(a), b, out), stream=stream)  # releases the first capsule
    assert sys.getrefcount(a) == own + 1
    stream.synchronize()
    np.testing.assert_array_equal(out.get(), a.get() @ b.get())
