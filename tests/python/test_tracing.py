"""`tilewright.tracing`: the texts that functions are traced to, their results, and refusals."""

import inspect
import re
import sys
import textwrap

import numpy as np
import pytest
from documents import Document
from epilogue_numpy import evaluate, module, torch
from hypothesis import HealthCheck, given, settings, strategies
from tilewright.tracing import TraceError, trace, traced_as
from tilewright.tracing.graph import FUNCTIONS
from tilewright.tracing.text import RESERVED
from traced_programs import PROGRAMS, SCALARS, SHAPES, M, N


def parameters(function):
    return inspect.signature(function).parameters


def traced(program):
    names = [name for name in parameters(program.function) if name != program.c]
    return trace(
        program.function,
        problem=(M, N),
        shapes={
            name: shape for name, shape in program.shapes.items() if name in names and name not in program.constants
        },
        scalars={name: value for name, value in SCALARS.items() if name in names},
        constants=program.constants,
        c=program.c,
    )


def accepted(tilewright, epilogue):
    """Whether the epilogue language accepts the text, and if not, the reason."""
    scalars = [f"{each.label}={each.value}" for each in epilogue.scalars if each.label not in ("alpha", "beta")]
    beta = ("--beta", 1) if any(each.label == "beta" for each in epilogue.scalars) else ()
    finished = tilewright(
        "emit", "--device", "emulator:sm_80", "--m", M, "--n", N, "--k", 8, "--dtype", "f32", *beta,
        "--epilogue", epilogue.text, *(option for each in scalars for option in ("--epilogue-scalar", each)),
    )  # fmt: skip
    return finished.returncode == 0 or finished.stderr


def arrays(program):
    """Values for the parameters of a program, in f64 and without 0."""
    random = np.random.default_rng(1)
    shapes = {**program.shapes, **({program.c: (M, N)} if program.c else {})}
    made = {name: random.choice([-2.5, -1.25, -0.5, 0.75, 1.5, 3.25], shape) for name, shape in shapes.items()}
    return {**made, **SCALARS, **program.constants}


def meant(function, accumulator, values):
    """The results that Python computes, as a tuple."""
    free = [name for name in parameters(function) if name in values]
    returned = function(accumulator.copy(), **{name: values[name] for name in free})
    return returned if isinstance(returned, tuple) else (returned,)


def assert_means_the_same(epilogue, returned, accumulator, values, c=None):
    leaves = {each.label: values[each.name] for each in (*epilogue.inputs, *epilogue.scalars)}
    stored = evaluate(epilogue.text, accumulator, leaves, c)
    assert set(stored) == {output.label for output in epilogue.outputs}
    for output, expected in zip(epilogue.outputs, returned, strict=True):
        value = np.broadcast_to(stored[output.label], output.shape)
        np.testing.assert_allclose(value, np.broadcast_to(expected, output.shape), 1e-12, 1e-12, err_msg=output.name)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_function_is_traced_to_the_expected_text(tilewright, name):
    epilogue = traced(PROGRAMS[name])
    assert epilogue.text == PROGRAMS[name].text
    assert accepted(tilewright, epilogue) is True


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_text_computes_the_same_as_the_function(name):
    program = PROGRAMS[name]
    values = arrays(program)
    accumulator = np.random.default_rng(2).choice([-3.5, -2.25, -1, 0, 0.5, 1.25, 4.75], (M, N))
    epilogue = traced(program)
    c = values.get(program.c)
    assert_means_the_same(epilogue, meant(program.function, accumulator, values), accumulator, values, c)


