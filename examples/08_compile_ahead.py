"""Several kernels are compiled in parallel. A callback reports the progress."""

import numpy as np

import tilewright

a, b, d = np.full((64, 32), 0.5, np.float32), np.full((32, 48), 2.0, np.float32), np.empty((64, 48), np.float32)
args = tilewright.GemmArguments(a, b, d)
kernels = tilewright.find_kernels(args)[:3]
artifacts = tilewright.compile_kernels(kernels, on_progress=lambda done, all, name: print(f"{done} of {all}: {name}"))
for kernel, artifact in zip(kernels, artifacts):
    d[:] = np.nan
    kernel.run(args, artifact)
    assert (d == a @ b).all()
