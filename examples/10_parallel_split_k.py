"""Split-K in parallel mode: D = relu(A @ B + bias) with a small D and a long K. GEMMs write partial sums to a workspace,
and a reduction adds them and applies the epilogue."""

import numpy as np

import tilewright

m, n, k = 32, 48, 1000
a, b = np.ones((m, k), np.float32), np.full((k, n), 0.5, np.float32)
bias, d = np.full(n, -100, np.float32), np.empty((m, n), np.float32)
gemm = tilewright.GemmArguments(a, b, d, epilogue="D = relu(acc + row(bias))", tensors={"bias": bias})

shape, dtype = tilewright.split_k_workspace(gemm, parts=3)
workspace = np.empty(shape, np.float32)
partial_gemms, reduction = tilewright.split_k(gemm, 3, workspace)
for each in [*partial_gemms, reduction]:
    tilewright.run(each)
assert (d == 400).all()

# The partial sums can be reduced again, with another epilogue.
total = np.empty((m, n), np.float32)
tilewright.run(tilewright.ReduceSplitKArguments(workspace, total, alpha=2.0))
assert (total == 1000).all()
