"""JAX arrays, which cannot be written: on the host with the emulator, and on a GPU if JAX has one."""

from __future__ import annotations

import functools
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # otherwise JAX allocates three quarters of the GPU's memory
jax = pytest.importorskip("jax")

import tilewright  # noqa: E402
import tilewright.jax  # noqa: E402
from tilewright import GemmArguments, InvalidArgument, matmul  # noqa: E402


def has_gpu() -> bool:
    try:
        return bool(jax.devices("gpu"))
    except RuntimeError:
        return False


@pytest.fixture(params=["cpu", pytest.param("gpu", marks=pytest.mark.skipif(not has_gpu(), reason="no GPU"))])
def device(request: pytest.FixtureRequest) -> Iterator[Any]:
    yield jax.devices(request.param)[0]


def integers(device: Any, *shape: int, dtype: Any = "float32") -> Any:
    values = np.random.default_rng(sum(shape)).integers(-3, 4, shape)
    return jax.device_put(jax.numpy.asarray(values, dtype), device)


def host(array: Any) -> Any:
    return np.asarray(array).astype(np.float64)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8"])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_products_are_jax_arrays(device: Any, dtype: str, batch: tuple[int, ...]) -> None:
    a, b = integers(device, *batch, 40, 24, dtype=dtype), integers(device, *batch, 24, 56, dtype=dtype)
    out = matmul(a, b)
    assert isinstance(out, jax.Array) and out.devices() == {device}
    assert out.dtype == ("int32" if dtype == "int8" else dtype)
    np.testing.assert_array_equal(host(out), host(a) @ host(b))


def test_grouped_products_are_jax_arrays(device: Any) -> None:
    rows, experts = integers(device, 40, 24), integers(device, 3, 24, 56)
    offsets = jax.device_put(jax.numpy.asarray([16, 16, 40], "int32"), device)
    out = tilewright.grouped_matmul(rows, experts, offsets=offsets, epilogue="D = relu(acc)")
    assert isinstance(out, jax.Array) and out.devices() == {device}
    expected = np.concatenate([host(rows)[:16] @ host(experts)[0], host(rows)[16:] @ host(experts)[2]])
    np.testing.assert_array_equal(host(out), np.maximum(expected, 0))
    gradient = tilewright.grouped_matmul(rows.T, out, offsets=offsets, out_dtype="float32")
    np.testing.assert_array_equal(host(gradient)[2], host(rows)[16:].T @ host(out)[16:])


GROUPS = {  # shapes of a and b, and the sizes of the groups
    "ragged_m": ((40, 24), (3, 24, 16), "offsets"),
    "ragged_n": ((3, 24, 16), (16, 40), "offsets"),
    "ragged_k": ((24, 40), (40, 16), "offsets"),
    "masked_m": ((3, 20, 24), (3, 24, 16), "counts"),
}


def loop_of_groups(mode: str, a: Any, b: Any, sizes: list[int]) -> Any:
    """The grouped product in JAX. Elements that belong to no group are 0."""
    parts, begin = [], 0
    for group, size in enumerate(sizes):
        along = slice(begin, begin + size)
        begin += size
        if mode == "ragged_m":
            parts.append(a[along] @ b[group])
        elif mode == "ragged_n":
            parts.append(a[group] @ b[:, along])
        elif mode == "ragged_k":
            parts.append(a[:, along] @ b[along])
        else:
            parts.append(jax.numpy.pad(a[group, :size] @ b[group], ((0, a.shape[1] - size), (0, 0))))
    if mode == "ragged_m":
        return jax.numpy.pad(jax.numpy.concatenate(parts), ((0, a.shape[0] - begin), (0, 0)))
    if mode == "ragged_n":
        return jax.numpy.pad(jax.numpy.concatenate(parts, 1), ((0, 0), (0, b.shape[1] - begin)))
    return jax.numpy.stack(parts)


