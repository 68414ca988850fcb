"""A custom epilogue: bias and activation. The input of the activation is stored as well, for a backward pass."""

import numpy as np

import tilewright


def bias_silu(accum, bias):  # traced, not called: it becomes part of the kernel
    before = accum + bias
    D = before / (1 + np.exp(-before))
    return D, before


random = np.random.default_rng(2)
a, b, bias = (random.normal(size=shape).astype(np.float32) for shape in [(128, 64), (64, 96), (96,)])
before = np.empty((128, 96), np.float32)
d = tilewright.matmul(a, b, epilogue=bias_silu, bias=bias, before=before)
assert np.allclose(before, a @ b + bias, atol=1e-4)
assert np.allclose(d, before / (1 + np.exp(-before)), atol=1e-4)

try:
    tilewright.matmul(a, b, epilogue=lambda accum: sorted(accum))
except tilewright.TraceError as error:
    print(error)  # the message names the line
