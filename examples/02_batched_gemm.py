"""A batched GEMM in one launch: D[i] = A[i] @ B. A has a batch mode, and B is broadcast to all products."""

import numpy as np

import tilewright

a = np.arange(8, dtype=np.float32)[:, None, None] * np.ones((8, 64, 32), np.float32)
b = np.full((32, 48), 2.0, np.float32)
d = tilewright.matmul(a, b)
assert (d == a @ b).all() and d.shape == (8, 64, 48)
