"""tilewright.contract and tilewright.einsum."""

from __future__ import annotations

import functools
import inspect
import math
import re
import string
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from tilewright._tilewright import (
    ContractionArguments,
    Epilogue,
    _contraction_modes,
    run,
)
from tilewright import gradients
from tilewright.call_arguments import (
    CallOptions,
    bound_epilogue,
    check_out_dtype,
    no_array,
    type_of_result,
    with_packing_hint,
)
from tilewright.epilogue import EpilogueArguments
from tilewright.errors import InvalidArgument
from tilewright.results import as_framework_of, empty_like, is_of_jax, shaped, with_shape


# An operand in a message, but no mode and no letter of an expression.
_OPERAND = re.compile(r"(?<!['\w])[ABC](?!['\w*=-]|,\S)")


def contract(
    expression: str,
    a: Any,
    b: Any,
    /,
    *,
    epilogue: Callable[..., object] | str | Epilogue | EpilogueArguments | None = None,
    c: Any = None,
    alpha: float = 1.0,
    beta: float | None = None,
    out: Any = None,
    out_dtype: Any = None,
    accumulator_type: Any = None,
    math: str | None = None,
    stream: Any = None,
    deterministic: bool | None = None,
    batch_invariant: bool | None = None,
    **operands: Any,
) -> Any:
    """Returns the contraction of two arrays, computed as a GEMM by the kernel that is ranked first.

        d = contract("abcd,dcef->abef", a, b)

    expression        the modes of a, b and the result as letters. Without "->" the result has the letters that occur
                      once, in alphabetical order
    a, b              arrays of PyTorch, NumPy, CuPy or JAX with up to 8 modes and any strides. The kernel copies them to
                      another order of modes only where that is estimated to be faster
    out               the array for the result, which is also returned; by default a new array of a's framework
    epilogue          as in matmul(). The columns of the result are the modes that it has in common with the input that
                      has the result's last mode, and its rows those of the other input; modes of all three are a batch.
                      Arrays of the epilogue have the modes of the result, with an extent of 1 along all rows, or all
                      columns, that they are broadcast along
    c, alpha, beta, out_dtype, accumulator_type, math, stream, deterministic, batch_invariant, operands
                      as in matmul(); `c` has the modes of the result

    On a GPU the work is enqueued. Host arrays are complete on return.
    Without an epilogue, c, alpha and out, gradients of PyTorch tensors are computed, too.
    Raises InvalidArgument with the mode and the number that is wrong.
    """
    _check_is_str(expression)
    if "..." in expression:
        raise InvalidArgument(f"'{expression}' has an ellipsis: '.' is not a letter; tilewright.einsum() has ellipses")
    bound = bound_epilogue(epilogue, operands, contract)
    options = CallOptions(alpha, beta, out_dtype, accumulator_type, math, stream, deterministic, batch_invariant)
    if gradients.are_needed(a, b, c, *operands.values()):
        if bound is not None or c is not None or out is not None or alpha != 1.0:
            gradients.refuse("contract() with an epilogue, c, alpha or out", {"a": a, "b": b, "c": c, **operands})
        given = {name: each for name, each in options.keywords().items() if each is not None}
        return gradients.contract(expression, a, b, given)
    is_given = out is not None
    check_out_dtype(out, out_dtype)
    like: Any = None
    if not is_given:
        like = shaped(a)
        kind = type_of_result(out_dtype, like)
        out = empty_like(like, _shape_of_out(expression, like, shaped(b)), kind, stream)
    try:
        arguments = ContractionArguments(
            expression,
            a,
            b,
            out,
            accumulator_type,
            bound,
            C=c,
            alpha=alpha,
            beta=options.beta_for(c),
            math=math,
        )
    except InvalidArgument as error:
        message = _OPERAND.sub(lambda found: found[0].lower(), str(error).replace("A*B", "a * b"))
        raise InvalidArgument(with_packing_hint(message, {"a": a, "b": b, "c": c, "out": out}, bound)) from None
    run(arguments, stream, **options.promises())
    return out if is_given else as_framework_of(like, out)


