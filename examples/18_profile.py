"""Profiles GEMMs of several sizes with the best kernel of two families, and tunes one of them. On the emulator, kernels
are verified and counted; on a GPU they are timed too."""

import tilewright

problems = tilewright.gemms([32, 64], 64, 64, dtype="float16")  # without memory: a profile allocates operands of its own
found = tilewright.profile(problems, providers=["sm80_gemm", "simt_gemm"])
print(found)
print(f"a report of {len(found.to_html())} bytes")  # found.save("report.html") writes it

assert len(found) == 2
for problem in found:
    assert [kernel["disposition"] for kernel in problem["kernels"]] == ["passed", "passed"]

# On a GPU the fastest kernel is remembered, and later calls use it.
tuning = tilewright.tune(problems[0], top=2, verify_only=found.is_emulated)
print(tuning["candidates"])
assert len(tuning["candidates"]) == 2
