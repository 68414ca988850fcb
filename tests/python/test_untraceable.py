"""What is no epilogue is refused at its line, with what to write instead; nothing else is ever raised."""

import ast
import functools
import re
import textwrap

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies
from tilewright.tracing import TraceError, trace

M, N = 6, 8
SHAPES = {"bias": (N,), "gain": (M,), "residual": (M, N)}

# The body of `def f(accum, bias, gain, residual, s, n=2)`; what is marked below; the reason; what to write instead.
REFUSED = [
    ("while accum > 0: pass", "while accum > 0: pass", "a while loop is not traced", "where()"),
    ("try: pass\nfinally: pass", "try: pass", "try is not traced", None),
    ("with np.errstate(): pass", "with np.errstate(): pass", "with is not traced", None),
    ("class A: pass", "class A: pass", "a class is not traced", None),
    ("yield accum", "yield accum", "yield is not traced", "return"),
    ("del accum", "del accum", "del is not traced", None),
    ("global x", "global x", "what a function changes outside is not traced", "return it"),
    ("raise ValueError", "raise ValueError", "the function raises here", None),
    ("match accum:\n  case _: pass", "match accum:", "match is not traced", None),
    ("import os", "import os", "'os' is not imported", "torch"),
    ("from .x import y", "from .x import y", "only names of libraries are imported", None),
    ("@np.vectorize\ndef g(x): return x", "np.vectorize", "a decorator is not traced", None),
    ("accum[0] = 1", "accum[0]", "only names are assigned to", "where(condition, x, y)"),
    ("accum.x = 1", "accum.x", "only names are assigned to", None),
    ("a, b = accum", "a, b", "a value of each element is not unpacked", None),
    ("a, b = 1, 2, 3", "a, b", "2 names for a tuple of 3", None),
    ("values, indices = accum.max(dim=1)", "values, indices", "a reduction leaves values, no indices", "amax"),
    ("accum.relu()", "accum.relu()", "nothing uses this value", "return it"),
    ("accum.relu_()", "accum.relu_()", "x.relu_ changes a value that others may read", "x = x.relu(...)"),
    ("print(accum)", "print", "'print' is not defined, and no function of an epilogue", None),
    ("t = accum\nt += 1", "t += 1", "this changes an array that 't' is not the only name of", "t = t + ..."),
    ("t = accum[:, ::2]\nt *= 2", "t *= 2", "this changes an array that 't' is not the only name of", "t = t * ..."),
    ("bias += accum", "bias += accum", "'bias' is (8,), and what is stored to it (6, 8)", "bias = bias + ..."),
    ("if accum > 0: return accum", "accum > 0", "a condition that differs between elements selects no", "where("),
    ("assert accum > 0", "accum > 0", "assert is of constants", None),
    ("assert n == 3, 'three'", "assert n == 3, 'three'", "the assertion fails: three", None),
    ("for x in accum: pass", "accum", "a loop is over constants, got a value of each element", "range(3)"),
    ("for x in range(10**9): pass", None, "more than 100000 expressions and statements", None),
    ("return", "return", "f returns nothing", None),
    ("return ()", "()", "f returns nothing", None),
    ("x = 1", "def f(accum, bias, gain, residual, s, n=2):", "f returns nothing", None),
    ("return missing", "missing", "'missing' is not defined, and no function of an epilogue", None),
    ("return rely(accum)", "rely", "'rely' is not defined, and no function of an epilogue", "relu, if that is meant"),
    (
        "return torch.softmax(accum, dim=-1)",
        "torch.softmax(accum, dim=-1)",
        "torch.softmax is no function of an",
        "sums",
    ),
    ("return torch.nn.GELU()(accum)", "torch.nn.GELU()", "torch.nn.GELU is no function of an epilogue", None),
    ("return np.linalg.norm(accum)", "np.linalg.norm(accum)", "numpy.linalg.norm is no function", "take the root"),
    ("return accum.mean(dim=1)", "accum.mean(dim=1)", "x.mean is no function of an epilogue", "divide afterwards"),
    ("return accum.T", "accum.T", "x.T is not traced", "x[:, None]"),
    ("return accum.chunk(2, dim=-1)", "accum.chunk(2, dim=-1)", "x.chunk is no function", "x[..., 0::2]"),
    ("return F.glu(accum)", "F.glu(accum)", "torch.nn.functional.glu halves its columns in the middle", "x[..., 0::2]"),
    ("return accum @ residual", "accum @ residual", "an epilogue works on each element of one product", None),
    ("return accum << 2", "accum << 2", "'<<' is not traced", None),
    ("return accum & 1", "accum & 1", "'&' is of conditions", "(x > 0) & (y > 0)"),
    ("return not accum", "not accum", "'~' and 'not' are of conditions", None),
    ("return (accum > 0) + (bias > 0)", "(accum > 0) + (bias > 0)", "'+' of two conditions", "x | y"),
    ("return accum + 'x'", "accum + 'x'", "expected a value of each element, got a string", None),
    ("return accum + 1j", "1j", "a complex is no value of an epilogue", None),
    ("return accum + None", "accum + None", "expected a value of each element, got None", None),
    ("return accum * float('inf')", "accum * float('inf')", "inf is no number of an epilogue", "bind it as a scalar"),
    ("return accum * 10**400", "10**400", "no number that f64 holds", None),
    ("return accum * (1 / 0)", "1 / 0", "division by zero", None),
    ("return accum + gain", "accum + gain", "shapes (6, 8) and (6,) do not broadcast", "x[:, None]"),
    ("D = accum\nreturn D, bias * 2", "bias * 2", "what is returned beside D needs a name", "assign it"),
    ("D, t = accum, bias * 2\nreturn D, t", "t", "'t' is (8,), and an output (6, 8)", None),
    ("return accum, residual", "residual", "'residual' names what is read", "another variable"),
    ("return accum, accum", "accum", "'accum' is returned twice", None),
    ("x = accum, bias\nreturn x", "x", "what is returned needs names", "return D, aux"),
    ("return [accum for _ in range(2)]", "[accum for _ in range(2)]", "a comprehension is not traced", None),
    ("return f'{accum}'", "f'{accum}'", "a formatted string is not traced", None),
    ("return {'D': accum}", "{'D': accum}", "a dictionary is no value of an epilogue", None),
    ("return accum.sum()", "accum.sum()", "D is a reduction", "return D first"),
    ("return accum - accum.max()", "accum - accum.max()", "a reduction is whole only when all of D is", "afterwards"),
    ("D = accum\nt = bias.sum()\nreturn D, t", "bias.sum()", "a reduction is of values of (6, 8), got (8,)", None),
    ("D = accum\nt = sum(accum)\nreturn D, t", "sum(accum)", "Python's sum would walk over rows", "x.sum()"),
    ("D = accum\nt = D.sum(dim=2)\nreturn D, t", "D.sum(dim=2)", "axis 2 of a value with 2 axes", None),
    ("D = accum\nt = D.sum(dim=s)\nreturn D, t", "D.sum(dim=s)", "an axis is an integer constant, got a launch", None),
    ("D = accum\nt = D.sum(out=1)\nreturn D, t", "D.sum(out=1)", "x.sum takes (x, axis, keepdims) in an", None),
    ("return accum[0]", "accum[0]", "only pairs of columns are taken apart", "x[..., 0::2] and x[..., 1::2]"),
    ("return accum[accum > 0]", "accum[accum > 0]", "only pairs of columns are taken apart", None),
    ("return accum[:, :4]", "accum[:, :4]", "only pairs of columns are taken apart", None),
    ("return accum[::2]", "accum[::2]", "only pairs of columns are taken apart", None),
    ("return accum[..., ::2] + accum", "accum[..., ::2] + accum", "pairs of columns do not broadcast", None),
    ("return accum[..., ::2][..., ::2]", "accum[..., ::2][..., ::2]", "only what has a column for each of A*B", None),
    ("D = accum[..., ::2]\nt = D + 1\nreturn D, t", "t", "only D is of pairs of columns", None),
    ("D = accum[..., ::2]\nt = accum.sum()\nreturn D, t", "t", "where columns are paired nothing is reduced", None),
    ("return accum.to(torch.int8)", "accum.to(torch.int8)", "a cast to integers cuts off", "cast round(x)"),
    ("return accum.to(torch.float64)", "accum.to(torch.float64)", "an epilogue has no 'float64'", "bfloat16"),
    ("return accum.to('cuda')", "accum.to('cuda')", "an epilogue has no 'cuda'", None),
    ("return torch.gelu(accum, 3, 4)", "torch.gelu(accum, 3, 4)", "torch.gelu takes (x, approximate)", None),
    (
        "return F.gelu(accum, approximate='x')",
        "F.gelu(accum, approximate='x')",
        "gelu's approximate is 'none' or",
        None,
    ),
    ("return relu(*accum)", "*accum", "'*' is of a tuple, got a value of each element", None),
    ("return relu(**{})", "{}", "'**' is not traced", "name each argument"),
    ("return bias(accum)", "bias(accum)", "a value of each element is not called", None),
    ("return np.arange(5) + accum", "np.arange(5)", "arange counts columns, 8, or rows, 6, got 5", "x.shape[-1]"),
    ("return where(accum > bias > gain, 1, 2)", "accum > bias > gain", "shapes (8,) and (6,) do not broadcast", None),
    ("return gain[:, None] * accum + gain[:, None] * bias[:, None]", None, "do not broadcast", None),
    ("return accum is accum", "accum is accum", "'is' is traced with None, True and False", "=="),
    ("return accum in (1, 2)", "accum in (1, 2)", "'in' is of constants", None),
    ("def g(x): return g(x)\nreturn g(accum)", "g(x)", "g calls itself, and recursion is not traced", "range(3)"),
    ("def g(x): return x\nreturn g()", "g()", "g lacks x", None),
    ("def g(x): return x\nreturn g(1, 2)", "g(1, 2)", "g takes 1 arguments, got 2", None),
    ("def g(*x): return x\nreturn g(1)", "g(1)", "g takes '*', which is not traced", None),
    ("return " + "accum + " * 300 + "residual * " * 300 + "1", None, "operations, more than 512", None),
]
HEADER = "def f(accum, bias, gain, residual, s, n=2):"