@pytest.mark.parametrize("mode", GROUPS)
def test_grouped_products_and_their_gradients_are_compiled(device: Any, mode: str) -> None:
    of_a, of_b, name = GROUPS[mode]
    sizes = [7, 0, 18]
    a, b = integers(device, *of_a), integers(device, *of_b)
    ends = jax.device_put(jax.numpy.asarray(np.cumsum(sizes) if name == "offsets" else sizes, "int32"), device)

    def ours(a: Any, b: Any, ends: Any) -> Any:
        return tilewright.jax.grouped_matmul(a, b, **{name: ends})

    compiled = jax.jit(ours)
    expected = loop_of_groups(mode, a, b, sizes)
    np.testing.assert_array_equal(host(compiled(a, b, ends)), host(expected))
    others = [0, 5, 3]
    changed = jax.device_put(jax.numpy.asarray(np.cumsum(others) if name == "offsets" else others, "int32"), device)
    np.testing.assert_array_equal(host(compiled(a, b, changed)), host(loop_of_groups(mode, a, b, others)))

    def twice(product: Any) -> Any:
        def inner(a: Any, b: Any) -> Any:
            return (product(a, b) ** 2).sum() / 2

        def outer(a: Any, b: Any) -> Any:
            of_a, of_b = jax.grad(inner, (0, 1))(a, b)
            return (of_a * a).sum() + (of_b * b).sum()

        return jax.jit(jax.grad(inner, (0, 1)))(a, b), jax.jit(jax.grad(outer, (0, 1)))(a, b)

    got = jax.tree.leaves(twice(lambda a, b: ours(a, b, ends)))
    for x, y in zip(got, jax.tree.leaves(twice(lambda a, b: loop_of_groups(mode, a, b, sizes))), strict=True):
        np.testing.assert_array_equal(host(x), host(y))


def test_mistakes_in_grouped_products_are_found_while_they_are_traced() -> None:
    rows, experts, ends = jax.numpy.ones((8, 4)), jax.numpy.ones((2, 4, 6)), jax.numpy.asarray([3, 8], "int32")
    product = tilewright.jax.grouped_matmul
    for given, message in (
        ({}, "one of offsets .* and counts .* must be given"),
        ({"counts": ends}, r"a and b must have ranks 3 and 3, got shapes \(8, 4\) and \(2, 4, 6\)"),
        ({"offsets": ends[:1]}, "b has a batch of 2, but there are 1 groups"),
        ({"offsets": ends.astype("float32")}, "offsets must be an array of int32"),
        ({"offsets": ends, "expected_sizes": [1, 2, 3]}, "one for each of 2 groups, got 3"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            jax.jit(lambda rows, experts, given=given: product(rows, experts, **given))(rows, experts)


def test_results_are_used_by_jax(device: Any) -> None:
    a, b = integers(device, 512, 256), integers(device, 256, 384)
    value, expected = a, host(a)
    for _ in range(20):  # each step waits for the previous one on the streams of the other library
        value = jax.numpy.clip(matmul(value, b) @ b.T, -3, 3)
        expected = np.clip(expected @ host(b) @ host(b).T, -3, 3)
    np.testing.assert_array_equal(host(value), expected)


def test_dropped_arrays_are_kept_until_they_are_read(device: Any) -> None:
    size = 8192 if device.platform == "gpu" else 64  # takes more than a millisecond on a GPU, so that JAX returns earlier
    a, b = integers(device, size, size, dtype="float16"), integers(device, size, size, dtype="float16")
    twice = a * 2
    expected = matmul(twice, b, out_dtype="float32").block_until_ready()
    del twice
    for _ in range(5):
        out = matmul(a * 2, b, out_dtype="float32")
        others = [a * 3 for _ in range(4)]  # JAX reuses memory that nobody refers to
        assert jax.numpy.array_equal(out, expected)
        del others


def test_other_streams_wait_for_jax_arrays(device: Any) -> None:
    torch = pytest.importorskip("torch")
    if device.platform != "gpu":
        pytest.skip("streams are of a GPU")
    a, b = integers(device, 1024, 1024), integers(device, 1024, 1024)
    stream = torch.cuda.Stream()

    def late() -> Any:
        value = a
        for _ in range(30):
            value = jax.numpy.clip(value @ a, -3, 3)
        return value

    expected = host(late()) @ host(b)
    for _ in range(5):
        out = torch.empty(1024, 1024, device="cuda")
        args = GemmArguments(late(), b, out)
        tilewright.prepare(args).run(stream=stream)
        stream.synchronize()
        np.testing.assert_array_equal(out.cpu().numpy(), expected)


def test_epilogues_read_jax_arrays(device: Any) -> None:
    def epilogue(accum: Any, bias: Any) -> Any:
        return jax.nn.relu(accum + bias)

    a, b, bias = integers(device, 40, 24), integers(device, 24, 56), integers(device, 56)
    np.testing.assert_array_equal(
        host(matmul(a, b, epilogue="D = relu(acc + row(bias))", bias=bias)),
        np.maximum(host(a) @ host(b) + host(bias), 0),
    )
    np.testing.assert_array_equal(
        host(matmul(a, b, epilogue=epilogue, bias=bias)), np.maximum(host(a) @ host(b) + host(bias), 0)
    )


def test_jax_arrays_are_refused_as_outputs(device: Any) -> None:
    a, b = integers(device, 8, 8), integers(device, 8, 8)
    with pytest.raises(InvalidArgument, match="out is read-only"):
        GemmArguments(a, b, integers(device, 8, 8))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "uint8", "float8_e4m3fn"])
