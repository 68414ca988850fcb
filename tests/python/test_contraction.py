"""Contractions of two arrays and einsums of more: results, epilogues, paths, and errors in the caller's words."""

import json
import re

import numpy as np
import pytest
import tilewright
from tilewright.contraction import _greedy_path


def integers(shape: tuple[int, ...], seed: int, kind: str = "float32") -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(kind)


@pytest.mark.parametrize(
    "expression, a, b",
    [
        ("ab,bc->ac", (5, 6), (6, 7)),
        ("ab,bc->ca", (5, 6), (6, 7)),
        ("abcd,dcef->abef", (2, 3, 4, 5), (5, 4, 6, 7)),
        ("abcd,dcef->eafb", (2, 3, 4, 5), (5, 4, 6, 7)),
        ("xbyk,yxkc->xcyb", (2, 3, 4, 5), (4, 2, 5, 6)),
        ("ab,ba->", (5, 6), (6, 5)),
        ("ab,cd->acbd", (2, 3), (4, 5)),
        ("abk,c->ac", (2, 3, 4), (5,)),
        ("cb,ba", (3, 4), (4, 5)),
    ],
)
def test_results_equal_those_of_numpy(expression, a, b):
    x, y = integers(a, 1), integers(b, 2)
    expected = np.einsum(expression, x, y)
    result = tilewright.contract(expression, x, y)
    assert result.dtype == np.float32 and np.array_equal(result, expected)


def test_arrays_may_have_any_strides_and_are_not_copied():
    a = integers((4, 3, 10), 1)[:, ::-1, ::2].transpose(2, 0, 1)[:, :, ::-1]  # strides are positive again
    b = np.broadcast_to(integers((3, 1), 2), (3, 6))
    out = np.full((6, 8, 4), np.nan, np.float32)[:, 1:6, :]
    assert tilewright.contract("abc,cd->dab", a, b, out=out) is out
    assert np.array_equal(out, np.einsum("abc,cd->dab", a, b))


def test_alpha_beta_and_c():
    a, b, c = integers((2, 3, 4), 1), integers((4, 5), 2), integers((5, 2, 3), 3)
    result = tilewright.contract("abk,kc->cab", a, b, c=c, alpha=2.0, beta=-1.0)
    assert np.array_equal(result, 2 * np.einsum("abk,kc->cab", a, b) - c)


def test_epilogues_read_arrays_with_the_modes_of_the_result():
    a, b = integers((2, 3, 4), 1), integers((4, 5, 6), 2)
    bias, residual = integers((1, 1, 5, 6), 3), integers((2, 3, 5, 6), 4)
    expected = np.maximum(np.einsum("abk,kcd->abcd", a, b) + bias + residual, 0)
    text = "D = relu(acc + row(bias) + residual)"
    result = tilewright.contract("abk,kcd->abcd", a, b, epilogue=text, bias=bias, residual=residual)
    assert np.array_equal(result, expected)
    assert np.array_equal(
        tilewright.contract("kcd,abk->abcd", b, a, epilogue=text, bias=bias[0, 0], residual=residual), expected
    ), "columns end with the last mode of the result"

    def traced(acc, bias, residual):
        return np.maximum(acc + bias + residual, 0)

    result = tilewright.contract("abk,kcd->abcd", a, b, epilogue=traced, bias=bias, residual=residual)
    assert np.array_equal(result, expected)
    assert np.array_equal(
        tilewright.contract("abk,kcd->abcd", a, b, epilogue="relu"), np.maximum(np.einsum("abk,kcd->abcd", a, b), 0)
    )


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 0, 3, 1)])
@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_a_residual_of_a_folded_result_is_read_by_every_kernel(order, kind):
    """The rows of abcd are a and c, whose strides do not follow each other."""
    a, b = integers((8, 4, 16), 1, kind), integers((2, 8, 16), 2, kind)
    shape = (8, 2, 4, 8)
    residual = integers(tuple(shape[mode] for mode in order), 3, kind).transpose(np.argsort(order))
    expected = np.maximum(np.einsum("ack,bdk->abcd", a.astype("float32"), b.astype("float32")) + residual, 0)
    out = np.empty(shape, kind)
    epilogue = tilewright.EpilogueArguments("D = relu(acc + residual)", residual=residual)
    args = tilewright.ContractionArguments("ack,bdk->abcd", a, b, out, epilogue=epilogue)
    first_of_family = {kernel.metadata.family: kernel for kernel in reversed(tilewright.find_kernels(args))}
    assert {"simt_gemm", "permuted_gemm"} <= first_of_family.keys()
    for kernel in first_of_family.values():
        out[...] = np.nan
        kernel.run(args)
        assert np.array_equal(out, expected), kernel.name
    assert args.verify()
    assert set(args.tensors) == {"residual"}