def einsum(expression: str, *operands: Any, **options: Any) -> Any:
    """Returns the einsum of arrays, as a sequence of contract() calls.

        d = einsum("ab,bc,cd->ad", a, b, c)

    The expression may have an ellipsis, a letter twice in one operand, whose diagonal is meant, and extents of 1 that are
    broadcast. One operand alone is left to its framework, because it has no product. Without `out`, `c` and an epilogue,
    arrays may have any number of modes; if one has more than 8, all modes that the same arrays have are merged, for which
    arrays in which they are not adjacent are copied.
    The order of the contractions is that of opt_einsum, if it is installed; else the pair is contracted first whose
    result exceeds its operands by the fewest elements. Intermediate results have the type of contract()'s result.
    `stream`, `math`, `accumulator_type`, `deterministic` and `batch_invariant` are those of every contraction; the other
    options of contract() are those of the last one. As with torch.einsum, a new result of PyTorch, NumPy or CuPy may have
    another order of modes in memory than the letters say: one in which it is a plain matrix for the kernel.
    """
    _check_is_str(expression)
    if options.get("epilogue") is None:
        own = inspect.signature(contract).parameters
        bound_epilogue(None, {name: value for name, value in options.items() if name not in own}, contract, "einsum")
    if not operands:
        raise InvalidArgument("einsum needs one operand or more, got 0")
    given = [with_shape(each) for each in operands]
    modes, result = modes_of(expression, [_shape(each) for each in given], "arrays")
    if len(given) == 1:
        return _of_one_operand(expression, given[0], options)
    arrays, modes = with_own_modes(given, modes)
    _extents([f"operand {number}" for number in range(len(arrays))], modes, [_shape(each) for each in arrays])
    of_all = {name: options[name] for name in _OF_ALL if name in options}
    for first, second in contraction_path(modes, result, [_shape(each) for each in arrays]):
        x, y = arrays[first], arrays[second]
        of_x, of_y = modes[first], modes[second]
        for index in sorted((first, second), reverse=True):
            del arrays[index], modes[index]
        rest = set(result).union(*modes)
        is_last = not arrays
        if is_last and (set(options) - set(_OF_ALL) or is_of_jax(x)):
            # Rows and columns of epilogues are those of the letters.
            needs_modes = any(options.get(name) is not None for name in ("out", "c", "epilogue"))
            if needs_modes or max(map(len, (of_x, of_y, result))) <= MOST_MODES:
                return contract(f"{of_x},{of_y}->{result}", x, y, **options)
        kept = result if is_last else "".join(mode for mode in dict.fromkeys(of_x + of_y) if mode in rest)
        kept = order_of_result(of_x, of_y, kept, x, y)
        given_options = options if is_last else of_all
        made, kept = contraction_of_pair(of_x, of_y, kept, x, y, functools.partial(contract, **given_options))
        if is_last:
            return made if kept == result else _with_modes(made, [kept.index(mode) for mode in result])
        arrays.append(made)
        modes.append(kept)
    raise AssertionError("a path ends with a contraction")


# Dims::kMaxRank, the modes of a tensor of contract().
MOST_MODES = 8


def contraction_of_pair(
    of_x: str, of_y: str, result: str, x: Any, y: Any, compute: Callable[[str, Any, Any], Any]
) -> tuple[Any, str]:
    """The array that compute("ab,bc->ac", x, y) returns, and its modes, for arrays of any number of modes.

    If one has more modes than a contraction can have, all modes that the same arrays have become one mode. Their order
    becomes that in x; an array in which they have another order, or are not adjacent, is copied. The modes of the result
    then have another order than `result`."""
    if max(map(len, (of_x, of_y, result))) <= MOST_MODES:
        return compute(f"{of_x},{of_y}->{result}", x, y), result
    groups: dict[tuple[bool, bool, bool], str] = {}
    for mode in dict.fromkeys(of_x + of_y):
        owners = mode in of_x, mode in of_y, mode in result
        groups[owners] = groups.get(owners, "") + mode
    letter_of = dict(zip(groups.values(), string.ascii_letters))
    extents = {mode: int(extent) for of, array in ((of_x, x), (of_y, y)) for mode, extent in zip(of, array.shape)}

    def merged(of: str, array: Any) -> tuple[str, Any]:
        own = sorted((group for group in letter_of if group[0] in of), key=lambda group: of.index(group[0]))
        ordered = _with_modes(array, [of.index(mode) for mode in "".join(own)])
        shape = tuple(math.prod(extents[mode] for mode in group) for group in own)
        return "".join(letter_of[group] for group in own), ordered.reshape(shape)

    (letters_x, x), (letters_y, y) = merged(of_x, x), merged(of_y, y)
    kept = [groups[owners] for owners in sorted(groups, reverse=True) if owners[2]]  # those of both arrays first
    made = compute(f"{letters_x},{letters_y}->{''.join(letter_of[group] for group in kept)}", x, y)
    modes = "".join(kept)
    return made.reshape(tuple(extents[mode] for mode in modes)), modes


def _check_is_str(expression: object) -> None:
    if not isinstance(expression, str):
        raise TypeError(f"expression must be a str such as 'ab,bc->ac', and comes first, got a {type(expression).__name__}")


