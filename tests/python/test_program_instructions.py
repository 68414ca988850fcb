"""Instructions of programs, each through both lowerings, whose results are equal bits, against NumPy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewright import program as tp


@pytest.fixture(autouse=True)
def _emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_DEVICE", "emulator:sm_90a")


def computed(author: Callable[[], tp.Program], **arguments: Any) -> np.ndarray:
    """The array `out` after a run of each lowering."""
    results = []
    for language in ("cuda", "mlir"):
        program = author()
        program.language = language
        own = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in arguments.items()}
        program.run(**own)
        results.append(own["out"])
    assert results[0].tobytes() == results[1].tobytes()
    return results[0]


@pytest.mark.parametrize("separator", ["\n", " "])
def test_outputs_of_several_instructions_in_one_text_do_not_take_the_registers_of_inputs(separator: str) -> None:
    def author() -> tp.Program:
        k = tp.Kernel("sequence", target="sm_80", threads=32)
        out = k.address("out", 8)
        a, b = k.cell(tp.to_b32(k, k.thread)), k.cell(tp.to_b32(k, 0))
        with k.loop(5):
            text = f"add.u32 $0, $2, 100;{separator}add.u32 $1, $2, 1;"  # $2 is read after $0 was written
            results = k.instruction(text, tp.output("b32"), tp.output("b32"), a.get(), effect="pure")
            a.set(results[0])
            (value,) = k.instruction(
                f"add.u32 $0, $0, 1;{separator}add.u32 $0, $0, $1;", tp.update(b.get()), results[1], effect="pure"
            )
            b.set(value)
        tp.store_global(k, out, k.thread * 8, [a.get(), b.get()])
        return k.build()

    thread = np.arange(32)
    expected = np.stack([thread + 500, sum(thread + 100 * i + 2 for i in range(5))], axis=1)
    assert (computed(author, out=np.zeros((32, 2), np.int32)) == expected).all()