def test_a_trace_lists_its_inputs_and_outputs():
    epilogue = traced(PROGRAMS["linear_combination"])
    assert epilogue.reads_c and not epilogue.is_gated
    assert [(each.name, each.label, each.broadcast) for each in epilogue.inputs] == [("bias", "bias", "row")]
    assert [(each.name, each.label, each.value) for each in epilogue.scalars] == [
        ("alpha", "alpha", 2.0),
        ("beta", "beta", 0.5),
    ]
    assert [(each.name, each.label, each.broadcast, each.shape, each.reduction) for each in epilogue.outputs] == [
        ("D", "D", "full", (M, N), None),
        ("amax", "amax", "single", (), "max"),
        ("t", "t", "full", (M, N), None),
    ]
    gated = traced(PROGRAMS["gated_pairs"])
    assert gated.is_gated and [each.shape for each in gated.outputs] == [(M, N // 2), (M, N)]


def test_d_is_the_variable_of_that_name_or_the_first():
    later = trace("def f(accum):\n  x, D = accum + 1, accum * 2\n  return x, D", problem=(M, N))
    assert later.text == "x = acc + 1; D = acc * 2"
    first = trace("def f(accum):\n  y = accum + 1\n  return y, accum", problem=(M, N))
    assert first.text == "D = acc + 1; accum = acc"
    assert [output.name for output in first.outputs] == ["y", "accum"]


def test_shapes_are_as_python_returns_them():
    text = "def f(accum):\n  D = accum\n  a = D.sum(axis={})\n  b = D.amax(dim={}, keepdim=True)\n  return D, a, b"
    for axis, shapes in {
        "-1": [(M,), (M, 1)],
        "0": [(N,), (1, N)],
        "(0, 1)": [(), (1, 1)],
        "None": [(), (1, 1)],
    }.items():
        assert [each.shape for each in trace(text.format(axis, axis), problem=(M, N)).outputs][1:] == shapes
    batched = trace(text.format("-1", "(-2, -1)"), problem=(3, M, N))
    assert [(each.broadcast, each.shape) for each in batched.outputs][1:] == [("column", (3, M)), ("single", (3, 1, 1))]


def test_a_batch_broadcasts_as_in_numpy():
    function = "def f(accum, bias, each, scale): return accum * scale + bias + each"
    shapes = {"bias": (N,), "each": (3, 1, N), "scale": (1, M, 1)}
    assert trace(function, problem=(3, M, N), shapes=shapes).text == "D = acc * column(scale) + row(bias) + row(each)"
    for wrong in ((3, N), (2, M, N), (3, M, N, 1)):
        with pytest.raises(TraceError, match="does not broadcast to A\\*B"):
            trace(function, problem=(3, M, N), shapes={**shapes, "bias": wrong})


def test_the_accumulator_is_the_parameter_of_that_name_or_the_first():
    assert trace("def f(x, accum): return accum * x", problem=(M, N), scalars={"x": 2}).text == "D = acc * $x"
    assert trace("def f(x, y): return x * y", problem=(M, N), scalars={"y": 2}).text == "D = acc * $y"
    with pytest.raises(TraceError, match="'accum' stands for the accumulators A\\*B: nothing can be bound to it"):
        trace("def f(accum): return accum", problem=(M, N), scalars={"accum": 1})


def test_a_text_may_import_libraries_and_define_helpers():
    text = """
        from __future__ import annotations
        import jax.numpy as jp, torch
        from torch.nn.functional import gelu as activation
        from math import pi
        SCALE: float = 2 * pi

        def scaled(x, by=SCALE):
            return x * by

        def epilogue(accum):
            import numpy
            return scaled(activation(jp.maximum(accum, 0)), 0.5) + scaled(numpy.tanh(accum), by=pi)
    """
    assert trace(text, problem=(M, N)).text == "D = gelu(max(acc, 0)) * 0.5 + tanh(acc) * 3.141592653589793"
    assert trace("lambda accum: relu(accum)", problem=(M, N)).text == "D = relu(acc)"


def test_libraries_are_known_by_their_objects_and_not_imported(monkeypatch):
    activation = torch.relu
    monkeypatch.setitem(sys.modules, "torch", module("torch", relu=activation, float16=object()))
    half = sys.modules["torch"].float16
    exponential = np.exp

    def epilogue(accum, dtype=half):
        return activation(exponential(accum)).to(dtype)

    assert trace(epilogue, problem=(M, N)).text == "D = convert(f16, relu(exp(acc)))"
    loaded = set(sys.modules)
    assert trace("def f(accum): return jax.nn.gelu(accum)", problem=(M, N)).text == "D = gelu_tanh(acc)"
    assert set(sys.modules) == loaded


def test_every_function_of_the_language_is_known():
    table = dict(re.findall(r"^\| `(\w+)` \| (x(?:, \w)*) \|", Document("docs/epilogues.md").text, re.M))
    assert {name: len(inputs.split(",")) for name, inputs in table.items()} == FUNCTIONS
    for name, count in FUNCTIONS.items():
        arguments = ", ".join(["accum", "2", "3"][:count])
        text = trace(f"def f(accum): return {name}({arguments})", problem=(M, N)).text
        expected = {"neg": "-acc", "pow": "square(acc)"}.get(name, f"{name}({arguments.replace('accum', 'acc')})")
        assert text == f"D = {expected}"


def test_reserved_words_are_replaced_in_a_text(tilewright):
    for word in sorted(RESERVED - {"D"}):
        function = f"def f(accum, {word}_, {word}):\n  row_sum = D = accum + {word}\n  return D, row_sum"
        epilogue = trace(function, problem=(M, N), shapes={word: (N,)}, constants={f"{word}_": 1})
        assert epilogue.text == f"D = acc + row({word}_); row_sum = D"
        assert accepted(tilewright, epilogue) is True, word
        local = trace(f"def f(accum):\n  {word} = accum + 1\n  return {word} * {word}, {word}", problem=(M, N))
        assert local.text == f"{word}_ = acc + 1; D = {word}_ * {word}_"
        assert accepted(tilewright, local) is True, word


def test_long_chains_are_split_by_let(tilewright):
    text = "def f(accum):\n  t = accum\n  for _ in range({}):\n    t = {}\n  return t"
    for count, step in ((200, "relu(t - 1)"), (150, "1 - t"), (100, "-(t * 0.5 - 1)")):
        assert accepted(tilewright, trace(text.format(count, step), problem=(M, N))) is True


@pytest.fixture
def operands(tmp_path):
    """Saves small integers as f16 and returns them as f64."""
    random = np.random.default_rng(3)
    shapes = {
        "A": (M, 16),
        "B": (16, N),
        "C": (M, N),
        "bias": (N,),
        "scale": (M, 1),
        "residual": (M, N),
        "shift": (1, 1),
    }
    made = {name: random.integers(-3, 4, shape).astype(np.float16) for name, shape in shapes.items()}
    for name, array in made.items():
        np.save(tmp_path / f"{name}.npy", array.astype(np.float32) if name == "C" else array)
    return {name: array.astype(np.float64) for name, array in made.items()}


def linear_with_peak(accum, C, bias, alpha, beta, s):
    t = alpha * accum + beta * C + bias
    D = np.where(t > 0, t, s * t)
    amax = np.abs(D).max()
    return D, amax, t


def everything_that_is_read(accum, bias, scale, residual, shift):
    t = accum * 0.5 + bias
    D = torch.relu(t) - scale * residual
    up = t > shift
    of_columns = D.sum(axis=0)
    squares = np.sum(t * t, axis=1)
    return D, up, of_columns, squares


def gated(accum, bias):
    t = accum + bias
    gate, value = t[..., ::2], t[..., 1::2]
    return torch.relu(gate) * value, t


@pytest.mark.parametrize("device", ["emulator:sm_80", "emulator:sm_90a"])
@pytest.mark.parametrize("function", [linear_with_peak, everything_that_is_read, gated])
def test_a_kernel_computes_the_same_as_the_function(tilewright, tmp_path, operands, function, device):
    scalars = {"alpha": 2.0, "beta": -1.0, "s": 0.5}
    names = parameters(function)
    epilogue = trace(
        function,
        problem=(M, N),
        shapes={name: operands[name].shape for name in names if name in operands and name != "C"},
        scalars={name: value for name, value in scalars.items() if name in names},
        c="C" if "C" in names else None,
    )
    options = ["--c", tmp_path / "C.npy"] if epilogue.reads_c else []
    for scalar in epilogue.scalars:
        is_of_product = scalar.label in ("alpha", "beta")
        options += (
            [f"--{scalar.label}", scalar.value]
            if is_of_product
            else ["--epilogue-scalar", f"{scalar.label}={scalar.value}"]
        )
    for tensor in epilogue.inputs:
        options += ["--epilogue-input", f"{tensor.label}={tmp_path / tensor.name}.npy"]
    for output in epilogue.outputs:
        options += [] if output.label == "D" else ["--epilogue-output", f"{output.label}={tmp_path / output.label}.npy"]
    finished = tilewright(
        "gemm", "--device", device, "--a", tmp_path / "A.npy", "--b", tmp_path / "B.npy", "--out", tmp_path / "D.npy",
        "--out-dtype", "f32", "--epilogue", epilogue.text, *options, "--verify",
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    expected = meant(function, operands["A"] @ operands["B"], {**operands, **scalars})
    for output, value in zip(epilogue.outputs, expected, strict=True):
        stored = np.load(tmp_path / f"{output.label}.npy").reshape(output.shape)
        np.testing.assert_array_equal(stored, np.asarray(value, np.float32), output.name)


LEAVES = ["accum", "bias", "scale", "residual", "s", "0.5", "-2", "3", "x"]
UNARY = [
    "-{}",
    "abs({})",
    "np.tanh({})",
    "torch.relu({})",
    "np.square({})",
    "({})**2",
    "torch.sigmoid({})",
    "np.floor({})",
]
BINARY = [
    "({}) + ({})",
    "({}) - ({})",
    "({}) * ({})",
    "({}) / (2 + abs({}))",
    "np.maximum({}, {})",
    "np.minimum({}, {})",
]
TERNARY = ["np.where(({}) < ({}), {}, 0.25)", "np.where((accum > {}) & (({}) >= 0), 1.5, {})", "np.clip({}, {}, {})"]


def forms(inner):
    made = [inner.map(each.format) for each in UNARY]
    made += [strategies.tuples(inner, inner).map(lambda x, each=each: each.format(*x)) for each in BINARY]
    made += [strategies.tuples(inner, inner, inner).map(lambda x, each=each: each.format(*x)) for each in TERNARY]
    return strategies.one_of(made)


EXPRESSIONS = strategies.recursive(strategies.sampled_from(LEAVES), forms, max_leaves=12)


@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(strategies.tuples(EXPRESSIONS, EXPRESSIONS, EXPRESSIONS))
def test_random_functions_are_traced_correctly(tilewright, expressions):
    first, second, third = expressions
    text = textwrap.dedent(f"""
        def f(accum, bias, scale, residual, s):
            x = accum
            x = {first}
            D = {second}
            kept = accum + ({third})
            total = kept.sum(axis=1)
            return D, kept, total
    """)
    names = {"np": np, "torch": torch}
    exec(text, names)
    values = arrays(PROGRAMS["all_spreads"])
    epilogue = trace(
        text,
        problem=(M, N),
        shapes={name: SHAPES[name] for name in ("bias", "scale", "residual")},
        scalars={"s": SCALARS["s"]},
    )
    accumulator = np.random.default_rng(4).choice([-3.5, -2.25, -1, 0, 0.5, 1.25, 4.75], (M, N))
    with np.errstate(all="ignore"):
        returned = meant(names["f"], accumulator, values)
        if all(np.all(np.abs(each) < 1e12) for each in returned):
            assert_means_the_same(epilogue, returned, accumulator, values)
    assert accepted(tilewright, epilogue) is True, epilogue.text


def test_a_stand_in_is_traced_in_place_of_its_function():
    @traced_as(lambda x: np.tanh(x) * 2)
    def lookup(x):
        raise AssertionError("not called")

    assert trace(lambda acc: lookup(acc) + 1, problem=(M, N)).text == "D = tanh(acc) * 2 + 1"
