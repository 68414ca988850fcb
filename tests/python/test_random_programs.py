"""Random programs of cells, loops and branches: both lowerings compute what Python computes for each thread."""

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewright import program as tp

THREADS, VALUES, NUMBERS = 32, 3, 2
MOST_ITERATIONS = 4


@pytest.fixture(autouse=True)
def _emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_DEVICE", "emulator:sm_90a")


class Drawn:
    """A program as nested tuples: statements, and expressions of integers, of f32, and of conditions."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.n = self.random.randint(0, 7)
        self.loops = 0  # around what is drawn
        self.statements = self.block(0)

    def choice(self, *weighted: tuple[float, Callable[[], Any]]) -> Any:
        return self.random.choices([each for _, each in weighted], [weight for weight, _ in weighted])[0]()

    def integer(self, depth: int = 0) -> tuple[Any, ...]:
        draw = self.random.randint
        leaves: list[tuple[float, Callable[[], Any]]] = [
            (1, lambda: ("thread",)),
            (1, lambda: ("n",)),
            (1, lambda: ("constant", draw(0, 5))),
            (1, lambda: ("cell", draw(0, NUMBERS - 1))),
            (1 if self.loops else 0, lambda: ("counter", draw(0, self.loops - 1))),
        ]
        if depth > 2:
            return self.choice(*leaves)
        return self.choice(
            *leaves,
            (1, lambda: ("%", self.integer(depth + 1), draw(1, 9))),
            (1, lambda: ("//", self.integer(depth + 1), draw(1, 5))),
            (1, lambda: ("*", self.integer(depth + 1), draw(0, 3))),
            (1, lambda: ("+", self.integer(depth + 1), self.integer(depth + 1))),
        )

    def condition(self, depth: int = 0) -> tuple[Any, ...]:
        return self.choice(
            (4, lambda: ("<", self.integer(depth + 1), self.integer(depth + 1))),
            (1, lambda: ("==", self.integer(depth + 1), ("constant", self.random.randint(0, 3)))),
            (0 if depth > 2 else 1, lambda: ("both", self.condition(depth + 1), self.condition(depth + 1))),
            (0 if depth > 2 else 1, lambda: ("value <", self.value(depth + 1), self.value(depth + 1))),
        )

    def value(self, depth: int = 0) -> tuple[Any, ...]:
        leaf = ("value", self.random.randint(0, VALUES - 1))
        if depth > 2:
            return leaf
        return self.choice(
            (3, lambda: leaf),
            (1, lambda: ("f32", float(self.random.randint(-4, 4)))),
            (1, lambda: ("to_f32", self.integer(depth + 1))),
            (1, lambda: ("choose", self.condition(depth + 1), self.value(depth + 1), self.value(depth + 1))),
            (2, lambda: (self.random.choice(["add", "subtract", "minimum"]), self.value(depth + 1), self.value(depth + 1))),
        )

    def block(self, level: int) -> list[tuple[Any, ...]]:
        draw = self.random.randint
        nests = 0 if level > 1 else 1
        return [
            self.choice(
                (4, lambda: ("set value", draw(0, VALUES - 1), self.value())),
                (2, lambda: ("set number", draw(0, NUMBERS - 1), self.integer())),
                (1, lambda: ("swap",)),
                (1, lambda: ("update", draw(0, VALUES - 1))),
                (2 * nests, lambda: self.loop(level)),
                (2 * nests, lambda: ("if", self.condition(), self.block(level + 1), self.block(level + 1))),
            )
            for _ in range(draw(1, 4))
        ]

    def loop(self, level: int) -> tuple[Any, ...]:
        bounds = self.integer(1), self.integer(1), self.random.choice([0, 0, 3]), self.random.randint(1, 3)
        self.loops += 1
        body = self.block(level + 1)
        self.loops -= 1
        return "loop", *bounds, body


@dataclasses.dataclass
class Computed:
    """The program for one thread, in Python."""

    thread: int
    n: int

    def __post_init__(self) -> None:
        self.values = [np.float32(i) for i in range(VALUES)]
        self.numbers = list(range(NUMBERS))
        self.counters: list[int] = []

    def integer(self, e: tuple[Any, ...]) -> int:
        match e:
            case ("thread",):
                return self.thread
            case ("n",):
                return self.n
            case ("constant", number):
                return int(number)
            case ("cell", i):
                return self.numbers[i]
            case ("counter", i):
                return self.counters[i]
            case ("%", a, b):
                return self.integer(a) % int(b)
            case ("//", a, b):
                return self.integer(a) // int(b)
            case ("*", a, b):
                return self.integer(a) * int(b)
            case (_, a, b):
                return self.integer(a) + self.integer(b)
        raise AssertionError(e)

    def holds(self, e: tuple[Any, ...]) -> bool:
        kind, a, b = e
        if kind == "<":
            return self.integer(a) < self.integer(b)
        if kind == "==":
            return self.integer(a) == self.integer(b)
        if kind == "both":
            return self.holds(a) and self.holds(b)
        return bool(self.value(a) < self.value(b))

    def value(self, e: tuple[Any, ...]) -> np.float32:
        match e:
            case ("value", i):
                return self.values[i]
            case ("f32", number):
                return np.float32(number)
            case ("to_f32", number):
                return np.float32(self.integer(number))
            case ("choose", condition, a, b):
                return self.value(a if self.holds(condition) else b)
            case (kind, a, b):
                x, y = self.value(a), self.value(b)
                return np.float32(x + y if kind == "add" else x - y if kind == "subtract" else min(x, y))
        raise AssertionError(e)

    def run(self, block: list[tuple[Any, ...]]) -> None:
        for statement in block:
            match statement:
                case ("set value", i, e):
                    self.values[i] = max(min(self.value(e), np.float32(1000)), np.float32(-1000))
                case ("set number", i, e):
                    self.numbers[i] = self.integer(e) % 1000
                case ("swap",):
                    self.values[0], self.values[1] = self.values[1], self.values[0]
                case ("update", i):
                    self.values[i] = np.float32(self.values[i] + 1)
                case ("loop", first, end, less, step, body):
                    for i in range(self.integer(first), min(self.integer(end), MOST_ITERATIONS) - less, step):
                        self.counters.append(i)
                        self.run(body)
                        self.counters.pop()
                case ("if", condition, body, otherwise):
                    self.run(body if self.holds(condition) else otherwise)


class Recorded:
    """The same program as a kernel."""

    def __init__(self, drawn: Drawn) -> None:
        self.k = tp.Kernel("drawn", target="sm_80", threads=THREADS)
        self.n, out = self.k.launch("n", upper=100), self.k.address("out", 4)
        self.values = [self.k.cell(tp.constant(self.k, i)) for i in range(VALUES)]
        self.numbers = [self.k.cell(i, 1000) for i in range(NUMBERS)]
        self.counters: list[tp.Number] = []
        self.run(drawn.statements)
        results = [cell.get() for cell in self.values] + [tp.to_f32(self.k, cell.get()) for cell in self.numbers]
        for i, result in enumerate(results):
            tp.store_global(self.k, out, (self.k.thread * len(results) + i) * 4, [result])
        self.program = self.k.build()

    def integer(self, e: tuple[Any, ...]) -> Any:
        match e:
            case ("thread",):
                return self.k.thread
            case ("n",):
                return self.n
            case ("constant", number):
                return number
            case ("cell", i):
                return self.numbers[i].get()
            case ("counter", i):
                return self.counters[i]
            case ("%", a, b):
                return self.integer(a) % b
            case ("//", a, b):
                return self.integer(a) // b
            case ("*", a, b):
                return self.integer(a) * b
            case (_, a, b):
                return self.integer(a) + self.integer(b)

    def condition(self, e: tuple[Any, ...]) -> tp.Number:
        kind, a, b = e
        if kind == "<":
            return tp.less(self.integer(a), self.integer(b))
        if kind == "==":
            return tp.equal(self.integer(a), self.integer(b))
        if kind == "both":
            return tp.both(self.condition(a), self.condition(b))
        return tp.less(self.k, self.value(a), self.value(b))

    def value(self, e: tuple[Any, ...]) -> tp.Value:
        match e:
            case ("value", i):
                return self.values[i].get()
            case ("f32", number):
                return tp.constant(self.k, number)
            case ("to_f32", number):
                return tp.to_f32(self.k, self.integer(number))
            case ("choose", condition, a, b):
                return tp.choose(self.k, self.condition(condition), self.value(a), self.value(b))
            case (kind, a, b):
                return getattr(tp, kind)(self.k, self.value(a), self.value(b))
        raise AssertionError(e)

    def run(self, block: list[tuple[Any, ...]]) -> None:
        k = self.k
        for statement in block:
            match statement:
                case ("set value", i, e):
                    self.values[i].set(tp.maximum(k, tp.minimum(k, self.value(e), 1000), -1000))
                case ("set number", i, e):
                    self.numbers[i].set(self.integer(e) % 1000)
                case ("swap",):
                    first, second = self.values[0].get(), self.values[1].get()
                    self.values[0].set(second)
                    self.values[1].set(first)
                case ("update", i):
                    own = tp.add(k, self.values[i].get(), 0)
                    (next_value,) = k.instruction("add.f32 $0, $0, 0f3F800000;", tp.update(own), effect="pure")
                    self.values[i].set(next_value)
                case ("loop", first, end, less, step, body):
                    last = tp.minimum(self.integer(end), MOST_ITERATIONS) - less
                    with k.loop(self.integer(first), last, step) as counter:
                        self.counters.append(counter)
                        self.run(body)
                        self.counters.pop()
                case ("if", condition, body, otherwise):
                    with k.If(self.condition(condition)):
                        self.run(body)
                    with k.Else():
                        self.run(otherwise)


@pytest.mark.parametrize("seed", range(10))
def test_lowerings_compute_what_python_computes(seed: int) -> None:
    drawn = Drawn(seed)
    program = Recorded(drawn).program
    expected = []
    for thread in range(THREADS):
        computed = Computed(thread, drawn.n)
        computed.run(drawn.statements)
        expected.append([*computed.values, *map(np.float32, computed.numbers)])
    for language in ("cuda", "mlir"):
        program.language = language
        out = np.full((THREADS, VALUES + NUMBERS), np.nan, np.float32)
        program.run(n=drawn.n, out=out)
        assert (out == np.array(expected)).all(), f"{language}, n = {drawn.n}:\n{program}"
