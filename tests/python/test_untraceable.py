"""Functions that cannot be traced are refused with the line and what to write instead; nothing but TraceError is raised."""

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

# The body of `def f(accum, bias, gain, residual, s, n=2)`; the text that the carets mark; the reason; what to write instead.
REFUSED = [
    ("while accum > 0: pass", "while accum > 0: pass", "while loops cannot be traced", "where()"),
    ("try: pass\nfinally: pass", "try: pass", "try cannot be traced", None),
    ("with np.errstate(): pass", "with np.errstate(): pass", "with cannot be traced", None),
    ("class A: pass", "class A: pass", "classes cannot be traced", None),
    ("yield accum", "yield accum", "yield cannot be traced", "return"),
    ("del accum", "del accum", "del cannot be traced", None),
    ("global x", "global x", "changes to variables outside of the function cannot be traced", "return it"),
    ("raise ValueError", "raise ValueError", "the function raises here", None),
    ("match accum:\n  case _: pass", "match accum:", "match cannot be traced", None),
    ("import os", "import os", "'os' cannot be imported", "torch"),
    ("from .x import y", "from .x import y", "only names of known libraries can be imported", None),
    ("@np.vectorize\ndef g(x): return x", "np.vectorize", "decorators cannot be traced", None),
    ("accum[0] = 1", "accum[0]", "only variables can be assigned to", "where(condition, x, y)"),
    ("accum.x = 1", "accum.x", "only variables can be assigned to", None),
    ("a, b = accum", "a, b", "an elementwise value cannot be unpacked", None),
    ("a, b = 1, 2, 3", "a, b", "a tuple of length 3 cannot be unpacked to 2 variables", None),
    ("values, indices = accum.max(dim=1)", "values, indices", "a reduction has no indices, only values", "amax"),
    ("accum.relu()", "accum.relu()", "this value is not used", "return it"),
    ("accum.relu_()", "accum.relu_()", "x.relu_ changes its operand in place", "x = x.relu(...)"),
    ("print(accum)", "print", "'print' is not defined, and is no function of epilogues", None),
    ("t = accum\nt += 1", "t += 1", "this changes an array that has other names than 't' too", "t = t + ..."),
    ("t = accum[:, ::2]\nt *= 2", "t *= 2", "this changes an array that has other names than 't' too", "t = t * ..."),
    ("bias += accum", "bias += accum", "a value of shape (6, 8) cannot be stored to 'bias' of shape (8,)", "bias = bias + ..."),
    ("if accum > 0: return accum", "accum > 0", "the condition of an if statement must not depend on", "where("),
    ("assert accum > 0", "accum > 0", "assert takes constants only", None),
    ("assert n == 3, 'three'", "assert n == 3, 'three'", "the assertion fails: three", None),
    ("for x in accum: pass", "accum", "a loop must be over constants, got an elementwise value", "range(3)"),
    ("for x in range(10**9): pass", None, "more than 100000 expressions and statements", None),
    ("return", "return", "f returns nothing", None),
    ("return ()", "()", "f returns nothing", None),
    ("x = 1", "def f(accum, bias, gain, residual, s, n=2):", "f returns nothing", None),
    ("return missing", "missing", "'missing' is not defined, and is no function of epilogues", None),
    ("return rely(accum)", "rely", "'rely' is not defined, and is no function of epilogues", "relu, if you mean that"),
    (
        "return torch.softmax(accum, dim=-1)",
        "torch.softmax(accum, dim=-1)",
        "torch.softmax is no function of",
        "sums",
    ),
    ("return torch.nn.GELU()(accum)", "torch.nn.GELU()", "torch.nn.GELU is no function of epilogues", None),
    ("return np.linalg.norm(accum)", "np.linalg.norm(accum)", "numpy.linalg.norm is no function", "take the root"),
    ("return accum.mean(dim=1)", "accum.mean(dim=1)", "x.mean is no function of epilogues", "divide afterwards"),
    ("return accum.T", "accum.T", "x.T cannot be traced", "x[:, None]"),
    ("return accum.chunk(2, dim=-1)", "accum.chunk(2, dim=-1)", "x.chunk is no function", "x[..., 0::2]"),
    ("return F.glu(accum)", "F.glu(accum)", "torch.nn.functional.glu splits the columns", "x[..., 0::2]"),
    ("return accum @ residual", "accum @ residual", "an epilogue computes each element separately", None),
    ("return accum << 2", "accum << 2", "'<<' cannot be traced", None),
    ("return accum & 1", "accum & 1", "'&' takes conditions only", "(x > 0) & (y > 0)"),
    ("return not accum", "not accum", "'~' and 'not' take conditions only", None),
    ("return (accum > 0) + (bias > 0)", "(accum > 0) + (bias > 0)", "'+' of two conditions", "x | y"),
    ("return accum + 'x'", "accum + 'x'", "expected an elementwise value, got a string", None),
    ("return accum + 1j", "1j", "a constant of type complex cannot be traced", None),
    ("return accum + None", "accum + None", "expected an elementwise value, got None", None),
    ("return accum * float('inf')", "accum * float('inf')", "constants of an epilogue must be finite, got inf", "bind it as a scalar"),
    ("return accum * 10**400", "10**400", "the result does not fit in f64", None),
    ("return accum * (1 / 0)", "1 / 0", "division by zero", None),
    ("return accum + gain", "accum + gain", "shapes (6, 8) and (6,) do not broadcast", "x[:, None]"),
    ("D = accum\nreturn D, bias * 2", "bias * 2", "an output other than D needs a name", "assign it"),
    ("D, t = accum, bias * 2\nreturn D, t", "t", "the output 't' must have the shape (6, 8), got (8,)", None),
    ("return accum, residual", "residual", "'residual' is an input", "another variable"),
    ("return accum, accum", "accum", "'accum' is returned twice", None),
    ("x = accum, bias\nreturn x", "x", "the values of a returned tuple need names", "return D, aux"),
    ("return [accum for _ in range(2)]", "[accum for _ in range(2)]", "comprehensions cannot be traced", None),
    ("return f'{accum}'", "f'{accum}'", "formatted strings cannot be traced", None),
    ("return {'D': accum}", "{'D': accum}", "dictionaries cannot be traced", None),
    ("return accum.sum()", "accum.sum()", "D is a reduction", "return D first"),
    ("return accum - accum.max()", "accum - accum.max()", "the result of a reduction is not complete before", "afterwards"),
    ("D = accum\nt = bias.sum()\nreturn D, t", "bias.sum()", "a reduced value must have the shape (6, 8), got (8,)", None),
    ("D = accum\nt = sum(accum)\nreturn D, t", "sum(accum)", "Python's sum iterates over rows", "x.sum()"),
    ("D = accum\nt = D.sum(dim=2)\nreturn D, t", "D.sum(dim=2)", "axis 2 is out of range for 2 axes", None),
    ("D = accum\nt = D.sum(dim=s)\nreturn D, t", "D.sum(dim=s)", "an axis must be an integer constant, got a launch", None),
    ("D = accum\nt = D.sum(out=1)\nreturn D, t", "D.sum(out=1)", "x.sum takes (x, axis, keepdims) in an", None),
    ("return accum[0]", "accum[0]", "only even and odd columns can be indexed", "x[..., 0::2] and x[..., 1::2]"),
    ("return accum[accum > 0]", "accum[accum > 0]", "only even and odd columns can be indexed", None),
    ("return accum[:, :4]", "accum[:, :4]", "only even and odd columns can be indexed", None),
    ("return accum[::2]", "accum[::2]", "only even and odd columns can be indexed", None),
    ("return accum[..., ::2] + accum", "accum[..., ::2] + accum", "values of column pairs do not broadcast", None),
    ("return accum[..., ::2][..., ::2]", "accum[..., ::2][..., ::2]", "even and odd columns can only be taken of", None),
    ("D = accum[..., ::2]\nt = D + 1\nreturn D, t", "t", "only D can have one column for each pair", None),
    ("D = accum[..., ::2]\nt = accum.sum()\nreturn D, t", "t", "a gated epilogue cannot have reductions", None),
    ("return accum.to(torch.int8)", "accum.to(torch.int8)", "a cast to an integer type truncates", "cast round(x)"),
    ("return accum.to(torch.float64)", "accum.to(torch.float64)", "epilogues have no type 'float64'", "bfloat16"),
    ("return accum.to('cuda')", "accum.to('cuda')", "epilogues have no type 'cuda'", None),
    ("return torch.gelu(accum, 3, 4)", "torch.gelu(accum, 3, 4)", "torch.gelu takes (x, approximate)", None),
    (
        "return F.gelu(accum, approximate='x')",
        "F.gelu(accum, approximate='x')",
        "approximate must be 'none' or",
        None,
    ),
    ("return relu(*accum)", "*accum", "'*' takes a tuple, got an elementwise value", None),
    ("return relu(**{})", "{}", "'**' cannot be traced", "name each argument"),
    ("return bias(accum)", "bias(accum)", "an elementwise value cannot be called", None),
    ("return np.arange(5) + accum", "np.arange(5)", "arange takes the number of columns, 8, or of rows, 6, got 5", "x.shape[-1]"),
    ("return where(accum > bias > gain, 1, 2)", "accum > bias > gain", "shapes (8,) and (6,) do not broadcast", None),
    ("return gain[:, None] * accum + gain[:, None] * bias[:, None]", None, "do not broadcast", None),
    ("return accum is accum", "accum is accum", "'is' takes None, True or False only", "=="),
    ("return accum in (1, 2)", "accum in (1, 2)", "'in' takes constants only", None),
    ("def g(x): return g(x)\nreturn g(accum)", "g(x)", "g calls itself, and recursion cannot be traced", "range(3)"),
    ("def g(x): return x\nreturn g()", "g()", "the call of g lacks x", None),
    ("def g(x): return x\nreturn g(1, 2)", "g(1, 2)", "g takes 1 arguments, got 2", None),
    ("def g(*x): return x\nreturn g(1)", "g(1)", "g has a '*' parameter, which cannot be traced", None),
    ("return " + "accum + " * 300 + "residual * " * 300 + "1", None, "operations, more than 512", None),
]
HEADER = "def f(accum, bias, gain, residual, s, n=2):"