def test_a_folded_result_may_be_its_own_residual():
    a, b, out = integers((3, 4, 5), 1), integers((2, 6, 5), 2), integers((3, 2, 4, 6), 3)
    expected = np.einsum("ack,bdk->abcd", a, b) + 2 * out
    assert tilewright.contract("ack,bdk->abcd", a, b, out=out, epilogue="D = acc + $s * x", x=out, s=2.0) is out
    assert np.array_equal(out, expected)


@pytest.mark.parametrize("shape", [(2, 1), (1, 2, 1), (3, 1, 1), (3, 2, 1), (4,), (1, 4), (3, 1, 4), (2, 4), (3, 2, 4)])
def test_arrays_of_a_python_function_are_broadcast_along_the_batch(shape):
    a, b, x = integers((3, 2, 5), 1), integers((3, 5, 4), 2), integers(shape, 3)
    found = tilewright.contract("bmk,bkn->bmn", a, b, epilogue=lambda acc, x: acc * x - 1, x=x)
    np.testing.assert_array_equal(found, (a @ b) * x - 1)


def test_arrays_of_a_python_function_may_lack_leading_modes():
    a, b, bias = integers((2, 3, 4), 1), integers((4, 5, 6), 2), integers((5, 6), 3)
    found = tilewright.contract("abk,kcd->abcd", a, b, epilogue=lambda acc, bias: acc + bias, bias=bias)
    np.testing.assert_array_equal(found, np.einsum("abk,kcd->abcd", a, b) + bias)


def test_arguments_tell_how_modes_are_folded():
    a, b, out = np.zeros((2, 3, 4, 5), np.float32), np.zeros((5, 4, 6, 7), np.float32), np.zeros((2, 3, 6, 7), np.float32)
    args = tilewright.ContractionArguments("abcd,dcef->abef", a, b, out)
    assert args.classes == "m = (ba), n = (fe), k = d*c, batch = 1"
    assert (args.m, args.n, args.k, args.batch) == (6, 42, 20, 1)
    assert args.expression == "abcd,dcef->abef"
    explanation = tilewright.explain(args)
    assert any(kernel.name.startswith("simt_gemm") for kernel in explanation.kernels)
    tilewright.run(args)
    assert args.verify()


def test_einsum_contracts_pairs():
    a, b, c, d = integers((3, 4), 1), integers((4, 20), 2), integers((20, 2), 3), integers((2, 5), 4)
    result = tilewright.einsum("ab,bc,cd,de->ae", a, b, c, d)
    assert np.array_equal(result, a @ b @ c @ d)
    assert np.array_equal(tilewright.einsum("ab,bc", a, b), a @ b)
    assert np.array_equal(
        tilewright.einsum("ab,bc,cd->ad", a, b, c, epilogue="relu"), np.maximum(a @ b @ c, 0)
    ), "options are those of the last contraction"
    assert _greedy_path(["ab", "bc", "cd", "de"], "ae", [(3, 4), (4, 20), (20, 2), (2, 5)])[0] == (1, 2)


@pytest.mark.parametrize(
    ("expression", "shapes"),
    [
        ("...ab,...bc->...ac", [(2, 3, 4), (2, 4, 5)]),
        ("...ab,bc", [(2, 3, 4), (4, 5)]),
        ("ab...,...b->a...", [(3, 4, 5, 2), (5, 2, 4)]),
        ("aab,bc->ac", [(3, 3, 4), (4, 5)]),
        ("aa,aa->a", [(4, 4), (4, 4)]),
        ("ab,ab->ab", [(1, 4), (3, 1)]),
        ("ab,ab->ab", [(1, 1), (3, 4)]),
        ("a,bac->cb", [(1,), (2, 5, 3)]),
        ("...a,...a->...", [(2, 1, 4), (3, 4)]),
        ("ab,bc,...->...ac", [(3, 4), (1, 5), (2,)]),
        ("ab,b,a->", [(3, 4), (4,), (3,)]),
        ("ab->ba", [(3, 4)]),
        ("aab", [(3, 3, 4)]),
        ("...a->a...", [(2, 3, 4)]),
    ],
)
def test_einsum_takes_what_numpy_takes(expression, shapes):
    operands = [integers(shape, seed) for seed, shape in enumerate(shapes)]
    result = tilewright.einsum(expression, *operands)
    expected = np.einsum(expression, *operands)
    assert result.shape == expected.shape and np.array_equal(result, expected)


