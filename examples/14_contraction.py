"""Contractions of two arrays, and an einsum of three. Nothing is transposed or copied."""

import numpy as np
import tilewright

rng = np.random.default_rng(0)
a = rng.integers(-3, 4, (6, 5, 8, 7)).astype(np.float32)
b = rng.integers(-3, 4, (7, 8, 4, 3)).astype(np.float32)

# The modes c and d have different orders in a and b, and the result any.
result = tilewright.contract("abcd,dcef->aebf", a, b)
assert np.array_equal(result, np.einsum("abcd,dcef->aebf", a, b))

bias = rng.integers(-3, 4, (1, 4, 1, 3)).astype(np.float32)  # one number for each e and f
result = tilewright.contract("abcd,dcef->aebf", a, b, epilogue="D = relu(acc + row(bias))", bias=bias)
assert np.array_equal(result, np.maximum(np.einsum("abcd,dcef->aebf", a, b) + bias, 0))

args = tilewright.ContractionArguments("abcd,dcef->aebf", a, b, np.empty((6, 4, 5, 3), np.float32))
print(f"{args.classes}: a GEMM of {args.m}x{args.n}x{args.k}")

x, y, z = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((9, 40), (40, 30), (30, 2)))
assert np.array_equal(tilewright.einsum("ij,jk,kl->il", x, y, z), x @ (y @ z))
