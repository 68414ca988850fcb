"""Discovery: the kernels that can compute a problem, best first; a filter by metadata; why the others cannot."""

import itertools

import numpy as np

import tilewright

a, b, d = np.full((96, 48), 0.5, np.float32), np.full((48, 64), 2.0, np.float32), np.empty((96, 64), np.float32)
args = tilewright.GemmArguments(a, b, d, accumulator_type="float32")

small = tilewright.find_kernels(args, metadata_filter=lambda metadata: metadata.design.tile_shape[0] <= 64)
small[0].run(args)
print(small[0].name, d[0, 0])
assert (d == a @ b).all()

# Each refusal has a reason to read, and a code, an operand and the numbers for programs.
explanation = tilewright.explain(args)
print(explanation)
for refused in explanation.refused:
    print(refused.name, refused.code, refused.operand, refused.numbers)

# All kernels, for any problem. Each one is generated when the iteration reaches it.
for kernel in itertools.islice(tilewright.list_kernels(target="sm_90a"), 3):
    print(kernel.name)