def test_an_epilogue_of_einsum_with_an_ellipsis():
    a, b, bias = integers((2, 3, 4), 1), integers((4, 5), 2), integers((5,), 3)
    result = tilewright.einsum("...ab,bc->...ac", a, b, epilogue="D = relu(acc + row(bias))", bias=bias)
    assert np.array_equal(result, np.maximum(a @ b + bias, 0))


def test_results_of_einsum_are_plain_matrices():
    a, b = integers((4, 6, 8), 1), integers((8, 3, 5), 2)
    result = tilewright.einsum("abk,kcd->acbd", a, b)
    assert np.array_equal(result, np.einsum("abk,kcd->acbd", a, b))
    assert result.strides == (6 * 15 * 4, 5 * 4, 15 * 4, 4), "the modes of a, then those of b"
    assert tilewright.contract("abk,kcd->acbd", a, b).flags.c_contiguous
    assert tilewright.einsum("abk,kcd->abcd", a, b).flags.c_contiguous
    out = np.zeros((4, 3, 6, 5), np.float32)
    assert tilewright.einsum("abk,kcd->acbd", a, b, out=out) is out
    c = integers((5, 2), 3)
    assert np.array_equal(tilewright.einsum("abk,kcd,de->aebc", a, b, c), np.einsum("abk,kcd,de->aebc", a, b, c))


def test_kernels_that_copy_operands_are_listed_saved_and_run(tmp_path):
    a, b = integers((5, 3, 8, 16), 1, "float16"), integers((4, 6, 3, 8), 2, "float16")
    out = np.full((5, 16, 4, 6), np.nan, np.float16)
    arguments = tilewright.ContractionArguments("jnmi,klnm->jikl", a, b, out)
    kernels = tilewright.find_kernels(arguments)
    kernel = next(each for each in kernels if "permuted" in json.loads(each.metadata.to_json()))
    explained = str(tilewright.explain(arguments))
    assert re.search(r"[AB] is copied to [KMN]-major order \(\w+\|\w+\) first: \d+ bytes, estimated", explained)
    prepared = tilewright.prepare(arguments, kernel)
    assert prepared.workspace_bytes == kernel.get_workspace_size(arguments) > 0
    prepared.run()
    assert arguments.verify()
    kernel.compile(arguments).save(tmp_path / "artifact")
    out[:] = np.nan
    kernel.run(arguments, tilewright.load_artifact(tmp_path / "artifact"))
    assert arguments.verify()


@pytest.mark.parametrize(
    "expression, a, b, message",
    [
        ("ab,bc->ac", (2, 3), (4, 5), "mode 'b' has extent 3 in a, but 4 in b"),
        ("ab,bc->ax", (2, 3), (3, 5), "out has the mode 'x', but no operand has it"),
        ("aa,ab->b", (2, 2), (2, 5), "a has the mode 'a' twice: give a view of its diagonal instead"),
        ("ab,bc->aac", (2, 3), (3, 5), "out has the mode 'a' twice"),
        ("abc,bc->a", (2, 3), (3, 5), "a has 3 modes 'abc', but its shape is (2, 3)"),
        ("ab->ba", (2, 3), (3, 5), "it has no comma"),
        ("a1,1c->ac", (2, 3), (3, 5), "'1' is not a letter"),
    ],
)
def test_errors_name_the_mode_and_the_numbers(expression, a, b, message):
    with pytest.raises(tilewright.InvalidArgument, match=re.escape(message)):
        tilewright.contract(expression, np.zeros(a, np.float32), np.zeros(b, np.float32))