@pytest.mark.parametrize("batch_a, batch_b", [((), ()), ((3,), (3,)), ((3,), ()), ((), (3,)), ((2, 3), (3,))])
def test_products_are_compiled_by_jit(
    device: Any, dtype: str, batch_a: tuple[int, ...], batch_b: tuple[int, ...]
) -> None:
    a, b = (abs(integers(device, *batch_a, 40, 24)), integers(device, *batch_b, 24, 56))
    a, b = a.astype(dtype), abs(b).astype(dtype)
    out = jax.jit(matmul)(a, b)
    assert out.dtype == {"int8": "int32", "uint8": "int32", "float8_e4m3fn": "bfloat16"}.get(dtype, dtype)
    np.testing.assert_array_equal(host(out), (host(a) @ host(b)).astype(out.dtype).astype(np.float64))


@jax.jit
def two_layers(x: Any, w1: Any, w2: Any, bias: Any) -> Any:
    hidden = matmul(x, w1, epilogue="D = relu(acc + row(bias))", bias=bias)
    return matmul(hidden.T, jax.numpy.transpose(w2), out_dtype="float32") + 1


def test_products_are_parts_of_programs(device: Any) -> None:
    x, w1, w2, bias = (integers(device, *shape) for shape in ((24, 40), (40, 56), (16, 24), (56,)))
    hidden = np.maximum(host(x) @ host(w1) + host(bias), 0)
    np.testing.assert_array_equal(host(two_layers(x, w1, w2, bias)), hidden.T @ host(w2).T + 1)
    with jax.disable_jit():
        np.testing.assert_array_equal(host(two_layers(x, w1, w2, bias)), hidden.T @ host(w2).T + 1)
    vectors = jax.jit(matmul)(x[0], w1)
    np.testing.assert_array_equal(host(vectors), host(x)[0] @ host(w1))


