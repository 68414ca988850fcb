"""The arrays that are bound to what an epilogue returns: each is written, or refused."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright import EpilogueArguments, InvalidArgument

A, B = np.arange(48, dtype=np.float32).reshape(8, 6) % 5, np.arange(24, dtype=np.float32).reshape(6, 4) % 3


def doubled(accum: Any) -> Any:
    D = accum * 2.0
    return D


def named_otherwise(accum: Any) -> Any:
    F = accum * 2.0
    return F


def with_accumulators(accum: Any, scale: Any) -> Any:
    D = np.maximum(accum - 3.0, 0.0) * scale
    return D, accum


@pytest.mark.parametrize(
    ("epilogue", "name"),
    [(doubled, "D"), (named_otherwise, "F"), ("D = 2 * acc", "D"), ("def f(accum): return 2 * accum", "D")],
)
def test_an_array_for_the_result_is_the_one_that_is_written(epilogue: Any, name: str) -> None:
    out = np.full((8, 4), -1, np.float32)
    reason = rf"the array {name}= is the result of the epilogue, which is written to out, .* pass it as out"
    with pytest.raises(InvalidArgument, match=reason):
        tilewright.matmul(A, B, epilogue=epilogue, **{name: out})
    with pytest.raises(InvalidArgument, match=reason):
        tilewright.matmul(A, B, epilogue=epilogue, out=np.empty_like(out), **{name: out})
    with pytest.raises(InvalidArgument, match=reason):
        tilewright.GemmArguments(A, B, np.empty_like(out), epilogue=EpilogueArguments(epilogue, **{name: out}))
    with pytest.raises(InvalidArgument, match=reason):
        tilewright.contract("mk,kn->mn", A, B, epilogue=epilogue, **{name: out})
    assert (out == -1).all()
    for _ in range(3):  # the first call, and those that may repeat it
        result = tilewright.matmul(A, B, out=out, epilogue=epilogue, **{name: out})
        assert result is out and np.array_equal(out, 2 * A @ B)
        out[:] = -1
    with pytest.raises(InvalidArgument, match=reason):
        tilewright.matmul(A, B, out=np.empty_like(out), epilogue=epilogue, **{name: out})


def test_another_view_of_the_same_elements_is_the_same_array() -> None:
    out = np.empty((8, 4), np.float32)
    tilewright.matmul(A, B, out=out, epilogue=doubled, D=out[:])
    np.testing.assert_array_equal(out, 2 * A @ B)
    with pytest.raises(InvalidArgument, match="the array D= is the result of the epilogue"):
        tilewright.matmul(A, B[:, :2], out=out[:, :2], epilogue=doubled, D=out[:, 2:])


def test_the_result_of_a_convolution_too() -> None:
    x, w = np.ones((1, 2, 5, 5), np.float32), np.ones((4, 2, 3, 3), np.float32)
    x, w = (each.transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2) for each in (x, w))
    other = np.empty((1, 4, 3, 3), np.float32)
    with pytest.raises(InvalidArgument, match="the array D= is the result of the epilogue"):
        tilewright.conv2d(x, w, epilogue=doubled, D=other)


def test_accumulators_can_be_returned() -> None:
    out, accum = np.empty((8, 4), np.float16), np.empty((8, 4), np.float32)
    a, b = A.astype(np.float16), B.astype(np.float16)
    for _ in range(2):
        tilewright.matmul(a, b, out=out, epilogue=with_accumulators, scale=0.5, accum=accum)
        np.testing.assert_array_equal(accum, A @ B)
        np.testing.assert_array_equal(out, np.maximum(A @ B - 3, 0) * 0.5)
        accum[:] = out[:] = 0
    batch = np.empty((1, 3, 8, 4), np.float32)
    stacked = np.stack([A, A + 1, A - 2])[None]
    tilewright.matmul(stacked, B, epilogue=with_accumulators, scale=0.5, accum=batch)
    np.testing.assert_array_equal(batch, stacked @ B)


def test_an_array_for_accumulators_that_are_not_returned() -> None:
    with pytest.raises(InvalidArgument, match="'accum' stands for the accumulators .* only if the function returns it"):
        tilewright.matmul(A, B, epilogue=doubled, accum=np.empty((8, 4), np.float32))


def test_a_function_without_accumulators() -> None:
    def scaled(alpha: Any, C: Any) -> Any:
        D = C * alpha
        return D

    reason = "accum must be an input to the epilogue function: here the first parameter of scaled, 'alpha', stands"
    with pytest.raises(InvalidArgument, match=reason):
        tilewright.matmul(A, B, epilogue=EpilogueArguments(scaled, alpha=1.0, C=np.ones((8, 4), np.float32)))


def test_pickles_keep_the_class() -> None:
    from tilewright.cutlass_api.arguments import EpilogueArguments as OfCutlass

    for kind in (EpilogueArguments, OfCutlass):
        out = np.ones((8, 4), np.float32)
        restored = pickle.loads(pickle.dumps(kind(doubled, D=out)))
        assert type(restored) is kind and np.array_equal(restored.operands["D"], out)


def test_programs_of_jax_take_no_array_for_the_result() -> None:
    jax = pytest.importorskip("jax")
    import tilewright.jax

    b, d = jax.numpy.asarray(B), jax.numpy.zeros((8, 4), np.float32)
    with pytest.raises(InvalidArgument, match="the epilogue writes D: in a program of JAX, .* takes no array for it"):
        jax.jit(lambda a: tilewright.matmul(a, b, epilogue=doubled, D=d))(jax.numpy.asarray(A))
    result = jax.jit(lambda a: tilewright.matmul(a, b, epilogue=doubled))(jax.numpy.asarray(A))
    np.testing.assert_array_equal(result, 2 * A @ B)
