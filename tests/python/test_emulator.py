"""tilewright.emulator: kernels of the user's on the emulator, with NumPy arrays."""

import doctest

import numpy as np
import pytest

import tilewright
from tilewright import emulator

SCALE = """.version 9.0
.target sm_80
.address_size 64
.global .u32 launches = 0;
.visible .entry scale(.param .u64 .ptr x, .param .u64 .ptr out, .param .u32 n, .param .f32 by)
{
  .reg .u32 %t, %n;
  .reg .u64 %x, %out;
  .reg .f32 %v, %by;
  .reg .pred %p;
  mov.u32 %t, %tid.x;
  ld.param.u32 %n, [n];
  setp.ge.u32 %p, %t, %n;
  @%p bra END;
  ld.param.f32 %by, [by];
  ld.param.u64 %x, [x];
  ld.param.u64 %out, [out];
  mad.wide.u32 %out, %t, 4, %out;
  mad.wide.u32 %x, %t, 4, %x;
  ld.global.f32 %v, [%x];
  mul.f32 %v, %v, %by;
  st.global.f32 [%out], %v;
END:
  ret;
}
.visible .entry count(.param .u64 .ptr out)
{
  .reg .u32 %c;
  .reg .u64 %out;
  ld.global.u32 %c, [launches];
  add.u32 %c, %c, 1;
  st.global.u32 [launches], %c;
  ld.param.u64 %out, [out];
  st.global.u32 [%out], %c;
  ret;
}
"""


@pytest.fixture(scope="module")
def module() -> emulator.Module:
    return emulator.Module(SCALE, target="sm_80")


def test_a_launch_reads_and_writes_arrays(module: emulator.Module) -> None:
    x, out = np.arange(40, dtype=np.float32), np.empty(40, np.float32)
    assert module.kernels == ["scale", "count"]
    assert module.launch("scale", 1, 64, [x, emulator.Output(out), 40, 2]) == []
    assert np.array_equal(out, 2 * x)


def test_findings_are_returned(module: emulator.Module) -> None:
    x, out = np.ones(40, np.float32), np.zeros(40, np.float32)
    finding = module.launch("scale", 1, (64, 1), [x, out, np.uint32(41), np.float32(0.5)])[0]
    assert (finding.kind, finding.severity, finding.thread, finding.cta) == (
        "out_of_bounds_global",
        "error",
        (40, 0, 0),
        (0, 0, 0),
    )
    assert finding.ptx.startswith("ld.global.f32") and finding.line is None
    assert "out_of_bounds_global at PTX line" in str(finding)
    assert np.array_equal(out, np.full(40, 0.5)), "the other threads continue"


def test_a_profile_counts_what_a_launch_executes(module: emulator.Module) -> None:
    x, out = np.arange(40, dtype=np.float32), np.empty(40, np.float32)
    profile = module.profile("scale", 1, 64, [x, emulator.Output(out), 40, 2])
    assert profile.findings == [] and np.array_equal(out, 2 * x)
    load = profile.instructions["ld.global"]
    assert (load.instructions, load.active_lanes, load.global_bytes, load.global_sectors) == (2, 40, 160, 5)
    assert profile.total.global_sectors == 10 and profile.total.bank_conflicts == 0
    assert sum(counts.instructions for counts in profile.lines.values()) == profile.total.instructions


def test_the_kernels_of_a_module_share_its_variables(module: emulator.Module) -> None:
    out = np.zeros(1, np.uint32)
    for expected in (1, 2):
        assert module.launch("count", args=[out]) == []
        assert out[0] == expected


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([np.ones(4, np.float32)], "scale takes 4 arguments, got 1"),
        ([np.ones(4), np.ones(4), 1.5, 1], "parameter 2 takes a 32-bit integer, got the number 1.5"),
        ([np.ones(4), np.ones(4), 1 << 32, 1], "parameter 2 takes a 32-bit integer, got 4294967296"),
        ([np.ones(4), np.ones(4), "1", 1], "parameter 2 takes a 32-bit integer, got an object of type"),
        ([7, np.ones(4), 1, 1], "parameter 0 takes a pointer"),
        ([np.ones((4, 4)).T[1:], np.ones(4), 1, 1], r"args\[0\] is not C-contiguous"),
        ([np.broadcast_to(np.float32(1), 4), np.ones(4), 1, 1], r"args\[0\] is"),
    ],
)
def test_wrong_arguments_name_the_parameter(module: emulator.Module, arguments: list[object], says: str) -> None:
    with pytest.raises(tilewright.InvalidArgument, match=says):
        module.launch("scale", 1, 32, arguments)


def test_other_errors(module: emulator.Module, tmp_path: object) -> None:
    with pytest.raises(tilewright.InvalidArgument, match="its kernels are scale, count"):
        module.launch("nosuch")
    with pytest.raises(tilewright.InvalidArgument, match="grid must be"):
        module.launch("count", 0, args=[None])
    with pytest.raises(tilewright.InvalidArgument, match="cannot be read|can be read"):
        emulator.Module("no_such_file.ptx")
    with pytest.raises(tilewright.EmulationError, match="malformed PTX"):
        emulator.Module(".version 9.0\n.target sm_80\n.nosuch\n")


def test_the_example_of_the_documentation() -> None:
    try:
        assert doctest.testmod(emulator).failed == 0
    except tilewright.ToolchainNotFound:
        pytest.skip("no NVRTC on this machine")