def trace_text(text, **options):
    names = {each.arg for each in ast.parse(textwrap.dedent(text)).body[0].args.args}
    shapes = {name: shape for name, shape in SHAPES.items() if name in names}
    return trace(text, problem=(M, N), shapes=shapes, scalars={"s": 2.0} if "s" in names else {}, **options)


@pytest.mark.parametrize(("body", "marked", "reason", "instead"), REFUSED)
def test_it_is_refused_at_its_place(body, marked, reason, instead):
    text = f"{HEADER}\n{textwrap.indent(body, '    ')}\n"
    with pytest.raises(TraceError) as caught:
        trace_text(text)
    error = caught.value
    assert reason in error.reason
    assert instead is None or instead in (error.instead or "")
    place = error.place
    line = text.splitlines()[place.line - 1]
    assert place.filename == "<epilogue>" and place.text == line
    if marked is not None:
        assert line[place.column - 1 : place.end - 1] == marked
    printed = str(error).splitlines()
    assert printed[0] == f"<epilogue>:{place.line}:{place.column}: {error.reason}"
    assert printed[1] == f"    {line}"
    assert printed[2] == "    " + " " * (place.column - 1) + "^" * (place.end - place.column)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def f(accum)\n  return accum", "<epilogue>:1:13: not Python: expected ':'"),
        ("def f(accum):\n  return accum +", "<epilogue>:2:17: not Python: invalid syntax"),
        ("def f(accum): return accum\0", "not Python"),
        ("", "the text defines no function"),
        ("x = 1", "the text defines no function"),
        ("def f(): return 1", "f has no parameter for the elements of A*B"),
        ("def f(accum, x): return x", "<epilogue>:1:14: nothing is bound to 'x'"),
        ("def f(accum, *x): return x", "<epilogue>:1:15: '*' among parameters is not traced"),
        ("def f(accum, **x): return x", "'*' among parameters is not traced"),
        ("async def f(accum): return accum", "async is not traced"),
        ("def f(accum, bias, x=1/0): return accum", "<epilogue>:1:22: division by zero"),
        ("return 1", "outside of a function"),
    ],
)
def test_texts_that_are_no_function(text, says):
    with pytest.raises(TraceError, match=re.escape(says)):
        trace(text, problem=(M, N), shapes={"bias": (N,)} if "bias" in text else {})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"problem": (6,)}, "problem is (m, n) or (batch, m, n), got (6,)"),
        ({"problem": (6, 8.5)}, "the shape of 'problem' is integers"),
        ({"problem": (6, -8)}, "the shape of 'problem' is negative: (6, -8)"),
        ({"shapes": {"bias": (N,), "other": (N,)}}, "f has no parameter 'other'"),
        ({"shapes": {"bias": (7,)}}, "<epilogue>:1:14: 'bias' is (7,), which does not broadcast to A*B of (6, 8)"),
        ({"shapes": {"bias": (N, 1)}}, "'bias' is (8, 1), which does not broadcast to A*B of (6, 8)"),
        ({"shapes": {"bias": (1, 1, N)}}, "'bias' is (1, 1, 8), which does not broadcast"),
        ({"shapes": {"bias": 3}}, "the shape of 'bias' is integers, got 3"),
        ({"scalars": {"bias": True}}, "'bias' is a launch argument, and no bool"),
        ({"scalars": {"bias": "x"}}, "'bias' is a launch argument, and no str"),
        ({"scalars": {"bias": [1]}}, "'bias' is a launch argument, and a list of 1 is no number"),
        ({"scalars": {"bias": 1}, "shapes": {"bias": (N,)}}, "'bias' is bound to two things"),
        ({"source": "bias", "shapes": {"bias": (N,)}}, "C is of (6, 8), got (8,)"),
        ({"constants": {"bias": "x"}}, "expected a value of each element, got a string"),
        ({"constants": {"bias": np.zeros(N)}}, "instead: a parameter that the array is bound to"),
    ],
)
def test_what_is_bound_wrongly(options, says):
    with pytest.raises(TraceError, match=re.escape(says)):
        trace("def f(accum, bias): return accum + bias", **{"problem": (M, N), **options})