def test_errors_of_out_and_of_einsum():
    a, b = np.zeros((2, 3), np.float32), np.zeros((3, 5), np.float32)
    with pytest.raises(tilewright.InvalidArgument, match="mode 'c' has extent 5 in b, but 4 in out"):
        tilewright.contract("ab,bc->ac", a, b, out=np.zeros((2, 4), np.float32))
    with pytest.raises(tilewright.InvalidArgument, match="'ab,bc,cd' has 3 operands, got 2 arrays"):
        tilewright.einsum("ab,bc,cd", a, b)
    with pytest.raises(tilewright.InvalidArgument, match="einsum needs one operand or more, got 0"):
        tilewright.einsum("")
    with pytest.raises(tilewright.InvalidArgument, match="mode 'a' has extents 2 and 3 in one operand"):
        tilewright.einsum("aa,ac->c", a, b)
    with pytest.raises(tilewright.InvalidArgument, match="mode 'b' has extent 3 in operand 0, but 2 in operand 2"):
        tilewright.einsum("ab,bc,bd->acd", a, b, np.zeros((2, 4), np.float32))
    with pytest.raises(tilewright.InvalidArgument, match="which a contraction does not have"):
        tilewright.contract("ab,bc->ac", a, b, epilogue="D = acc + row_index")


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int8])
def test_einsum_multiplies_by_scalars_of_numpy(kind):
    matrix = np.arange(6, dtype=kind).reshape(2, 3)
    for scalar in (kind(2), kind(3)):
        assert np.array_equal(tilewright.einsum(",ab->ba", scalar, matrix), matrix.T * scalar)
        assert tilewright.einsum(",", scalar, kind(4)) == scalar * kind(4)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("......,bc", "a mode must be a letter, got '.' in '......,bc'"),
        ("ab,bc>ac", "a mode must be a letter, got '>' in 'ab,bc>ac'"),
        ("ab,bc->a->c", "a mode must be a letter, got '-' in 'ab,bc->a->c'"),
        ("\u03b1b,bc->\u03b1c", "a mode must be a letter, got '\u03b1' in"),
    ],
)
def test_einsum_names_the_character_that_is_no_letter(expression, message):
    with pytest.raises(tilewright.InvalidArgument, match=re.escape(message)):
        tilewright.einsum(expression, integers((3, 4), 1), integers((4, 5), 2))


def test_contract_takes_an_expression_of_letters():
    a, b = integers((3, 4), 1), integers((4, 5), 2)
    with pytest.raises(TypeError, match="expression must be a str such as 'ab,bc->ac', and comes first, got a int"):
        tilewright.contract(3, a, b)
    with pytest.raises(tilewright.InvalidArgument, match="it has a character that is not a letter from a to z or A to Z"):
        tilewright.contract("\u03b1b,bc->\u03b1c", a, b)


@pytest.mark.parametrize("expression", ["abk,kcd->cabd", "abk,kcd->abcd", "bik,bkj->bij"])
@pytest.mark.parametrize("has_gaps", [False, True])
def test_a_prepared_contraction_runs_without_c(expression: str, has_gaps: bool) -> None:
    extents = dict(zip("abcdijk", (2, 3, 5, 6, 4, 5, 4)))
    of_a, of_b, of_out = expression.replace("->", ",").split(",")
    shapes = [tuple(extents[mode] for mode in modes) for modes in (of_a, of_b, of_out)]
    a, b, c = (np.random.default_rng(i).integers(-4, 5, shape).astype(np.float32) for i, shape in enumerate(shapes))
    if has_gaps:
        wide = np.zeros((*c.shape[:-1], c.shape[-1] + 3), np.float32)
        wide[..., : c.shape[-1]] = c
        c = wide[..., : c.shape[-1]]
    out = np.empty(shapes[2], np.float32)

    def arguments(beta: float, **source: object) -> tilewright.ContractionArguments:
        formula = "D = acc + beta * C" if source else "D = acc"
        return tilewright.ContractionArguments(expression, a, b, out, epilogue=formula, beta=beta, **source)

    call = tilewright.prepare(arguments(2.0, C=c))
    for beta in (2.0, 0.0, 1.0):
        call.run(arguments(beta, C=c))
        np.testing.assert_array_equal(out, np.einsum(expression, a, b) + beta * c)
    with pytest.raises(tilewright.InvalidArgument, match="prepared with beta = 0, for a kernel that may not read C"):
        tilewright.prepare(arguments(0.0, C=c)).run(arguments(1.0, C=c))


