"""tilewright.emulator: kernels of the user's on the emulator, with NumPy arrays."""

import doctest
import warnings

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
        ([np.ones(4), emulator.Output(np.float32(1)), 1, 1], r"args\[1\] is an Output of .*1.0.*, which is no array"),
        ([np.ones(4), emulator.Output([0.0]), 1, 1], r"args\[1\] is an Output of \[0.0\], which is no array"),
    ],
)
def test_wrong_arguments_name_the_parameter(module: emulator.Module, arguments: list[object], says: str) -> None:
    with pytest.raises(tilewright.InvalidArgument, match=says):
        module.launch("scale", 1, 32, arguments)


def test_arrays_of_other_elements_are_warned_of() -> None:
    kernel = "__global__ void f(const float* x, unsigned* n, char* bytes) { n[0] = x[0] > 0; }"
    try:
        module = emulator.Module(kernel + 'extern "C" __global__ void g(const float* x) {}')
    except tilewright.ToolchainNotFound:
        pytest.skip("no NVRTC on this machine")
    x, n, raw = np.ones(4, np.float32), np.zeros(4, np.int32), np.zeros(4, np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module.launch("f", args=[x, n, raw])
        module.launch("f", args=[x.view(np.uint8), emulator.Output(n), None])
        module.launch("g", args=[raw])
    with pytest.warns(RuntimeWarning, match=r"args\[0\] has elements of '<f8', and .* points to elements of '<f4'") as found:
        module.launch("f", args=[raw, n, raw])
    assert found[0].filename == __file__
    with pytest.warns(RuntimeWarning, match=r"args\[1\] has elements of '<f4', and .* points to elements of '<u4'"):
        module.launch("f", args=[x, emulator.Output(x), raw])


def test_arrays_of_f16_are_no_arrays_of_bf16() -> None:
    try:
        module = emulator.Module("#include <cuda_bf16.h>\n__global__ void f(const __nv_bfloat16* x) {}")
    except tilewright.ToolchainNotFound:
        pytest.skip("no NVRTC on this machine")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module.launch("f", args=[np.ones(4, np.uint16)])
    with pytest.warns(RuntimeWarning, match=r"args\[0\] has elements of '<f2', .* points to elements of 'bfloat16'"):
        module.launch("f", args=[np.ones(4, np.float16)])


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


SHARED_OF_OTHERS = """
__shared__ float tile[12000];
extern __shared__ float dynamic[];
__global__ void in_tile(float* out) {
  tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x ^ 1];
}
__device__ __noinline__ float through_a_function(int i) { return tile[i]; }
__global__ void in_tile_of_a_function(float* out) { out[threadIdx.x] = through_a_function(threadIdx.x); }
__global__ void in_dynamic(float* out) {
  dynamic[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = dynamic[threadIdx.x ^ 1];
}
"""


def test_kernels_take_only_the_shared_memory_that_they_use():
    module = emulator.Module(SHARED_OF_OTHERS)
    out = np.empty(32, np.float32)
    whole = 227 * 1024  # what a CTA of sm_90 can have
    assert not module.launch("in_dynamic", block=32, args=[emulator.Output(out)], shared_bytes=whole)
    assert out.tolist() == [i ^ 1 for i in range(32)]
    assert not module.launch("in_tile", block=32, args=[emulator.Output(out)])
    for kernel in ("in_tile", "in_tile_of_a_function"):
        with pytest.raises(tilewright.InvalidArgument, match="shared memory"):
            module.launch(kernel, block=32, args=[emulator.Output(out)], shared_bytes=whole)


CONTINUES = """
typedef unsigned int u32;
__device__ u32 shared_address(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }
__device__ void init(unsigned long long* bar) {
  asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(bar)) : "memory");
}

__global__ void __cluster_dims__(2) late_arrival(float* out) {
  __shared__ unsigned long long bar;
  u32 rank, there;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) init(&bar);
  asm volatile("barrier.cluster.arrive.aligned;\\n barrier.cluster.wait.aligned;" ::: "memory");
  if (rank == 1) return;
  for (int i = 0; i < 20000; ++i) asm volatile("");
  asm("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(there) : "r"(shared_address(&bar)));
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(there) : "memory");  // BUG
  out[threadIdx.x] = threadIdx.x;
}

__global__ void unfenced(const float* from, float* out) {
  __shared__ alignas(128) float tile[32];
  __shared__ unsigned long long bar;
  const u32 at = shared_address(&bar);
  if (threadIdx.x == 0) init(&bar);
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 128;" ::"r"(at) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];" ::"r"(
                     shared_address(tile)), "l"(from), "r"(at) : "memory");  // BUG
  }
  u32 done = 0;
  while (done == 0) {
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(at) : "memory");
  }
  out[threadIdx.x] = tile[threadIdx.x];
}
"""


def test_a_launch_goes_on_after_findings_of_clusters_and_bulk_copies():
    module = emulator.Module(CONTINUES)
    numbers, out = np.arange(32, dtype=np.float32), np.empty(32, np.float32)
    (late,) = module.launch("late_arrival", grid=2, block=32, cluster=2, args=[emulator.Output(out)])
    assert (late.kind, late.count) == ("exited_cta_access", 32)
    assert out.tolist() == numbers.tolist()
    out[:] = 0
    (unfenced,) = module.launch("unfenced", block=32, args=[numbers, emulator.Output(out)])
    assert unfenced.kind == "missing_proxy_fence"
    assert out.tolist() == numbers.tolist()
