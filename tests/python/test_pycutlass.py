"""`tilewright.pycutlass`: the examples of PyCUTLASS's README and of the guide, names, types, layouts, designs, extents."""

import importlib
import re
import subprocess
import sys

import numpy as np
import pytest
from pycutlass_problems import (
    CASES,
    COLUMN,
    CONFIGURATIONS,
    F16,
    F32,
    ROW,
    Configuration,
    K,
    M,
    N,
    case_id,
    empty,
    matrix,
    problem,
    run,
    simt,
)

from conftest import ROOT
from tilewright import pycutlass
from tilewright.pycutlass import cutlass


@pytest.fixture(scope="module")
def operations():
    """An operation for each case, compiled together."""
    if pycutlass.device_cc() < 90:
        pytest.skip("tensor cores of sm_90 are among them")
    made = {case_id((name, layouts)): CONFIGURATIONS[name].operation(layouts) for name, layouts in CASES}
    pycutlass.compiler.add_module([*made.values()])
    return made


def test_the_readmes_example_runs():
    finished = subprocess.run(
        [sys.executable, ROOT / "examples/09_pycutlass_readme.py"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == "cutlass_sm80_simt_sgemm_1x1x1_128x128_8x4_tt_align1: 512x256 elements as expected\n"


def test_the_guide_runs(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/pycutlass.md").read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "guide.py").write_text("\n".join(blocks))
    subprocess.run([sys.executable, tmp_path / "guide.py"], timeout=120, check=True)


def test_the_guide_has_all_names():
    guide = (ROOT / "docs/pycutlass.md").read_text()
    values = {"ActivationFunctor", "ApiVersion", "ArtifactManager", "api_version", "align_size", "cutlass"}
    kinds = {"GemmKind", "OperationKind", "SchedulerMode", "StrideSupport", "GroupedGemmArguments", "compiler"}
    missing = [name for name in pycutlass.__all__ if not re.search(rf"`(\w+\.)*{name}\b", guide)]
    assert set(missing) <= values | kinds


NAMES_OF_CUTLASS = """
RowMajor ColumnMajor RowMajorInterleaved32 ColumnMajorInterleaved32 TensorNHWC TensorNC32HW32 TensorC32RSK32
float16 bfloat16 float32 float64 tfloat32 int8 int32 OpClass complex_transform MatrixCoord Tensor4DCoord dim3 gemm conv
IdentitySwizzle1 IdentitySwizzle2 IdentitySwizzle4 IdentitySwizzle8 HorizontalSwizzle BatchedIdentitySwizzle
StridedDgradIdentitySwizzle1 StridedDgradIdentitySwizzle4 StridedDgradHorizontalSwizzle
"""


def test_all_names_exist():
    assert all(hasattr(pycutlass, name) for name in pycutlass.__all__)
    assert all(hasattr(cutlass, name) for name in NAMES_OF_CUTLASS.split())
    assert importlib.import_module("tilewright.pycutlass.cutlass") is cutlass
    assert [*cutlass.conv.Operator.__members__] == ["fprop", "dgrad", "wgrad"]
    assert pycutlass.device_cc() == pycutlass.DEVICE_CC
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = pycutlass.no_such_name


def test_tilewright_does_not_import_pycutlass():
    program = "import sys, tilewright; tilewright.matmul; print('tilewright.pycutlass' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "False\n"


# Types, layouts, instructions.


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_every_type_layout_and_instruction(operations, case):
    operation = operations[case_id(case)]
    (a, b, c), memory = problem(operation, most=2)  # bfloat16 holds integers up to 256
    d = empty(operation, M, N)
    run(operation, memory, d, 2.0, -3.0)
    assert np.array_equal(matrix(d, operation), 2 * a @ b - 3 * c)


def test_the_kernel_has_the_described_design():
    configuration = Configuration([16, 8, 16], F16, F32, F32, [64, 128, 32], 4, [2, 2, 1])
    operation = configuration.operation((COLUMN, ROW, ROW), swizzle=cutlass.IdentitySwizzle4)
    design = operation.kernel.metadata.design
    assert (design.tile_shape, design.stages, design.warp_count) == ((64, 128, 32), 4, (2, 2, 1))
    assert (design.instruction_shape, design.raster_width) == ((16, 8, 16), 4)
    assert operation.procedural_name() == "cutlass_sm80_tensorop_s16x8x16gemm_f16_1x1x1_64x128_32x4_nt_align8"
    assert 'extern "C"' in operation.rt_module.emit()
    assert operation.tile_description.num_threads == 128


RASTERS = {
    cutlass.IdentitySwizzle1: (1, "m"),
    cutlass.IdentitySwizzle2: (2, "m"),
    cutlass.IdentitySwizzle4: (4, "m"),
    cutlass.IdentitySwizzle8: (8, "m"),
    cutlass.HorizontalSwizzle: (1, "n"),
    cutlass.BatchedIdentitySwizzle: (1, "m"),
}


@pytest.mark.parametrize("layout", [ROW, COLUMN], ids=["row", "column"])
def test_the_kernel_has_the_order_of_the_swizzle(layout):
    hopper = CONFIGURATIONS["hopper_f16_columns" if layout is COLUMN else "hopper_f16"]
    families = [CONFIGURATIONS["simt_f32"], CONFIGURATIONS["f16"]] + [hopper] * (pycutlass.device_cc() >= 90)
    for swizzle, raster in RASTERS.items():
        for family in families:
            operation = family.operation((ROW, COLUMN, layout), swizzle=swizzle)
            design = operation.kernel.metadata.design
            assert (design.raster_width, design.raster_along) == raster
            # The kernel's text has the order of the problem as computed, which is transposed for a column-major D.
            groups_rows = (raster[1] == "n") != (layout is COLUMN)
            assert f"Raster<{raster[0]}, {str(groups_rows).lower()}>" in operation.rt_module.emit()


@pytest.mark.parametrize(
    "swizzle",
    [
        cutlass.IdentitySwizzle1,
        cutlass.IdentitySwizzle2,
        cutlass.IdentitySwizzle4,
        cutlass.IdentitySwizzle8(),
        cutlass.HorizontalSwizzle,
        cutlass.BatchedIdentitySwizzle,
    ],
)
def test_every_swizzle(swizzle):
    operation = simt(swizzle=swizzle)
    (a, b, c), memory = problem(operation, m=100, n=110, k=8)
    d = empty(operation, 100, 110)
    run(operation, memory, d, 1.0, 1.0, size=(100, 110, 8))
    assert np.array_equal(d, a @ b + c)


@pytest.mark.parametrize(
    "size", [(1, 1, 1), (1, N, K), (M, 1, K), (M, N, 1), (0, N, K), (M, 0, K), (M, N, 0), (33, 35, 37)]
)
@pytest.mark.parametrize("layouts", [(ROW, ROW, ROW), (COLUMN, COLUMN, COLUMN)])
def test_any_extents(size, layouts):
    operation = simt(layouts=layouts)
    m, n, k = size
    (a, b, c), memory = problem(operation, m=m, n=n, k=k)
    d = empty(operation, m, n)
    run(operation, memory, d, 1.0, 2.0, size=size)
    assert np.array_equal(matrix(d, operation), a @ b + 2 * c)