def calls_what_fails(accum):
    return helper_that_fails(accum) * 2


def helper_that_fails(x):
    y = x + 1
    return y.cumsum(dim=1)


def test_places_are_of_the_file_and_say_who_called():
    with pytest.raises(TraceError) as caught:
        trace(calls_what_fails, problem=(M, N))
    first = calls_what_fails.__code__.co_firstlineno
    assert str(caught.value) == (
        f"{__file__}:{first + 6}:12: x.cumsum is no function of an epilogue\n"
        "        return y.cumsum(dim=1)\n"
        "               ^^^^^^^^^^^^^^^\n"
        f"called from {__file__}:{first + 1}:12"
    )


def test_tabs_and_wide_characters_keep_the_caret_below():
    with pytest.raises(TraceError) as caught:
        trace("def f(accum):\n\té = accum; return é @ é", problem=(M, N))
    assert str(caught.value).splitlines()[1:3] == ["    \té = accum; return é @ é", "    \t" + " " * 18 + "^^^^^"]


class Opaque:
    """Its attributes raise, and so does what asks it for a number."""

    def __getattr__(self, name):
        raise (AttributeError if name.startswith("_") else RuntimeError)(name)

    def __float__(self):
        raise RuntimeError("float")


OPAQUE, WEIGHTS = Opaque(), np.ones(N)
twice_on_a_line = (lambda accum: accum * 2, lambda accum: accum * 3)
made_by_exec: dict = {}
exec("def f(accum): return accum", made_by_exec)


