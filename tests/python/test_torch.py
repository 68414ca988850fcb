"""PyTorch tensors and operators, if it is installed: on the host with the emulator, and on a GPU."""

from __future__ import annotations

import inspect
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tilewright  # noqa: E402
import tilewright.torch  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
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


def test_gradients_of_a_linear_operator_without_bias(device: str) -> None:
    x = torch.randn(4, 6, device=device, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(8, 6, device=device, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(torch.ops.tilewright.linear, (x, weight))
    assert torch.autograd.gradcheck(lambda x, weight: torch.ops.tilewright.linear(x, weight, None), (x, weight))


def test_gradients_of_a_shared_operand(device: str) -> None:
    a = torch.randn(3, 4, 6, device=device, dtype=torch.float64, requires_grad=True)
    b = torch.randn(6, 8, device=device, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(torch.ops.tilewright.matmul, (a, b))


STACKED = ["rows", "columns", "k"]


def grouped(stacked: str, device: str, dtype: Any = torch.float64, groups: int = 4, stack: int = 24) -> tuple[Any, Any]:
    """Operands whose groups are stacked along rows of a, columns of b, or k."""
    shapes = {
        "rows": ((stack, 6), (groups, 6, 8)),
        "columns": ((groups, 8, 6), (6, stack)),
        "k": ((6, stack), (stack, 8)),
    }
    return tuple(integers(*shape, device=device, dtype=dtype).requires_grad_() for shape in shapes[stacked])


def ends_of(sizes: list[int], device: str) -> Any:
    return torch.tensor(sizes, device=device).cumsum(0).to(torch.int32)


def looped(a: Any, b: Any, sizes: list[int]) -> Any:
    """The groups' products, by torch.mm of the slices; 0 where there is no group."""
    out = a.new_zeros([*([len(sizes)] if a.dim() == b.dim() == 2 else []), a.shape[-2], b.shape[-1]])
    begin = 0
    for group, size in enumerate(sizes):
        part = slice(begin, begin + size)
        if b.dim() == 3:
            out[part] = a[part] @ b[group]
        elif a.dim() == 3:
            out[:, part] = a[group] @ b[:, part]
        else:
            out[group] = a[:, part] @ b[part]
        begin += size
    return out


def is_written(product: Any, sizes: list[int], a: Any, b: Any) -> Any:
    """The part of a product that belongs to groups."""
    return product[: sum(sizes)] if b.dim() == 3 else product[:, : sum(sizes)] if a.dim() == 3 else product


@pytest.mark.parametrize("sizes", [[5, 0, 12, 1], [6, 6, 6, 6], [0, 0, 0, 24], [0, 0, 0, 0]])
@pytest.mark.parametrize("stacked", STACKED)
def test_grouped_products_and_their_gradients(device: str, stacked: str, sizes: list[int]) -> None:
    a, b = grouped(stacked, device)
    out = tilewright.torch.grouped_mm(a, b, ends_of(sizes, device))
    expected = looped(a, b, sizes)
    assert torch.equal(is_written(out, sizes, a, b), is_written(expected, sizes, a, b))
    weight = integers(*out.shape, device=device, dtype=out.dtype)
    expected_gradients = torch.autograd.grad((expected * weight).sum(), [a, b])
    torch.use_deterministic_algorithms(True)  # new memory is filled with NaN
    try:
        gradients = torch.autograd.grad(out, [a, b], weight.clone())
    finally:
        torch.use_deterministic_algorithms(False)
    for got, wanted in zip(gradients, expected_gradients):
        assert torch.equal(got, wanted)  # 0 in what belongs to no group, too


@pytest.mark.parametrize("stacked", STACKED)
def test_the_grouped_operator_passes_torchs_own_checks(device: str, stacked: str) -> None:
    a, b = grouped(stacked, device)
    offs = ends_of([5, 0, 13, 6], device)
    torch.library.opcheck(torch.ops.tilewright.grouped_mm.default, (a, b, offs))
    half = a.detach().half(), b.detach().half()
    torch.library.opcheck(torch.ops.tilewright.grouped_mm.default, (*half, offs, torch.float32, False, [9, 1, 8, 6]))
    assert torch.autograd.gradcheck(tilewright.torch.grouped_mm, (a, b, offs))
    assert torch.autograd.gradgradcheck(tilewright.torch.grouped_mm, (a, b, offs))


def test_grouped_mm_takes_the_arguments_of_torch(device: str) -> None:
    a, b = integers(24, 16, device=device), integers(4, 32, 16, device=device).mT
    offs = ends_of([5, 0, 13, 6], device)
    assert tilewright.torch.grouped_mm(a, b, offs, None, torch.float32).dtype == torch.float32
    batch = tilewright.torch.grouped_mm(a.view(4, 6, 16), b)
    assert torch.equal(batch, torch.bmm(a.view(4, 6, 16), b))
    strided = torch.stack([offs, offs], 1)[:, 0]
    assert torch.equal(tilewright.torch.grouped_mm(a, b, strided), tilewright.torch.grouped_mm(a, b, offs))
    with pytest.raises(tilewright.InvalidArgument, match="bias must be None"):
        tilewright.torch.grouped_mm(a, b, offs, a)
    with pytest.raises(tilewright.InvalidArgument, match=r"offs must be a vector of int32, got torch.int64"):
        tilewright.torch.grouped_mm(a, b, offs.long())
    with pytest.raises(tilewright.InvalidArgument, match="offs may be None for matrices of rank 3 only"):
        tilewright.torch.grouped_mm(a, b)
    with pytest.raises(tilewright.InvalidArgument, match="offs are for a and b of ranks 2 and 3"):
        tilewright.torch.grouped_mm(b, b, offs)


def test_grouped_mm_has_the_parameters_of_torchs() -> None:
    if not hasattr(torch.ops.aten, "_grouped_mm"):
        pytest.skip("this PyTorch has no _grouped_mm")
    theirs = [each.name for each in torch.ops.aten._grouped_mm.default._schema.arguments]
    ours = inspect.signature(tilewright.torch.grouped_mm).parameters.values()
    positional = [each.name for each in ours if each.kind is not inspect.Parameter.KEYWORD_ONLY]
    assert theirs == ["self", *positional[1:]]


@pytest.mark.parametrize("expected_sizes", [6, [20, 0, 3, 1]])
def test_expected_sizes_reach_the_ranking_in_gradients_too(
    device: str, monkeypatch: pytest.MonkeyPatch, expected_sizes: Any
) -> None:
    given: list[Any] = []
    described = tilewright.GroupedGemmArguments

    def recorded(*operands: Any, **options: Any) -> Any:
        given.append(options["expected_sizes"])
        return described(*operands, **options)

    monkeypatch.setattr(tilewright, "GroupedGemmArguments", recorded)
    monkeypatch.setattr(tilewright.grouped_product, "GroupedGemmArguments", recorded)
    a, b = grouped(STACKED[0], device)
    sizes = [5, 0, 13, 6]
    out = tilewright.torch.grouped_mm(a, b, ends_of(sizes, device), expected_sizes=expected_sizes)
    assert torch.equal(out, looped(a, b, sizes))
    out.sum().backward()
    assert given == [expected_sizes] * 3
    x, y = padded("masked_m", device)
    counts = torch.tensor([5, 0, 3, 1], dtype=torch.int32, device=device)
    tilewright.torch.masked_mm(x, y, counts, expected_sizes=expected_sizes).sum().backward()
    assert given == [expected_sizes] * 6
    with pytest.raises(tilewright.InvalidArgument, match="one for each of 4 groups, got 2"):
        tilewright.torch.grouped_mm(a, b, ends_of(sizes, device), expected_sizes=[1, 2])
    with pytest.raises(tilewright.InvalidArgument, match="expected_sizes are for groups that end at offs"):
        tilewright.torch.grouped_mm(x, y, expected_sizes=3)


def padded(mode: str, device: str, dtype: Any = torch.float64) -> tuple[Any, Any]:
    """Operands of four groups, of which each may use 7 rows, 5 columns or 6 elements of k."""
    return tuple(integers(4, *shape, device=device, dtype=dtype).requires_grad_() for shape in ((7, 6), (6, 5)))


def looped_padded(mode: str, a: Any, b: Any, counts: list[int]) -> Any:
    """The groups' products, by torch.mm of the slices; 0 where there is no group."""
    products = []
    for x, y, count in zip(a, b, counts):
        if mode == "masked_m":
            products.append(torch.nn.functional.pad(x[:count] @ y, (0, 0, 0, 7 - count)))
        elif mode == "masked_n":
            products.append(torch.nn.functional.pad(x @ y[:, :count], (0, 5 - count)))
        else:
            products.append(x[:, :count] @ y[:count])
    return torch.stack(products)


@pytest.mark.parametrize("counts", [[5, 0, 3, 1], [5, 5, 5, 5], [0, 0, 0, 0]])
@pytest.mark.parametrize("mode", ["masked_m", "masked_n", "masked_k"])
def test_padded_products_and_their_gradients(device: str, mode: str, counts: list[int]) -> None:
    a, b = padded(mode, device)
    given = torch.tensor(counts, dtype=torch.int32, device=device)
    out = torch.ops.tilewright.masked_mm(a, b, given, mode)
    expected = looped_padded(mode, a, b, counts)
    for group, count in enumerate(counts):
        rows = slice(count if mode == "masked_m" else None)
        columns = slice(count if mode == "masked_n" else None)
        assert torch.equal(out[group, rows, columns], expected[group, rows, columns])
    weight = integers(*out.shape, device=device, dtype=out.dtype)
    expected_gradients = torch.autograd.grad((expected * weight).sum(), [a, b])
    torch.use_deterministic_algorithms(True)  # new memory is filled with NaN
    try:
        gradients = torch.autograd.grad(out, [a, b], weight.clone())
    finally:
        torch.use_deterministic_algorithms(False)
    for got, wanted in zip(gradients, expected_gradients):
        assert torch.equal(got, wanted)  # 0 in padding, too
    if mode == "masked_m":
        assert torch.equal(tilewright.torch.masked_mm(a, b, given)[0, : counts[0]], out[0, : counts[0]])


def test_padding_is_part_of_no_gradient(device: str) -> None:
    a, b = (each.detach() for each in padded("masked_m", device, torch.float32))
    a[:, 4:] = float("nan")
    a, b = a.requires_grad_(), b.requires_grad_()
    counts = torch.tensor([4, 0, 2, 1], dtype=torch.int32, device=device)
    a.data[1:, 2:] = float("nan")
    out = tilewright.torch.masked_mm(a, b, counts)
    gradient = torch.full_like(out, float("nan"))
    for group, count in enumerate(counts.tolist()):
        gradient[group, :count] = 1
    of_a, of_b = torch.autograd.grad(out, [a, b], gradient)
    assert of_a.isfinite().all() and of_b.isfinite().all() and (of_a[:, 4:] == 0).all() and (of_b[1] == 0).all()


@pytest.mark.parametrize("mode", ["masked_m", "masked_n", "masked_k"])
def test_the_padded_operator_passes_torchs_own_checks(device: str, mode: str) -> None:
    a, b = padded(mode, device)
    most = {"masked_m": 7, "masked_n": 5, "masked_k": 6}[mode]  # every element of the result belongs to a group
    counts = torch.tensor([most] * 4, dtype=torch.int32, device=device)
    operator = torch.ops.tilewright.masked_mm
    torch.library.opcheck(operator.default, (a, b, counts, mode))
    torch.library.opcheck(operator.default, (a.detach().half(), b.detach().half(), counts, mode, torch.float32))
    assert torch.autograd.gradcheck(lambda a, b: operator(a, b, counts, mode), (a, b))
    assert torch.autograd.gradgradcheck(lambda a, b: operator(a, b, counts, mode), (a, b))
    with pytest.raises(tilewright.InvalidArgument, match="counts must be a vector of int32, got torch.int64"):
        tilewright.torch.masked_mm(a, b, counts.long())
    with pytest.raises(tilewright.InvalidArgument, match="counts are for a and b of rank 3"):
        tilewright.torch.masked_mm(a[0], b, counts)


def test_the_guides_program_runs() -> None:
    guide = (ROOT / "docs/python.md").read_text().partition("## Operators of PyTorch")[2]
    program = re.search(r"^```python\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    assert program is not None and "grouped_mm" in program[1]
    exec(program[1], {})


@needs_gpu
@pytest.mark.parametrize("stacked", STACKED)
def test_grouped_mm_agrees_with_torchs(stacked: str) -> None:
    if not hasattr(torch, "_grouped_mm") or torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("torch._grouped_mm needs compute capability 9.0")
    sizes = [40, 0, 8, 16]
    groups, stack = len(sizes), sum(sizes)
    shapes = {
        "rows": ((stack, 64), (groups, 128, 64)),
        "columns": ((groups, 128, 64), (stack, 64)),
        "k": ((stack, 64), (stack, 128)),
    }
    a, b = (integers(*shape, device="cuda", dtype=torch.bfloat16) for shape in shapes[stacked])
    a, b = (a.mT, b) if stacked == "k" else (a, b.mT)
    offs = ends_of(sizes, "cuda")
    assert torch.equal(tilewright.torch.grouped_mm(a, b, offs), torch._grouped_mm(a, b, offs=offs))


def experts(x: Any, up: Any, down: Any, offs: Any) -> Any:
    """Two layers of experts."""
    hidden = tilewright.torch.grouped_mm(x, up, offs).relu()
    return tilewright.torch.grouped_mm(hidden, down, offs)


@pytest.mark.parametrize("dynamic", [False, True])
def test_experts_compile_as_one_graph(device: str, dynamic: bool) -> None:
    if device == "cpu":
        backend = "aot_eager"  # needs no compiler of C++
    else:
        backend = "inductor"
    compiled = torch.compile(experts, fullgraph=True, dynamic=dynamic, backend=backend)
    for stack in (24, 40):
        sizes = [5, 0, stack - 11, 6]
        operands = [
            integers(*shape, device=device, dtype=torch.float32).requires_grad_()
            for shape in ((stack, 16), (4, 16, 32), (4, 32, 8))
        ]
        offs = ends_of(sizes, device)
        got, expected = compiled(*operands, offs), experts(*operands, offs)
        assert torch.equal(got, expected)
        weight = integers(*got.shape, device=device, dtype=got.dtype)
        gradients = (torch.autograd.grad(each, operands, weight) for each in (got, expected))
        for one, other in zip(*gradients):
            assert torch.equal(one, other)


@needs_gpu
def test_sizes_change_between_replays_of_a_graph() -> None:
    stack, groups = 512, 8
    x, up, down = (
        integers(*shape, device="cuda", dtype=torch.float16)
        for shape in ((stack, 64), (groups, 64, 128), (groups, 128, 64))
    )
    up.clamp_(-1, 1), down.clamp_(-1, 1)
    offs = ends_of([64] * 8, "cuda")
    experts(x, up, down, offs)  # compiled before the capture
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = experts(x, up, down, offs)
    for sizes in ([64] * 8, [0, 500, 0, 1, 2, 3, 0, 6], [0] * 8, [1, 2, 3, 4, 5, 6, 7, 8]):
        offs.copy_(ends_of(sizes, "cuda"))
        graph.replay()
        torch.cuda.synchronize()
        hidden = looped(x.double(), up.double(), sizes).relu()
        expected = looped(hidden, down.double(), sizes).half()
        assert torch.equal(out[: sum(sizes)], expected[: sum(sizes)])


@needs_gpu
def test_counts_change_between_replays_of_a_graph() -> None:
    a, b = integers(8, 64, 48, device="cuda"), integers(8, 48, 32, device="cuda")
    counts = torch.full((8,), 64, dtype=torch.int32, device="cuda")
    weight = integers(8, 64, 32, device="cuda")
    product = torch.ops.tilewright.masked_mm
    calls = [lambda: product(a, b, counts), lambda: product(a.mT, weight, counts, "masked_k")]
    for call in calls:
        call()  # compiled before the capture
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out, gradient = (call() for call in calls)
    for sizes in ([64] * 8, [0, 64, 0, 1, 2, 3, 0, 33], [0] * 8):
        counts.copy_(torch.tensor(sizes))
        graph.replay()
        torch.cuda.synchronize()
        for group, size in enumerate(sizes):
            x, y, w = a[group, :size].double(), b[group].double(), weight[group, :size].double()
            assert torch.equal(out[group, :size], (x @ y).half())
            assert torch.equal(gradient[group], (x.T @ w).half())


@needs_gpu
def test_a_prepared_grouped_call_is_captured() -> None:
    sizes = [100, 0, 1, 27]
    a, b = integers(128, 64, device="cuda"), integers(4, 64, 96, device="cuda")
    out = torch.full((128, 96), float("nan"), device="cuda", dtype=torch.float16)
    offs = ends_of(sizes, "cuda")
    prepared = tilewright.prepare(tilewright.GroupedGemmArguments(a, b, out, offsets=offs))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        prepared.run()
    for sizes in ([100, 0, 1, 27], [0, 128, 0, 0], [32, 32, 32, 32], [5, 6, 7, 0], [0, 0, 0, 0]):
        offs.copy_(ends_of(sizes, "cuda"))
        out.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        expected = looped(a.double(), b.double(), sizes).half()
        assert torch.equal(out[: sum(sizes)], expected[: sum(sizes)])
        assert out[sum(sizes) :].isnan().all()


@needs_gpu
def test_lists_are_captured_after_they_have_run() -> None:
    """Runs leave events that say when the addresses may be released; a capture must not query them."""
    shapes = [(40, 32, 24), (8, 64, 16), (72, 16, 40)]
    a = [integers(m, k, device="cuda") for m, _, k in shapes]
    b = [integers(k, n, device="cuda") for _, n, k in shapes]
    out = [torch.empty(m, n, device="cuda", dtype=torch.float16) for m, n, _ in shapes]
    prepared = tilewright.prepare(tilewright.GroupedGemmArguments(a, b, out))
    for _ in range(3):
        prepared.run()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        prepared.run()
    for each in out:
        each.fill_(float("nan"))
    graph.replay()
    torch.cuda.synchronize()
    for x, y, z in zip(a, b, out):
        assert torch.equal(z, (x.double() @ y.double()).half())


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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda o, t: t.conv2d(o(1, 3, 8, 8), o(4, 3, 3, 3), o(3)), r"bias must have the shape \(4,\), .* got \(3,\)"),
        (lambda o, t: torch.ops.tilewright.linear(o(2, 5), o(7, 5), o(8)), r"bias must have the shape \(7,\), .* \(8,\)"),
        (lambda o, t: t.grouped_mm(o(8, 5), o(3, 5, 7), ends(4, 8)), "^mat2 has a batch of 3, but there are 2 groups"),
        (lambda o, t: t.masked_mm(o(2, 4, 5), o(2, 5, 7), ends(4)), "^input has a batch of 2, but there are 1 groups"),
        (lambda o, t: t.weight_linear(o(2, 5), o(5, 7)), "weights must be PackedWeights, .* got a Tensor"),
        (lambda o, t: t.grouped_m, "has no attribute 'grouped_m'; did you mean 'grouped_mm'"),
    ],
)
def test_mistakes_are_named_in_the_words_of_torch(call: Any, message: str) -> None:
    with pytest.raises((tilewright.InvalidArgument, TypeError, AttributeError), match=message):
        call(torch.ones, tilewright.torch)


def ends(*numbers: int) -> Any:
    return torch.tensor(numbers, dtype=torch.int32)
