"""PyTorch tensors and operators, if it is installed: on the host with the emulator, and on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tilewright  # noqa: E402
import tilewright.torch  # noqa: E402

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
needs_two_gpus = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="fewer than two GPUs")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=needs_gpu)])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    torch.manual_seed(1)
    yield request.param


def integers(*shape: int, device: str, dtype: Any = torch.float16) -> Any:
    return torch.randint(-3, 4, shape, device=device).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_products(device: str, dtype: Any, batch: tuple[int, ...]) -> None:
    a, b = integers(*batch, 40, 24, device=device, dtype=dtype), integers(*batch, 24, 56, device=device, dtype=dtype)
    assert torch.equal(tilewright.matmul(a, b), (a.double() @ b.double()).to(dtype))
    assert torch.equal(tilewright.matmul(a.mT.contiguous().mT, b), (a.double() @ b.double()).to(dtype))


def test_a_traced_function(device: str) -> None:
    import torch.nn.functional as F

    def epilogue(accum: Any, bias: Any, scale: float) -> Any:
        return F.relu(accum * scale + bias)

    a, b = integers(40, 24, device=device), integers(24, 56, device=device)
    bias = integers(56, device=device, dtype=torch.float32)
    got = tilewright.matmul(a, b, epilogue=epilogue, bias=bias, scale=0.5, out_dtype=torch.float32)
    assert torch.equal(got, F.relu((a.double() @ b.double()).float() * 0.5 + bias))


def test_fake_tensors_are_shapes() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fakes = [torch.empty(shape, dtype=torch.float16) for shape in [(64, 32), (32, 48), (64, 48)]]
    args = tilewright.GemmArguments(*fakes)
    kernel = tilewright.find_kernels(args)[0]
    artifact = kernel.compile(args)
    a, b = integers(64, 32, device="cpu"), integers(32, 48, device="cpu")
    out = torch.empty(64, 48, dtype=torch.float16)
    kernel.run(tilewright.GemmArguments(a, b, out), artifact)
    assert torch.equal(out, (a.double() @ b.double()).half())
    metas = [torch.empty(shape, dtype=torch.float16, device="meta") for shape in [(64, 32), (32, 48), (64, 48)]]
    assert tilewright.find_kernels(tilewright.GemmArguments(*metas))[0].name == kernel.name


def test_operators_pass_torchs_own_checks(device: str) -> None:
    a = torch.randn(4, 6, device=device, dtype=torch.float64, requires_grad=True)
    b = torch.randn(6, 8, device=device, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(8, device=device, dtype=torch.float64, requires_grad=True)
    torch.library.opcheck(torch.ops.tilewright.matmul.default, (a, b))
    torch.library.opcheck(torch.ops.tilewright.linear.default, (a, b.t(), bias))
    assert torch.autograd.gradcheck(torch.ops.tilewright.matmul, (a, b))
    assert torch.autograd.gradgradcheck(torch.ops.tilewright.matmul, (a, b))
    assert torch.autograd.gradcheck(torch.ops.tilewright.linear, (a, b.detach().t().requires_grad_(), bias))


def test_gradients_of_a_shared_operand(device: str) -> None:
    a = torch.randn(3, 4, 6, device=device, dtype=torch.float64, requires_grad=True)
    b = torch.randn(6, 8, device=device, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(torch.ops.tilewright.matmul, (a, b))


@needs_gpu
def test_compiles_as_one_graph() -> None:
    def layer(x: Any, weight: Any, bias: Any) -> Any:
        return torch.ops.tilewright.linear(x, weight, bias).relu()

    x, weight = integers(32, 64, device="cuda"), integers(48, 64, device="cuda")
    bias = integers(48, device="cuda", dtype=torch.float32)
    compiled = torch.compile(layer, fullgraph=True)
    assert torch.equal(compiled(x, weight, bias), layer(x, weight, bias))


@needs_gpu
def test_streams_and_graphs() -> None:
    a, b = integers(256, 128, device="cuda"), integers(128, 192, device="cuda")
    out = torch.full((256, 192), float("nan"), device="cuda", dtype=torch.float16)
    args = tilewright.GemmArguments(a, b, out)
    prepared = tilewright.prepare(args)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):  # kernels run on the current stream
        prepared.run()
    stream.synchronize()
    expected = (a.double() @ b.double()).half()
    assert torch.equal(out, expected)

    out.fill_(float("nan"))
    torch.cuda.synchronize()
    for given in (stream, stream.cuda_stream):
        tilewright.find_kernels(args)[0].run(args, stream=given)
        stream.synchronize()
        assert torch.equal(out, expected)

    graph = torch.cuda.CUDAGraph()
    out.fill_(float("nan"))
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        prepared.run()
    a.copy_(integers(256, 128, device="cuda"))
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out, (a.double() @ b.double()).half())


@needs_gpu
@pytest.mark.parametrize("extents", [(128, 128, 65536), (4169, 3599, 1433)])
def test_graphs_of_kernels_with_a_workspace(extents: tuple[int, int, int]) -> None:
    m, n, k = extents
    a, b = integers(m, k, device="cuda"), integers(k, n, device="cuda")
    out = torch.full((m, n), float("nan"), device="cuda", dtype=torch.float32)
    args = tilewright.GemmArguments(a, b, out)
    calls = (tilewright.prepare(args, kernel) for kernel in tilewright.find_kernels(args))
    prepared = next(call for call in calls if call.workspace_bytes > 0)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        prepared.run()
    for _ in range(3):
        a.copy_(integers(m, k, device="cuda"))
        graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out.double(), a.double() @ b.double())


@needs_gpu
def test_every_kernel_found_is_correct() -> None:
    a, b = integers(192, 256, device="cuda"), integers(256, 320, device="cuda")
    out = torch.empty(192, 320, device="cuda", dtype=torch.float16)
    args = tilewright.GemmArguments(a, b, out)
    expected = (a.double() @ b.double()).half()
    kernels = tilewright.find_kernels(args)
    assert len(kernels) > 10
    tilewright.compile_kernels(list(kernels))
    for kernel in kernels:
        out.fill_(float("nan"))
        kernel.run(args)
        assert torch.equal(out, expected), kernel.name


@needs_gpu
def test_ten_thousand_runs_leak_nothing() -> None:
    a, b = integers(64, 64, device="cuda"), integers(64, 64, device="cuda")
    out = torch.empty(64, 64, device="cuda", dtype=torch.float16)
    kernel = tilewright.find_kernels(tilewright.GemmArguments(a, b, out))[0]
    kernel.run(tilewright.GemmArguments(a, b, out))
    torch.cuda.synchronize()
    before = tilewright.allocated_bytes("cuda:0"), torch.cuda.mem_get_info()[0]
    for _ in range(10000):
        kernel.run(tilewright.GemmArguments(a, b, out))
    torch.cuda.synchronize()
    assert tilewright.allocated_bytes("cuda:0") == before[0]
    assert torch.cuda.mem_get_info()[0] >= before[1] - (2 << 20)


@needs_gpu
def test_results_are_allocated_on_the_given_stream() -> None:
    a, b = integers(128, 64, device="cuda"), integers(64, 96, device="cuda")
    stream = torch.cuda.Stream()
    for given in (stream, stream.cuda_stream):
        late = torch.full_like(a, float("nan"))
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(100_000_000)
            late.copy_(a)
        out = tilewright.matmul(late, b, stream=given)
        stream.synchronize()
        assert torch.equal(out, (a.double() @ b.double()).half())
    assert tilewright.matmul(a, b, stream=0).isfinite().all()


@needs_two_gpus
def test_two_gpus() -> None:
    "Each GPU computes the tensors on it, and operands on two GPUs are refused before anything runs."
    on_first, on_second = ((integers(64, 32, device=gpu), integers(32, 48, device=gpu)) for gpu in ("cuda:0", "cuda:1"))
    for a, b in (on_first, on_second, on_first):
        product = tilewright.matmul(a, b)
        assert product.device == a.device
        assert torch.equal(product.float(), a.float() @ b.float())
    (a, _), (_, b) = on_first, on_second
    out = torch.full((64, 48), float("nan"), device="cuda:1", dtype=torch.float16)
    with pytest.raises(tilewright.InvalidArgument, match="cuda:[01]"):
        tilewright.matmul(a, b)
    with pytest.raises(tilewright.InvalidArgument, match="cuda:[01]"):
        tilewright.matmul(*on_first, out=out)
    assert out.isnan().all()