@functools.lru_cache
def cached(accum):
    return accum


def wrapped(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return -function(*arguments)

    return wrapper


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (made_by_exec["f"], "no source is found for f of <string>"),
        (len, "is no function that can be traced"),
        (int, "is no function that can be traced"),
        (3, "3 is no function that can be traced"),
        (None, "None is no function that can be traced"),
        (Opaque, "is no function that can be traced"),
        (OPAQUE, "is no function that can be traced"),
        (np.exp, "is no function that can be traced"),
        (cached, "is no function that can be traced"),
        (wrapped(calls_what_fails), "calls_what_fails is wrapped by a decorator"),
        (functools.partial(calls_what_fails, 1, 2), "calls_what_fails takes 1 arguments, got 2"),
        (functools.partial(calls_what_fails, 1), "has no parameter for the elements of A*B"),
        (lambda accum: accum + WEIGHTS, "got a ndarray"),
        (lambda accum: accum + OPAQUE, "got a Opaque"),
        (lambda accum: accum * OPAQUE.slope, "a Opaque gives no 'slope': RuntimeError"),
        (lambda accum: OPAQUE(accum), "a Opaque is no function that can be traced"),
        (lambda accum: wrapped(accum), "a decorator is not traced"),
    ],
)
def test_objects_that_are_no_function_or_value(function, says):
    with pytest.raises(TraceError, match=re.escape(says)):
        trace(function, problem=(M, N))


