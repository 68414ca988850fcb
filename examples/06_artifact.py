"""Ahead-of-time compilation: a kernel is compiled for shapes alone, saved, loaded, and run without a compiler."""

import tempfile

import numpy as np

import tilewright
from tilewright import GemmArguments, ShapeOnly

shapes = [ShapeOnly([64, 32], "float32"), ShapeOnly([32, 48], "float32"), ShapeOnly([64, 48], "float32")]
kernel = tilewright.find_kernels(GemmArguments(*shapes))[0]
with tempfile.TemporaryDirectory() as folder:
    kernel.compile(GemmArguments(*shapes)).save(f"{folder}/gemm.twk")
    artifact = tilewright.load_artifact(f"{folder}/gemm.twk")  # damaged files are refused

a, b, d = np.full((64, 32), 0.5, np.float32), np.full((32, 48), 2.0, np.float32), np.empty((64, 48), np.float32)
prepared = tilewright.prepare(GemmArguments(a, b, d), kernel, artifact)
for _ in range(3):  # run() only launches
    prepared.run()
assert (d == a @ b).all()
print(artifact.name, artifact.target, artifact.compiler)