def trace_text(text, **options):
    names = {each.arg for each in ast.parse(textwrap.dedent(text)).body[0].args.args}
    shapes = {name: shape for name, shape in SHAPES.items() if name in names}
    return trace(text, problem=(M, N), shapes=shapes, scalars={"s": 2.0} if "s" in names else {}, **options)


@pytest.mark.parametrize(("body", "marked", "reason", "instead"), REFUSED)
def test_a_refusal_marks_the_source_text(body, marked, reason, instead):
    text = f"{HEADER}\n{textwrap.indent(body, '    ')}\n"
    with pytest.raises(TraceError) as caught:
        trace_text(text)
    error = caught.value
    assert reason in error.reason
    assert instead is None or instead in (error.instead or "")
    location = error.location
    line = text.splitlines()[location.line - 1]
    assert location.filename == "<epilogue>" and location.text == line
    if marked is not None:
        assert line[location.column - 1 : location.end - 1] == marked
    printed = str(error).splitlines()
    assert printed[0] == f"<epilogue>:{location.line}:{location.column}: {error.reason}"
    assert printed[1] == f"    {line}"
    assert printed[2] == "    " + " " * (location.column - 1) + "^" * (location.end - location.column)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def f(accum)\n  return accum", "<epilogue>:1:13: not Python: expected ':'"),
        ("def f(accum):\n  return accum +", "<epilogue>:2:17: not Python: invalid syntax"),
        ("def f(accum): return accum\0", "not Python"),
        ("", "the text defines no function"),
        ("x = 1", "the text defines no function"),
        ("def f(): return 1", "f has no parameter for the accumulators A*B"),
        ("def f(accum, x): return x", "<epilogue>:1:14: nothing is bound to 'x'"),
        ("def f(accum, *x): return x", "<epilogue>:1:15: '*' parameters cannot be traced"),
        ("def f(accum, **x): return x", "'*' parameters cannot be traced"),
        ("async def f(accum): return accum", "async cannot be traced"),
        ("def f(accum, bias, x=1/0): return accum", "<epilogue>:1:22: division by zero"),
        ("return 1", "outside of a function"),
    ],
)
def test_texts_that_are_not_functions(text, says):
    with pytest.raises(TraceError, match=re.escape(says)):
        trace(text, problem=(M, N), shapes={"bias": (N,)} if "bias" in text else {})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"problem": (6,)}, "problem must be (m, n) or (batch, m, n), got (6,)"),
        ({"problem": (6, 8.5)}, "the shape of 'problem' must be integers"),
        ({"problem": (6, -8)}, "the shape of 'problem' has a negative extent: (6, -8)"),
        ({"shapes": {"bias": (N,), "other": (N,)}}, "f has no parameter 'other'"),
        ({"shapes": {"bias": (7,)}}, "<epilogue>:1:14: 'bias' of shape (7,) does not broadcast to A*B of shape (6, 8)"),
        ({"shapes": {"bias": (N, 1)}}, "'bias' of shape (8, 1) does not broadcast to A*B of shape (6, 8)"),
        ({"shapes": {"bias": (1, 1, N)}}, "'bias' of shape (1, 1, 8) does not broadcast"),
        ({"problem": (3, M, N), "shapes": {"bias": (3, M)}}, "instead: an array of shape (3, 6, 1)"),
        ({"problem": (3, M, N), "shapes": {"bias": (3, N)}}, "instead: an array of shape (3, 1, 8)"),
        ({"problem": (3, M, N), "shapes": {"bias": (3,)}}, "instead: an array of shape (3, 1, 1)"),
        ({"shapes": {"bias": 3}}, "the shape of 'bias' must be integers, got 3"),
        ({"scalars": {"bias": True}}, "'bias' is a launch argument, got a bool"),
        ({"scalars": {"bias": "x"}}, "'bias' is a launch argument, got a str"),
        ({"scalars": {"bias": [1]}}, "'bias' is a launch argument and must be a number, got a list of length 1"),
        ({"scalars": {"bias": 1}, "shapes": {"bias": (N,)}}, "'bias' is bound more than once"),
        ({"c": "bias", "shapes": {"bias": (N,)}}, "C must have the shape (6, 8), got (8,)"),
        ({"constants": {"bias": "x"}}, "expected an elementwise value, got a string"),
        ({"constants": {"bias": np.zeros(N)}}, "instead: a parameter that the array is bound to"),
    ],
)
def test_wrong_bindings(options, says):
    with pytest.raises(TraceError, match=re.escape(says)):
        trace("def f(accum, bias): return accum + bias", **{"problem": (M, N), **options})