def test_nothing_but_names_and_numbers_of_its_own_reaches_a_text():
    hostile = 'x); asm("trap;"); D = acc'
    for where in ("shapes", "scalars", "constants"):
        with pytest.raises(TraceError, match="has no parameter"):
            trace("def f(accum): return accum", problem=(M, N), **{where: {hostile: (N,)}})
    with pytest.raises(TraceError, match="an epilogue has no 'x\\); asm"):
        trace("def f(accum, x): return accum.to(x)", problem=(M, N), constants={"x": hostile})

    class Number(float):
        def __repr__(self):
            return hostile

    class Name(str):
        def __format__(self, spec):
            return hostile

    text = trace(
        "def f(accum, x, y, z): return accum * x + y + (accum if z == 'q' else 1)",
        problem=(M, N),
        constants={"x": Number(2.5), "z": Name("q")},
        shapes={Name("y"): (N,)},
    ).text
    assert text == "D = acc * 2.5 + row(y) + acc"


KINDS = ["{} + {}", "{}[{}]", "{}({})", "[{}, {}]", "lambda q: {} - {}", "{} if {} else 1", "({}, {})", "{} and {}"]
KINDS += ["{}.sum({})", "{} < {}", "{} ** {}", "not {} or {}", "(y := {}) % {}", "[q for q in {} if {}]", "{}[{}:]"]
KINDS += ["{}.shape[{}]", "np.where({}, {}, 0)", "torch.clamp({}, min={})", "{{ {}: {} }}", "f'{{ {} }}{{ {} }}'"]
KINDS += ["{} is {}", "{}[..., {}::2]", "{}.max({})", "max({}, {})", "range({}, {})", "{} // {}", "{} @ {}"]
KINDS += ["g({}, {})", "{}[:, {}]", "{}.to({})", "torch.softplus({}, beta={})", "np.arange({}) * {}", "-{} << {}"]
KINDS += ["float({}) ^ {}", "{}.unsqueeze({})"]
ATOMS = ["accum", "bias", "gain", "residual", "s", "n", "x", "y", "None", "True", "...", "0", "1", "-1", "2.5"]
ATOMS += ["1e308", "'f16'", "b''", "2j", "10**30", "()", "np", "torch", "torch.float16", "np.pi", "F.gelu", "g"]
ATOMS += ["relu", "math.inf", "len", "float"]
EXPRESSIONS = strategies.recursive(
    strategies.sampled_from(ATOMS),
    lambda inner: strategies.tuples(strategies.sampled_from(KINDS), inner, inner).map(
        lambda made: "(" + made[0].format(made[1], made[2]) + ")"
    ),
    max_leaves=8,
)
STATEMENTS = ["x = {}", "x += {}", "x, y = {}", "y: int = {}", "if {}: x = {}", "for x in {}: y = {}", "assert {}"]
STATEMENTS += ["{}", "return {}", "while {}: break", "del x", "def g(p, q={}): return {}", "*x, y = {}", "x[{}] = {}"]
STATEMENTS += ["x = y = {}", "return x, y, {}", "D = {}; return D, x", "import math as np"]
STATEMENTS += ["from torch import relu as g", "y = accum.amax({})"]


def statement(form):
    count = form.count("{}")
    return strategies.tuples(*[EXPRESSIONS] * count).map(lambda inner: form.format(*inner))


BODIES = strategies.lists(strategies.sampled_from(STATEMENTS).flatmap(statement), min_size=1, max_size=6)


@settings(max_examples=2000, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(BODIES, strategies.sampled_from([(M, N), (1, 1), (4, 4), (0, 2), (2, 3, 4)]))
def test_any_program_is_a_text_or_a_trace_error(body, problem):
    text = "\n  ".join([HEADER, *body, "return accum"])
    *_, m, n = problem
    try:
        epilogue = trace(
            text, problem=problem, shapes={"bias": (n,), "gain": (m,), "residual": (m, n)}, scalars={"s": 2.0}
        )
    except TraceError as error:
        assert error.place is not None or "deep" in error.reason
    else:
        assert re.fullmatch(r"[A-Za-z0-9_$.,;=<>!+*/() -]+", epilogue.text)


@settings(max_examples=500, deadline=None, derandomize=True)
@given(strategies.text(max_size=60))
def test_any_text_is_a_trace_error(text):
    with pytest.raises(TraceError):
        trace(text, problem=(M, N))


def test_depth_is_refused_and_not_fatal():
    for text in ("-" * 3000 + "accum", "(" * 150 + "accum" + ")" * 150, "relu(" * 90 + "accum" + ")" * 90):
        try:
            trace(f"def f(accum): return {text}", problem=(M, N))
        except TraceError as error:
            assert "deep" in str(error) or "not Python" in str(error) or "operations" in str(error)