def order_of_result(of_a: str, of_b: str, result: str, a: Any, b: Any) -> str:
    """The modes of the result in an order, slowest first, in which those of A, and those of B, are adjacent and have the
    order that they have there; they are left as they are if they are adjacent."""
    kinds = ["batch" if mode in of_a and mode in of_b else "a" if mode in of_a else "b" for mode in result]
    blocks = [kind for place, kind in enumerate(kinds) if place == 0 or kinds[place - 1] != kind]
    if len(blocks) == len(set(blocks)) and "batch" not in blocks[1:]:
        return result

    def of_kind(wanted: str, modes: str, array: Any) -> str:
        found = [mode for mode, kind in zip(result, kinds) if kind == wanted]
        strides = _strides(array)
        return "".join(sorted(found, key=lambda mode: -strides[modes.index(mode)]))

    return "".join((of_kind("batch", of_a, a), of_kind("a", of_a, a), of_kind("b", of_b, b)))


def _strides(array: Any) -> Sequence[int]:
    """The strides of a tensor of PyTorch in elements, of other arrays in bytes; those of a packed array otherwise."""
    strides: Any = getattr(array, "stride", None) or getattr(array, "strides", None)
    if strides is not None:
        found: Any = strides() if callable(strides) else strides
        return tuple(found)
    return range(len(_shape(array)), 0, -1)


def _with_modes(array: Any, order: Sequence[int]) -> Any:
    """A view of the array with its modes in this order."""
    return array.permute(*order) if hasattr(array, "permute") else array.transpose(*order)


_OF_ALL = ("stream", "math", "accumulator_type", "deterministic", "batch_invariant")


def _shape(array: Any) -> tuple[int, ...]:
    array = shaped(array)
    if not hasattr(array, "shape"):
        raise InvalidArgument(no_array("an operand", array, instead="use ContractionArguments"))
    return tuple(int(extent) for extent in array.shape)