EPILOGUES: dict[str, tuple[Any, Any]] = {  # the epilogue, and the same in JAX
    "text": ("D = relu(acc + row(bias)) * 2", lambda acc, bias, mask, c: jax.nn.relu(acc + bias) * 2),
    "name": ("linear_combination_relu", lambda acc, bias, mask, c: jax.nn.relu(2 * acc - c)),
    "function": (lambda acc, bias: jax.nn.gelu(acc + bias), lambda acc, bias, mask, c: jax.nn.gelu(acc + bias)),
    "mask": (
        lambda acc, mask: jax.numpy.where(mask, acc, acc * 0.5),
        lambda acc, bias, mask, c: jax.numpy.where(mask, acc, acc * 0.5),
    ),
    "activation": (jax.nn.silu, lambda acc, bias, mask, c: jax.nn.silu(acc)),
    "none": (None, lambda acc, bias, mask, c: 2 * acc - c),
    "gated": ("D = swiglu(acc)", lambda acc, bias, mask, c: jax.nn.silu(acc[..., ::2]) * acc[..., 1::2]),
    "statements": (
        "let x = acc * column(scale); D = where(x > 0, x, x * 0.25) + column_index",
        lambda acc, bias, mask, c: (
            lambda x: jax.numpy.where(x > 0, x, x * 0.25) + jax.numpy.arange(56, dtype="float32")
        )(acc * jax.numpy.arange(40.0)[:, None]),
    ),
}