def test_a_prepared_contraction_refuses_other_modes() -> None:
    a, b = np.ones((2, 3, 4), np.float32), np.ones((4, 5, 6), np.float32)
    out, other = np.empty((5, 2, 3, 6), np.float32), np.empty((5, 3, 2, 6), np.float32).swapaxes(1, 2)
    call = tilewright.prepare(tilewright.ContractionArguments("abk,kcd->cabd", a, b, out))
    reason = "prepared for (tensors with other modes or strides: prepare a call|strides)"
    with pytest.raises(tilewright.InvalidArgument, match=reason):
        call.run(tilewright.ContractionArguments("abk,kcd->cabd", a, b, other))


@pytest.mark.parametrize(
    ("expression", "columns"),
    [("bik,bkj->bij", "j"), ("abk,bkcd->abcd", "cd"), ("ik,kj->ij", "j"), ("kj,ik->ij", "j"), ("bkj,bik->bij", "j")],
)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("is_traced", [False, True])
def test_results_of_reductions_have_the_shapes_of_numpy(
    expression: str, columns: str, keepdims: bool, is_traced: bool
) -> None:
    of_a, of_b, result = expression.replace("->", ",").split(",")
    extents = dict(zip("abcdijk", (2, 3, 5, 6, 4, 5, 4)))
    a, b = (
        np.random.default_rng(i).integers(-4, 5, [extents[mode] for mode in modes]).astype(np.float32)
        for i, modes in enumerate((of_a, of_b))
    )
    expected = np.einsum(expression, a, b)
    batch = [mode for mode in result if mode in of_a and mode in of_b]
    of_columns = tuple(result.index(mode) for mode in columns)
    of_rows = tuple(at for at, mode in enumerate(result) if mode not in columns and mode not in batch)
    axes = {"p": of_columns, "q": of_rows, "r": (*of_rows, *of_columns)}
    sums = {name: expected.sum(axis=axis, keepdims=keepdims) for name, axis in axes.items()}
    outputs = {name: np.full(each.shape, np.nan, np.float32) for name, each in sums.items()}

    def epilogue(acc: object) -> object:
        p, q, r = acc.sum(axis=-1), acc.sum(axis=-2), acc.sum(axis=(-2, -1))  # type: ignore[attr-defined]
        return acc, p, q, r

    text = "D = acc; column(p) = sum(acc); row(q) = sum(acc); r = sum(acc)"
    tilewright.contract(expression, a, b, epilogue=epilogue if is_traced else text, **outputs)
    for name, each in sums.items():
        np.testing.assert_array_equal(outputs[name], each)


@pytest.mark.parametrize(
    "expression",
    [
        "abcdefghi,ghi->abcdef",
        "abcde,fghij->abcdefghij",
        "abcdefghij,cf->abdeghij",
        "abcdefghij,klcf->abkdelghij",
        "acegibdfhj,jhfdbkl->aceglki",
        "abcdefghij,cjlf->abc",
        "abcdefghijk,abcdefghijk->",
        "abcdefghi,gklmnopqr,rst->abcdefhiklmnopqst",
        "a...,...b->...ab",
    ],
)
@pytest.mark.parametrize("extent", [1, 2])
def test_einsum_of_more_than_eight_modes(expression: str, extent: int) -> None:
    rng = np.random.default_rng(3)
    inputs = expression.partition("->")[0].split(",")
    arrays = [
        rng.integers(-2, 3, (extent,) * (10 if "..." in each else len(each))).astype(np.float64) for each in inputs
    ]
    found = tilewright.einsum(expression, *arrays)
    expected = np.einsum(expression, *arrays)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)
    scaled = tilewright.einsum(expression, *arrays, alpha=2.0)
    np.testing.assert_array_equal(scaled, 2 * expected)


def test_einsum_of_more_than_eight_modes_with_out_is_refused() -> None:
    a, b, out = (np.ones((2,) * rank, np.float32) for rank in (9, 2, 9))
    with pytest.raises(tilewright.InvalidArgument, match="at most 8 modes, got a shape of length 9"):
        tilewright.einsum("abcdefghi,ij->abcdefghj", a, b, out=out)
