"""tilewright.shims: programs for CUTLASS's Python interfaces run without any change but one call."""

import pathlib
import subprocess
import sys

import pytest

import tilewright.shims
from tilewright import InvalidArgument

README = (pathlib.Path(__file__).parents[2] / "examples" / "09_pycutlass_readme.py").read_text()
NOTEBOOK = (pathlib.Path(__file__).parents[2] / "examples" / "15_cutlass_api_notebook.py").read_text()
INSTALL = "import tilewright.shims\nassert tilewright.shims.install() == ['cutlass', 'cutlass_api', 'pycute', 'pycutlass']\n"


def run(program: str, folder: pathlib.Path, packages: dict[str, str] | None = None) -> str:
    for name, text in (packages or {}).items():
        (folder / f"{name}.py").write_text(text)
    (folder / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_readme_of_pycutlass_runs_with_its_own_imports(tmp_path: pathlib.Path) -> None:
    own = README.replace("from tilewright import pycutlass", "import pycutlass").replace(
        "tilewright.pycutlass", "pycutlass"
    )
    assert "tilewright" not in own
    run(INSTALL + own, tmp_path)


def test_the_notebook_of_cutlass_api_runs_with_its_own_imports(tmp_path: pathlib.Path) -> None:
    own = (
        NOTEBOOK.replace("from tilewright import cutlass_api", "import cutlass_api")
        .replace("from tilewright.cutlass_api import cutlass\n", "import cutlass\n")
        .replace("from tilewright.cutlass_api.cutlass import cuda, cute", "import cutlass.cute as cute")
        .replace("cuda.CUstream", "object")
        .replace("from tilewright.cutlass_api.", "from cutlass_api.")
    )
    assert run(INSTALL + own, tmp_path).split() == ["F64GemmKernel_tile32x32_ttt", "F64GemmKernel_tile16x16_ttt"]


def test_modules_are_the_same_under_both_names(tmp_path: pathlib.Path) -> None:
    run(
        INSTALL
        + """
import cutlass.gemm, cutlass_api.utils, pycute, pycutlass.utils, tilewright
assert pycute is tilewright.pycute
assert cutlass is tilewright.pycutlass.cutlass and cutlass.gemm is tilewright.pycutlass.cutlass.gemm
assert cutlass_api.utils is tilewright.cutlass_api.utils and pycutlass.utils is tilewright.pycutlass.utils
try:
    import pycutlass.builder.collective_op_builder
except ModuleNotFoundError as error:
    assert error.name.startswith("pycutlass.builder")
else:
    raise AssertionError
tilewright.shims.uninstall()
try:
    import pycutlass
except ModuleNotFoundError:
    pass
else:
    raise AssertionError
""",
        tmp_path,
    )


# The modules from which programs for these packages import, and a name of each.
MODULES = {
    "cutlass.conv": "Conv2dProblemSize",
    "cutlass.cute": "Tensor",
    "cutlass.cute.arch": "thread_idx",
    "cutlass.cute.math": "exp",
    "cutlass.cute.runtime": "make_fake_stream",
    "cutlass_api.fusion": "trace",
    "cutlass_api.fusion.activation": "relu",
    "cutlass_api.providers.cutedsl.kernel": "CuteDslKernel",
    "cutlass_api.typing": "TensorLike",
    "cutlass_api.utils": "device_cc",
    "pycute.int_tuple": "flatten",
    "pycute.layout": "Layout",
    "pycute.swizzle": "Swizzle",
    "pycute.typing": "Integer",
    "pycutlass.conv2d_operation": "Conv2dOperation",
    "pycutlass.epilogue": "LinearCombination",
    "pycutlass.gemm_operation": "GemmOperationGrouped",
    "pycutlass.library": "TensorDescription",
    "pycutlass.memory_manager": "get_allocated_size",
    "pycutlass.reduction_operation": "ReductionOperation",
    "pycutlass.test": "test_all_gemm",
    "pycutlass.test.gemm_grouped_testbed": "TestbedGrouped",
    "pycutlass.test.profiler": "GpuTimer",
    "pycutlass.test.utils": "LayoutCombination",
    "pycutlass.utils.datatypes": "to_cutlass",
    "pycutlass.utils.device": "device_cc",
    "pycutlass.utils.reference_model": "ReferenceModule",
}


@pytest.mark.parametrize("prefix", ["", "tilewright."])
@pytest.mark.parametrize("statement", ["from {0} import {1}", "import {0} as m; m.{1}", "import {0}; {0}.{1}"])
def test_submodules_can_be_imported_first(statement: str, prefix: str, tmp_path: pathlib.Path) -> None:
    """Each in a fresh state of the shims, because an import of one submodule makes others known."""
    lines = ["import tilewright.shims"]
    for module, name in MODULES.items():
        root, _, rest = module.partition(".")
        real = f"tilewright.{'pycutlass.cutlass' if root == 'cutlass' else root}.{rest}"
        lines += ["tilewright.shims.uninstall()", "" if prefix else "tilewright.shims.install()"]
        lines.append(statement.format(real if prefix else module, name))
    run("\n".join(lines), tmp_path)


def test_submodules_have_the_same_objects(tmp_path: pathlib.Path) -> None:
    run(
        INSTALL
        + """
import cutlass.cute.runtime, pycute.layout, pycutlass.library, pycutlass.utils.device, tilewright.pycutlass
from cutlass import cute
from pycutlass import library
assert library is pycutlass.library is tilewright.pycutlass.library
assert library.TensorDescription is pycutlass.TensorDescription
assert pycutlass.utils.device.device_cc is pycutlass.device_cc
assert pycutlass.memory_manager.get_memory_pool is pycutlass.get_memory_pool
assert pycute.layout.Layout is pycute.Layout
assert cutlass.cute.runtime is cute.runtime and cute.runtime.make_fake_stream() is None
import pycute.typing, pycutlass.utils.datatypes
assert pycutlass.utils.datatypes.to_cutlass is pycutlass.utils.to_cutlass
""",
        tmp_path,
    )


def test_real_packages_are_not_replaced(tmp_path: pathlib.Path) -> None:
    program = (
        "import tilewright.shims\n"
        "assert tilewright.shims.install('cutlass', 'pycutlass') == ['pycutlass']\n"
        "import cutlass\n"
        "assert cutlass.own == 1"
    )
    run(program, tmp_path, {"cutlass": "own = 1"})


def test_unknown_names_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="no shim named 'cutlas': there are cutlass, cutlass_api, pycute, pycutlass"):
        tilewright.shims.install("cutlas")