@pytest.mark.parametrize("name", EPILOGUES)
def test_epilogues_and_their_gradients_are_compiled(device: Any, name: str) -> None:
    epilogue, same = EPILOGUES[name]
    a, b, bias, c = (integers(device, *shape) for shape in ((40, 24), (24, 56), (56,), (40, 56)))
    mask = integers(device, 40, 56) > 0
    takes = {
        "text": {"bias": bias},
        "function": {"bias": bias},
        "mask": {"mask": mask},
        "statements": {"scale": jax.numpy.arange(40.0)},
    }.get(name, {})
    scaled: dict[str, Any] = {"c": c, "alpha": 2.0, "beta": -1.0} if name in ("name", "none") else {}

    def ours(a: Any, b: Any, takes: Any, scaled_c: Any) -> Any:
        given = {**scaled, "c": scaled_c} if scaled else {}
        return matmul(a, b, epilogue=epilogue, **given, **takes)

    def theirs(a: Any, b: Any, takes: Any, scaled_c: Any) -> Any:
        acc = jax.numpy.matmul(a, b, precision="highest")
        return same(acc, takes.get("bias", bias), takes.get("mask", mask), scaled_c)

    got, expected = jax.jit(ours)(a, b, takes, c), theirs(a, b, takes, c)
    np.testing.assert_allclose(host(got), host(expected), rtol=2e-6, atol=2e-5)
    if name in ("text", "name", "mask", "none", "statements"):  # exact
        np.testing.assert_array_equal(host(got), host(expected))
    weights = integers(device, *got.shape)

    def loss(function: Any) -> Any:
        return lambda a, b, bias, c: (
            function(a, b, {**takes, **({"bias": bias} if "bias" in takes else {})}, c) * weights
        ).sum()

    ours_by, theirs_by = (jax.jit(jax.grad(loss(each), (0, 1, 2, 3)))(a, b, bias, c) for each in (ours, theirs))
    for x, y in zip(ours_by, theirs_by, strict=True):
        np.testing.assert_allclose(host(x), host(y), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("batch_a, batch_b", [((), ()), ((3,), (3,)), ((3,), ()), ((), (3,))])
def test_gradients_can_be_differentiated_again(
    device: Any, batch_a: tuple[int, ...], batch_b: tuple[int, ...]
) -> None:
    a, b = integers(device, *batch_a, 8, 12), integers(device, *batch_b, 12, 4)

    def twice(product: Any) -> Any:
        def inner(a: Any, b: Any) -> Any:
            return (product(a, b) ** 2).sum()

        def outer(a: Any, b: Any) -> Any:
            of_a, of_b = jax.grad(inner, (0, 1))(a, b)
            return (of_a * a).sum() + (of_b**2).sum()

        return jax.jit(jax.grad(outer, (0, 1)))(a, b)

    exact = functools.partial(jax.numpy.matmul, precision="highest")  # a GPU would multiply f32 in tf32
    for ours, theirs in zip(twice(matmul), twice(exact), strict=True):
        np.testing.assert_array_equal(host(ours), host(theirs))


def test_vmap_makes_a_batch(device: Any) -> None:
    a, b, bias = integers(device, 3, 2, 16, 24), integers(device, 3, 24, 8), integers(device, 3, 8)
    one = jax.vmap(matmul)(a[:, 0], b)
    np.testing.assert_array_equal(host(one), host(a)[:, 0] @ host(b))
    several = jax.jit(jax.vmap(jax.vmap(matmul, (0, None))))(a, b)
    np.testing.assert_array_equal(host(several), host(a) @ host(b)[:, None])
    shared = jax.vmap(matmul, (None, 0))(a[0], b)
    np.testing.assert_array_equal(host(shared), host(a)[0] @ host(b)[:, None])
    biased = jax.vmap(lambda a, b, bias: matmul(a, b, epilogue="D = acc + row(bias)", bias=bias))(a[:, 0], b, bias)
    np.testing.assert_array_equal(host(biased), host(a)[:, 0] @ host(b) + host(bias)[:, None])
    gradients = jax.vmap(jax.grad(lambda a, b: matmul(a, b).sum()), (0, 0))(a[:, 0], b)
    np.testing.assert_array_equal(host(gradients), np.broadcast_to(host(b).sum(2)[:, None], (3, 16, 24)))


def test_linear(device: Any) -> None:
    x, weight, bias = integers(device, 2, 5, 24), integers(device, 16, 24), integers(device, 16)
    linear = tilewright.jax.linear
    expected = host(x) @ host(weight).T + host(bias)
    np.testing.assert_array_equal(host(linear(x, weight, bias)), expected)
    np.testing.assert_array_equal(host(jax.jit(linear)(x, weight)), host(x) @ host(weight).T)
    np.testing.assert_array_equal(host(jax.jit(linear)(x[0, 0], weight, bias)), expected[0, 0])
    found = jax.grad(lambda *given: (linear(*given) ** 2).sum() / 2, (0, 1, 2))(x, weight, bias)
    np.testing.assert_array_equal(host(found[0]), expected @ host(weight))
    np.testing.assert_array_equal(host(found[1]), expected.reshape(10, 16).T @ host(x).reshape(10, 24))
    np.testing.assert_array_equal(host(found[2]), expected.sum((0, 1)))
    with pytest.raises(InvalidArgument, match=r"x must be \(..., k\) and weight \(n, k\), got \(2, 5, 24\) and \(24, 16\)"):
        linear(x, weight.T)
    with pytest.raises(InvalidArgument, match=r"bias must be \(16,\), as weight has 16 rows, got \(24,\)"):
        jax.jit(linear)(x, weight, x[0, 0])


def _two_results(acc: Any) -> Any:
    D = acc
    rest = acc + 1
    return D, rest


WRONG: dict[str, tuple[Any, str]] = {
    "k": (lambda a, b: matmul(a, b.T), r"columns of a and rows of b differ: \(4,8\) and \(6,8\); pass b.T if b is stored"),
    "types": (lambda a, b: matmul(a, b.astype("int8")), "f32.*s8"),
    "complex": (lambda a, b: matmul(a.astype("complex64"), b), "a: unknown element type 'complex64'"),
    "out": (lambda a, b: matmul(a, b, out=a), r"matmul\(out=\) is not possible in a program of JAX"),
    "stream": (lambda a, b: matmul(a, b, stream=3), r"matmul\(stream=\) is not possible in a program of JAX"),
    "list": (lambda a, b: matmul([a, a], b), "a must be an array of JAX, got a list"),
    "object": (
        lambda a, b: matmul(a, b, epilogue=tilewright.Epilogue("D = relu(acc)", "f32")),
        "an Epilogue object cannot be used in a program of JAX: pass its text",
    ),
    "output of a text": (
        lambda a, b: matmul(a, b, epilogue="D = acc; z = acc + 1", z=jax.numpy.zeros((4, 6))),
        "the epilogue writes z: in a program of JAX, whose arrays cannot be written, it has no output but D",
    ),
    "reduction": (
        lambda a, b: matmul(a, b, epilogue="D = acc; row(total) = sum(acc)", total=np.zeros(6, np.float32)),
        "the epilogue writes total: in a program of JAX",
    ),
    "output of a function": (
        lambda a, b: matmul(a, b, epilogue=_two_results, rest=jax.numpy.zeros((4, 6))),
        "the epilogue writes rest: in a program of JAX",
    ),
    "bias": (lambda a, b: matmul(a, b, epilogue="D = acc + row(bias)", bias=b[:, 0]), "bias"),
    "unknown": (lambda a, b: matmul(a, b, epilogue="D = acc + row(bias)"), "bias"),
    "math": (lambda a, b: matmul(a, b, math="quick"), "quick"),
    "gated": (lambda a, b: matmul(a, b[:, :5], epilogue="D = swiglu(acc)"), "5 columns|n = 5|even"),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_in_programs_are_found_while_they_are_traced(name: str) -> None:
    program, message = WRONG[name]
    with pytest.raises(InvalidArgument, match=message):
        jax.jit(program)(jax.numpy.ones((4, 8)), jax.numpy.ones((8, 6)))


def test_alpha_must_be_known_while_a_program_is_traced() -> None:
    with pytest.raises(TypeError, match="alpha must be a number"):
        jax.jit(lambda a, alpha: matmul(a, a, alpha=alpha))(jax.numpy.ones((8, 8)), 2.0)


def test_errors_at_run_time_are_those_of_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: Any, **options: Any) -> None:
        raise tilewright.DriverError("no memory", 2)

    a = jax.numpy.ones((8, 8))
    compiled = jax.jit(matmul).lower(a, a).compile()
    monkeypatch.setattr(tilewright, "matmul", fails)
    with pytest.raises(jax.errors.JaxRuntimeError, match="tilewright.matmul: DriverError: no memory"):
        jax.block_until_ready(compiled(a, a))
    monkeypatch.undo()
    assert (compiled(a, a) == 8).all()


def test_other_functions_refuse_tracers(device: Any) -> None:
    rows, experts = integers(device, 40, 24), integers(device, 3, 24, 56)
    with pytest.raises(InvalidArgument, match="tracers of jax.jit have no memory: only matmul and the functions of tilewright.jax"):
        jax.jit(lambda rows, experts: tilewright.grouped_matmul(rows, experts, offsets=[40, 40, 40]))(rows, experts)


def test_the_guides_program_runs(tmp_path: pathlib.Path) -> None:
    guide = (pathlib.Path(__file__).parents[2] / "docs/python.md").read_text().partition("## Programs of JAX")[2]
    program = re.search(r"^```python\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    assert program is not None and "jax.grad" in program[1]
    (tmp_path / "guide.py").write_text(program[1])
    subprocess.run([sys.executable, "guide.py"], cwd=tmp_path, timeout=120, check=True)


def test_memory_of_results_is_freed(device: Any) -> None:
    a, b = integers(device, 64, 64), integers(device, 64, 64)
    name = "cuda:0" if device.platform == "gpu" else ""
    before = tilewright.allocated_bytes(name)
    for _ in range(10):
        out = matmul(a, b)
    assert tilewright.allocated_bytes(name) <= before + out.nbytes
    del out
    assert tilewright.allocated_bytes(name) == before


def test_convolutions_take_nhwc() -> None:
    x, w = jax.numpy.ones((2, 6, 6, 8), "float16"), jax.numpy.ones((16, 3, 3, 8), "float16")
    got = tilewright.conv2d(x, w, padding=1, layout="nhwc")
    assert isinstance(got, jax.Array) and got.shape == (2, 6, 6, 16)
    assert (got[:, 1:-1, 1:-1] == 72).all() and (got[:, 0, 0] == 32).all()
    with pytest.raises(InvalidArgument, match='no channels-last strides: pass layout="nhwc"'):
        tilewright.conv2d(x.transpose(0, 3, 1, 2), w.transpose(0, 3, 1, 2))
