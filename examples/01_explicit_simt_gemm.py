"""The caller chooses the kernel: SIMT f32, CTA tile 128x128x8, 4 stages, 2x4x1 warps."""

import numpy as np

import tilewright

matrix = tilewright.TensorAttributes("float32", "row", divisibility=1)
design = tilewright.BLASDesignMetadata((128, 128, 8), stages=4, warp_count=(2, 4, 1), op_class="simt")
kernel = tilewright.make_kernel(matrix, matrix, matrix, "float32", design)
random = np.random.default_rng(1)
a, b = (random.integers(-8, 8, shape).astype(np.float32) for shape in [(256, 64), (64, 128)])
d = np.empty((256, 128), np.float32)
kernel.run(tilewright.GemmArguments(a, b, d))
print(kernel.name)
assert (d == a @ b).all()
