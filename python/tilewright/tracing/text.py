"""Writes a graph as text of the epilogue language.

The text is safe to compile: it has only names that are checked here, digits, and words of the language.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .errors import Untraceable
from .graph import ARITHMETIC, COMPARISONS, FUNCTIONS, BROADCASTS, Node, Broadcast

MAX_LENGTH = 16384  # of a text, in characters
MAX_DEPTH = 48  # of nested expressions; the language allows 128
RESERVED = frozenset(
    "A B C D acc alpha beta row column single full let convert row_index column_index inf nan".split()
    + [*FUNCTIONS, "sum", "max", "min", "absmax", "sum_of_squares"]
)

COMPARISON, SUM, PRODUCT, UNARY, PRIMARY = range(5)  # precedence, lowest first


@dataclass(frozen=True)
class Store:
    """A node that is stored, elementwise or reduced."""

    label: str
    node: int
    reduction: str | None = None
    broadcast: Broadcast = "full"


@dataclass(frozen=True)
class _Expression:
    text: str
    precedence: int = PRIMARY
    depth: int = 0

    def at(self, precedence: int) -> str:
        """The text as an operand of an operator of that precedence, in parentheses if necessary."""
        return self.text if self.precedence >= precedence else f"({self.text})"


class Labels:
    """Makes unique names for a text."""

    def __init__(self) -> None:
        self._taken = set(RESERVED)

    def take(self, name: str, is_given: bool = False) -> str:
        """`name`, or a similar name if it is no identifier of the language or is already taken.

        With `is_given`, a name that is taken is returned too.
        """
        ascii_name = "".join(c if re.fullmatch(r"[A-Za-z0-9_]", c) else f"u{ord(c):x}" for c in name)[:100]
        label = ascii_name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", ascii_name) else f"v{ascii_name}"
        if not is_given and label in self._taken:
            label += "_" if not label[-1].isdigit() else "_1"
            number = 1
            stem = label.rstrip("0123456789")
            while label in self._taken:
                number += 1
                label = f"{stem}{number}"
        self._taken.add(label)
        return label


def live_nodes(nodes: Sequence[Node], roots: Iterable[int]) -> list[int]:
    """The nodes that the roots depend on, in order."""
    needed = set(roots)
    for number in range(max(needed, default=-1), -1, -1):
        if number in needed:
            needed.update(nodes[number].inputs)
    return sorted(needed)


def render(
    nodes: Sequence[Node],
    stores: Sequence[Store],
    leaves: Mapping[str, str],
    names: Mapping[int, str],
    labels: Labels,
) -> str:
    """The text that computes and stores these nodes.

    `leaves` maps parameters to their labels; `names` has the names that the function gives to nodes.
    """
    stores = [_with_fused_reduction(nodes, store) for store in stores]
    whole: dict[int, str] = {}
    for store in stores:
        if store.reduction is None and not nodes[store.node].is_leaf:
            whole.setdefault(store.node, store.label)
    order = live_nodes(nodes, (store.node for store in stores))
    uses = Counter(store.node for store in stores)
    for number in order:
        uses.update(nodes[number].inputs)
    statements: list[str] = []
    expressions: dict[int, _Expression] = {}
    for number in order:
        node = nodes[number]
        expression = _expression(node, [expressions[each] for each in node.inputs], leaves)
        if number in whole:
            statements.append(f"{whole[number]} = {expression.text}")
        if not node.is_leaf and (number in whole or uses[number] > 1 or expression.depth >= MAX_DEPTH):
            label = whole.get(number)
            if label is None:
                label = labels.take(names.get(number, "t"))
                statements.append(f"let {label} = {expression.text}")
            expression = _Expression(label)
        expressions[number] = expression
    for store in stores:
        if store.reduction is not None:
            statements.append(f"{store.broadcast}({store.label}) = {store.reduction}({expressions[store.node].text})")
        elif whole.get(store.node) != store.label:
            statements.append(f"{store.label} = {expressions[store.node].text}")
    text = "; ".join(statements)
    if len(text) > MAX_LENGTH:
        raise Untraceable(f"the epilogue's text has {len(text)} characters, more than {MAX_LENGTH}")
    return text


def _with_fused_reduction(nodes: Sequence[Node], store: Store) -> Store:
    """Writes a reduction of abs(x) or x * x as the language's absmax or sum_of_squares."""
    node = nodes[store.node]
    if store.reduction == "max" and node.op == "abs":
        return Store(store.label, node.inputs[0], "absmax", store.broadcast)
    if store.reduction == "sum" and (node.op == "square" or (node.op == "*" and len(set(node.inputs)) == 1)):
        return Store(store.label, node.inputs[0], "sum_of_squares", store.broadcast)
    return store


def _expression(node: Node, inputs: Sequence[_Expression], leaves: Mapping[str, str]) -> _Expression:
    depth = 1 + max((each.depth for each in inputs), default=0)
    if node.op in COMPARISONS:
        left, right = (each.at(SUM) for each in inputs)
        return _Expression(f"{left} {node.op} {right}", COMPARISON, depth)
    if node.op in ARITHMETIC:
        precedence = SUM if node.op in "+-" else PRODUCT
        return _Expression(f"{inputs[0].at(precedence)} {node.op} {inputs[1].at(precedence + 1)}", precedence, depth)
    if node.op == "negate":
        return _Expression(f"-{inputs[0].at(UNARY)}", UNARY, depth)
    if node.op == "constant":
        return _Expression(node.label, UNARY if node.label.startswith("-") else PRIMARY)
    if node.op == "scalar":
        label = leaves[node.label]
        return _Expression(label if label in ("alpha", "beta") else f"${label}")
    if node.op == "full":
        return _Expression(leaves[node.label])
    if node.op in BROADCASTS:
        return _Expression(f"{node.op}({leaves[node.label]})")
    if node.is_leaf:
        return _Expression(node.op)
    listed = ([node.label] if node.op == "convert" else []) + [each.text for each in inputs]
    return _Expression(f"{node.op}({', '.join(listed)})", PRIMARY, depth)
