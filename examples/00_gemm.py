"""The shortest use: `matmul` finds the best kernel for the product, compiles it, caches it and runs it."""

import numpy as np

import tilewright

a, b = np.full((256, 320), 0.5, np.float32), np.full((320, 192), 2.0, np.float32)
d = tilewright.matmul(a, b)
print(f"{tilewright.device_name()}: D[0,0] = {d[0, 0]:g}")
assert (d == 0.5 * 2.0 * 320).all()