def _extents(names: Sequence[str], modes: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
    """The extent of each mode. `names` are those of the operands."""
    extents: dict[str, int] = {}
    owners: dict[str, str] = {}
    for name, letters, shape in zip(names, modes, shapes, strict=True):
        if len(letters) != len(shape):
            raise InvalidArgument(f"{name} has {len(letters)} modes '{letters}', but its shape is {shape}")
        for letter, extent in zip(letters, shape, strict=True):
            if letters.count(letter) > 1:
                raise InvalidArgument(f"{name} has the mode '{letter}' twice: give a view of its diagonal instead")
            if extents.setdefault(letter, extent) != extent:
                raise InvalidArgument(
                    f"mode '{letter}' has extent {extents[letter]} in {owners[letter]}, but {extent} in {name}"
                )
            owners.setdefault(letter, name)
    return extents


def _check_result(result: str, extents: dict[str, int]) -> None:
    for letter in result:
        if letter not in extents:
            raise InvalidArgument(f"out has the mode '{letter}', but no operand has it")
        if result.count(letter) > 1:
            raise InvalidArgument(f"out has the mode '{letter}' twice")


def _shape_of_out(expression: str, a: Any, b: Any) -> tuple[int, ...]:
    of_a, of_b, of_out = _contraction_modes(expression)
    extents = _extents(("a", "b"), (of_a, of_b), (_shape(a), _shape(b)))
    _check_result(of_out, extents)
    return tuple(extents[letter] for letter in of_out)


def modes_of(expression: str, shapes: Sequence[tuple[int, ...]], noun: str) -> tuple[list[str], str]:
    """The modes of the operands and of the result as letters. The modes of an ellipsis get letters of their own; they
    are aligned at the last. `noun` is what messages call the operands."""
    inputs, arrow, result = expression.replace(" ", "").partition("->")
    texts = inputs.split(",")
    if len(texts) != len(shapes):
        raise InvalidArgument(f"'{expression}' has {len(texts)} operands, got {len(shapes)} {noun}")
    for letter in "".join(text.replace("...", "", 1) for text in (*texts, result)):
        if letter not in string.ascii_letters:
            raise InvalidArgument(f"a mode must be a letter, got '{letter}' in '{expression}'")
    counts = []
    for number, (text, shape) in enumerate(zip(texts, shapes, strict=True)):
        named = text.replace("...", "", 1)
        count = len(shape) - len(named)
        if count < 0 or (count > 0 and "..." not in text):
            raise InvalidArgument(f"operand {number} has {len(named)} modes '{text}', but its shape is {shape}")
        counts.append(count)
    spare = [letter for letter in string.ascii_letters if letter not in expression]
    ellipsis = "".join(spare[: max(counts)])
    modes = [text.replace("...", ellipsis[len(ellipsis) - count :], 1) for text, count in zip(texts, counts, strict=True)]
    named = "".join(texts).replace("...", "")
    once = "".join(sorted(letter for letter in set(named) if named.count(letter) == 1))
    result = result.replace("...", ellipsis, 1) if arrow else ellipsis + once
    for letter in result:
        if letter not in "".join(modes):
            raise InvalidArgument(f"the result has the mode '{letter}', but no operand has it")
        if result.count(letter) > 1:
            raise InvalidArgument(f"the result has the mode '{letter}' twice")
    return modes, result


def with_own_modes(operands: Sequence[Any], modes: Sequence[str]) -> tuple[list[Any], list[str]]:
    """Views of the operands in which each letter is one mode, and their modes: diagonals of letters that an operand has
    several times, without modes of extent 1 that are broadcast."""
    views, letters_of = [], []
    for operand, letters in zip(operands, modes, strict=True):
        view, own = _diagonals(operand, letters)
        views.append(view)
        letters_of.append(own)
    extents: dict[str, int] = {}
    for view, letters in zip(views, letters_of, strict=True):
        for letter, extent in zip(letters, view.shape, strict=True):
            extents[letter] = extent if extents.get(letter, 1) == 1 else extents[letter]
    for number, letters in enumerate(letters_of):
        for mode in reversed(range(len(letters))):
            if views[number].shape[mode] == 1 and extents[letters[mode]] != 1:
                # With an ellipsis, NumPy returns an array also where no mode is left.
                views[number] = views[number][(*[slice(None)] * mode, 0, ...)]
                letters_of[number] = letters_of[number][:mode] + letters_of[number][mode + 1 :]
    return views, letters_of


def _diagonals(operand: Any, letters: str) -> tuple[Any, str]:
    """A view of the diagonal of modes with the same letter, and its letters."""
    for letter in letters:
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            if operand.shape[first] != operand.shape[second]:
                raise InvalidArgument(
                    f"mode '{letter}' has extents {operand.shape[first]} and {operand.shape[second]} in one operand"
                )
            operand = operand.diagonal(0, first, second)
            letters = letters[:first] + letters[first + 1 : second] + letters[second + 1 :] + letter
    return operand, letters


def _of_one_operand(expression: str, operand: Any, options: Mapping[str, Any]) -> Any:
    """The einsum of one array by its framework: there is no product."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise InvalidArgument(f"einsum of one operand is that of its framework, and takes no {', '.join(given)}")
    name = "jax.numpy" if is_of_jax(operand) else type(operand).__module__.partition(".")[0]
    module: Any = sys.modules.get(name)
    if not hasattr(module, "einsum"):
        raise InvalidArgument(f"einsum of one operand takes an array of PyTorch, NumPy, CuPy or JAX, got a {type(operand)}")
    return module.einsum(expression, operand)


def contraction_path(modes: Sequence[str], result: str, shapes: Sequence[tuple[int, ...]]) -> list[tuple[int, int]]:
    """The pairs to contract; the result of each is appended to the operands that are left."""
    if len(modes) == 2:
        return [(0, 1)]
    try:
        opt_einsum: Any = import_module("opt_einsum")
    except ImportError:
        return _greedy_path(modes, result, shapes)
    found, _ = opt_einsum.contract_path(f"{','.join(modes)}->{result}", *shapes, shapes=True)
    path: list[tuple[int, int]] = []
    count = len(modes)
    for step in found:
        # A step may have more than two operands: its results are contracted with the others, one by one.
        first, *others = sorted(step, reverse=True)
        for index in others:
            path.append((index, first))
            count -= 1
            first = count - 1
    return path


def _greedy_path(modes: Sequence[str], result: str, shapes: Sequence[tuple[int, ...]]) -> list[tuple[int, int]]:
    extents = {letter: extent for of, shape in zip(modes, shapes, strict=True) for letter, extent in zip(of, shape)}

    def size(letters: set[str]) -> int:
        elements = 1
        for letter in letters:
            elements *= extents[letter]
        return elements

    left = [set(each) for each in modes]
    path: list[tuple[int, int]] = []
    while len(left) > 1:
        best: tuple[int, int, int, set[str]] | None = None
        for second in range(len(left)):
            for first in range(second):
                rest = set(result).union(*(each for i, each in enumerate(left) if i not in (first, second)))
                kept = (left[first] | left[second]) & rest
                growth = size(kept) - size(left[first]) - size(left[second])
                if best is None or growth < best[0]:
                    best = growth, first, second, kept
        assert best is not None
        _, first, second, kept = best
        path.append((first, second))
        del left[second], left[first]
        left.append(kept)
    return path