def calls_what_fails(accum):
    return helper_that_fails(accum) * 2


def helper_that_fails(x):
    y = x + 1
    return y.cumsum(dim=1)


def test_locations_name_the_file_and_the_callers():
    with pytest.raises(TraceError) as caught:
        trace(calls_what_fails, problem=(M, N))
    first = calls_what_fails.__code__.co_firstlineno
    assert str(caught.value) == (
        f"{__file__}:{first + 6}:12: x.cumsum is no function of epilogues\n"
        "        return y.cumsum(dim=1)\n"
        "               ^^^^^^^^^^^^^^^\n"
        f"called from {__file__}:{first + 1}:12"
    )


def test_tabs_and_wide_characters_keep_the_caret_below():
    with pytest.raises(TraceError) as caught:
        trace("def f(accum):\n\té = accum; return é @ é", problem=(M, N))
    assert str(caught.value).splitlines()[1:3] == ["    \té = accum; return é @ é", "    \t" + " " * 18 + "^^^^^"]


class Opaque:
    """An object whose attributes raise, and whose conversion to a number raises."""

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
        (made_by_exec["f"], "the source of f of <string> is not found"),
        (len, "is not a function that can be traced"),
        (int, "is not a function that can be traced"),
        (3, "3 is not a function that can be traced"),
        (None, "None is not a function that can be traced"),
        (Opaque, "is not a function that can be traced"),
        (OPAQUE, "is not a function that can be traced"),
        (np.exp, "is not a function that can be traced"),
        (cached, "is not a function that can be traced"),
        (wrapped(calls_what_fails), "calls_what_fails is wrapped by a decorator"),
        (functools.partial(calls_what_fails, 1, 2), "calls_what_fails takes 1 arguments, got 2"),
        (functools.partial(calls_what_fails, 1), "has no parameter for the accumulators A*B"),
        (lambda accum: accum + WEIGHTS, "got a ndarray"),
        (lambda accum: accum + OPAQUE, "got a Opaque"),
        (lambda accum: accum * OPAQUE.slope, "reading 'slope' of a Opaque raised RuntimeError"),
        (lambda accum: OPAQUE(accum), "a Opaque is not a function that can be traced"),
        (lambda accum: wrapped(accum), "decorators cannot be traced"),
    ],
)
def test_objects_that_are_not_functions_or_values(function, says):
    with pytest.raises(TraceError, match=re.escape(says)):
        trace(function, problem=(M, N))


def test_texts_contain_only_identifiers_and_numbers():
    hostile = 'x); asm("trap;"); D = acc'
    for where in ("shapes", "scalars", "constants"):
        with pytest.raises(TraceError, match="has no parameter"):
            trace("def f(accum): return accum", problem=(M, N), **{where: {hostile: (N,)}})
    with pytest.raises(TraceError, match="epilogues have no type 'x\\); asm"):
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
        assert error.location is not None or "deep" in error.reason
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
