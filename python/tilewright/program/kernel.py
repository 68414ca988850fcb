"""The builder of kernels, with `with` statements for loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from tilewright._tilewright.program import KernelBuilder, Number, Value, elect
from tilewright.program.built import Program


class Kernel(KernelBuilder):
    """Records a kernel: declares parameters and shared memory, and appends instructions, loops and branches in the
    order of the calls. `Kernel(symbol, target="sm_90a", threads=128, cluster=(1, 1, 1))`.

    A call that is wrong raises InvalidArgument at its line. A kernel whose recording has failed in a `with` statement
    cannot be built.
    """

    def loop(self, *bounds: int | Number) -> AbstractContextManager[Number]:
        """`with k.loop(end) as i:`, `k.loop(first, end)`, `k.loop(first, end, step)`: a loop of the kernel, as range().

        Numbers and Values that change from one iteration to the next are in cells (Kernel.cell()).
        """
        if not 1 <= len(bounds) <= 3:
            raise TypeError(f"loop(): bounds must be end; first, end; or first, end, step; got {len(bounds)} numbers")
        first, end = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
        return _Loop(self, first, end, bounds[2] if len(bounds) == 3 else 1)

    @contextmanager
    def While(self, condition: Callable[[], int | Number]) -> Iterator[None]:
        """`with k.While(lambda: cell.get() < n):` records a loop that runs while the condition, of cells, is not 0.

        The condition appends no instructions: what these compute is kept in a cell that the body sets. Raises
        InvalidArgument for a condition that does, and if the body sets no cell that the condition gets.
        """
        if not callable(condition):
            raise TypeError(
                "While(): the condition changes with the cells, so that it is a function: lambda: cell.get() < n"
            )
        self.begin_while(condition)
        yield
        self.end_loop()

    @contextmanager
    def If(self, condition: int | Number) -> Iterator[None]:
        """`with k.If(condition):` records statements that the kernel executes if the condition is not 0.

        Values are compared by less(k, a, b), less_equal() and equal().
        """
        if isinstance(condition, Value):
            raise TypeError("If(): the condition must be a Number: compare Values by tp.less(k, a, b), less_equal, equal")
        self.begin_branch(int(condition) if isinstance(condition, bool) else condition)
        yield
        self.end_branch()

    @contextmanager
    def Else(self) -> Iterator[None]:
        """`with k.Else():`, directly after a `with k.If(condition):`, records what is executed otherwise."""
        self.reopen_otherwise()
        yield
        self.end_branch()

    def build(self) -> Program:
        """Ends recording and returns the program. Raises InvalidArgument if a loop or branch is open."""
        return Program(super().build())


class _Loop(AbstractContextManager[Number]):
    """A loop that Kernel.loop() begins where its `with` statement does."""

    def __init__(self, kernel: Kernel, *bounds: int | Number) -> None:
        self._kernel = kernel
        self._bounds = bounds

    def __enter__(self) -> Number:
        return self._kernel.begin_loop(*self._bounds)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._kernel.end_loop()

    def __iter__(self) -> Iterator[Number]:
        raise TypeError("a loop of the kernel is recorded once: write `with k.loop(n) as i:` instead of `for i in k.loop(n):`")


def by_one_thread(k: Kernel) -> AbstractContextManager[None]:
    """`with by_one_thread(k):` records statements that one thread of the warp executes. All lanes must get there."""
    return k.If(elect(k))
