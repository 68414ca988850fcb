"""Runs CUDA C++ and PTX kernels on the CPU and reports what is wrong with them: races, bad accesses, deadlocks.

    >>> import numpy as np
    >>> from tilewright import emulator
    >>> module = emulator.Module('''
    ... extern "C" __global__ void scale(const float* x, float* out, int n, float by) {
    ...   int i = blockIdx.x * blockDim.x + threadIdx.x;
    ...   out[i] = x[i] * by;
    ... }''')
    >>> x, out = np.ones(100, np.float32), np.empty(100, np.float32)
    >>> findings = module.launch("scale", grid=1, block=128, args=[x, emulator.Output(out), 100, 2.0])
    >>> [(f.kind, f.thread, f.line) for f in findings]
    [('out_of_bounds_global', (100, 0, 0), 4)]

No GPU is needed, but NVRTC is, unless the source is PTX. docs/emulator.md says what the findings prove, and what a
launch without findings does not.
"""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tilewright._tilewright.emulator import KernelModule as _KernelModule
from tilewright.errors import InvalidArgument
from tilewright.missing_name import refuse_unknown

Extents: TypeAlias = int | tuple[int, ...]

__all__ = ["Counts", "Extents", "Finding", "Module", "Output", "Profile"]

_STEPS = 1 << 26


@dataclasses.dataclass(frozen=True)
class Finding:
    """A fault of a kernel: the first of its kind at its source line."""

    kind: str
    """An identifier: "shared_race", "out_of_bounds_global". docs/emulator.md lists them."""
    severity: Literal["error", "warning"]
    detail: str
    """One sentence that says what happened, with addresses and the other access of a race."""
    thread: tuple[int, int, int] | None
    """threadIdx; None if no single thread is at fault."""
    cta: tuple[int, int, int] | None
    """blockIdx."""
    frames: tuple[tuple[str, int], ...]
    """File and line of the source, innermost first; then the lines that it was inlined at."""
    ptx_line: int
    ptx: str
    notes: tuple[str, ...]
    fix: str
    count: int
    """How often the launch has found it."""
    own_file: str

    @property
    def file(self) -> str | None:
        """The file of `line`."""
        return self._own_frame()[0]

    @property
    def line(self) -> int | None:
        """The innermost line in the module's own file; in another file if there is none; None for PTX."""
        return self._own_frame()[1]

    def _own_frame(self) -> tuple[str | None, int | None]:
        own = [frame for frame in self.frames if frame[0] == self.own_file]
        return own[0] if own else self.frames[0] if self.frames else (None, None)

    def __str__(self) -> str:
        where = f" at {self.file}:{self.line}" if self.frames else f" at PTX line {self.ptx_line}"
        who = f" by thread {self.thread} of CTA {self.cta}" if self.thread is not None else ""
        return f"{self.severity}: {self.kind}{where}{who}: {self.detail}"


@dataclasses.dataclass(frozen=True)
class Output:
    """An array that the kernel writes. Its contents are not passed to the kernel, so that it is a finding to read an
    element before it is written."""

    array: Any


@dataclasses.dataclass(frozen=True)
class Counts:
    """What a launch executed in total, of one kind of instruction, or at one line. docs/emulator.md explains the counts."""

    instructions: int
    active_lanes: int
    global_requests: int
    global_bytes: int
    global_sectors: int
    global_lines: int
    shared_requests: int
    shared_wavefronts: int
    bank_conflicts: int
    async_copies: int
    async_instructions: int
    bulk_loads: int
    bulk_load_bytes: int
    multicast_bytes: int
    bulk_stores: int
    bulk_store_bytes: int
    mbarrier_waits: int
    mbarrier_retries: int
    matrix_flops: int


@dataclasses.dataclass(frozen=True)
class Profile:
    """The counts of a launch, and its findings."""

    total: Counts
    instructions: dict[str, Counts]
    """By kind: "ld.global"."""
    lines: dict[tuple[str, int], Counts]
    """By file and line of the source; by "" and line of the PTX if it has no line information."""
    findings: list[Finding]


class Module:
    """The kernels of a source.

    `source` is CUDA C++ or PTX, or the path of a file with one of them: an `os.PathLike`, or a string without line feed
    and brace.
    Headers are searched in the folder of the file, in `include`, and in the CUDA toolkit. A CTA that executes more than
    `steps` warp instructions is reported as `no_progress`.

    Raises InvalidArgument for a file that cannot be read, CompileError with the compiler's log, ToolchainNotFound
    without NVRTC, and EmulationError for PTX that cannot be parsed.
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        *,
        target: str = "sm_90a",
        include: Sequence[str | os.PathLike[str]] = (),
        steps: int = _STEPS,
    ) -> None:
        if not isinstance(source, (str, os.PathLike)):
            raise TypeError(f"source must be a str or an os.PathLike, got {type(source).__name__}")
        if isinstance(include, (str, os.PathLike)) or not isinstance(include, Sequence):
            raise TypeError(f"include must be a list of folders, got {include!r:.80}")
        is_path = not isinstance(source, str) or not ("\n" in source or "{" in source)
        text = os.fspath(source)
        if not text:
            raise InvalidArgument("source is empty: it must be CUDA C++, PTX or the path of a file")
        self._own_file = text if is_path else "kernel.cu"
        self._module = _KernelModule(text, is_path, target, [os.fspath(folder) for folder in include], steps)

    @property
    def kernels(self) -> list[str]:
        """The names of the kernels."""
        return list(self._module.kernels)

    def launch(
        self,
        kernel: str = "",
        grid: Extents = 1,
        block: Extents = 1,
        args: Sequence[Any] = (),
        *,
        cluster: Extents = 1,
        shared_bytes: int = 0,
        cooperative: bool = False,
    ) -> list[Finding]:
        """Runs a kernel and returns its findings, in the order of the CTAs.

        `kernel` may be left out if there is only one. Each of `args` is a C-contiguous NumPy array, which the kernel
        reads and writes in place; an Output; a number, which must fit the parameter's type; None for a null pointer; or
        the bytes of a struct. Raises InvalidArgument for arguments and extents that the kernel does not take, and names
        the index of the parameter. A finding is returned, not raised; the launch continues after it where it can. An
        array whose elements are not of the type that the kernel's parameter points to is taken, with a RuntimeWarning.
        """
        return self._launch(kernel, grid, block, args, cluster, shared_bytes, cooperative, False)

    def profile(
        self,
        kernel: str = "",
        grid: Extents = 1,
        block: Extents = 1,
        args: Sequence[Any] = (),
        *,
        cluster: Extents = 1,
        shared_bytes: int = 0,
        cooperative: bool = False,
    ) -> Profile:
        """Runs a kernel as launch() does, and counts what it executes."""
        findings = self._launch(kernel, grid, block, args, cluster, shared_bytes, cooperative, True)
        counted = self._module.profile()
        return Profile(
            total=Counts(**counted["total"]),
            instructions={kind: Counts(**counts) for kind, counts in counted["instructions"]},
            lines={place: Counts(**counts) for place, counts in counted["lines"]},
            findings=findings,
        )

    def _launch(
        self,
        kernel: str,
        grid: Extents,
        block: Extents,
        args: Sequence[Any],
        cluster: Extents,
        shared_bytes: int,
        cooperative: bool,
        profile: bool,
    ) -> list[Finding]:
        arguments = [_argument(index, value) for index, value in enumerate(args)]
        for index, value in enumerate(args):
            given = _element_type(value)
            if wanted := self._module.wanted_element(kernel, index, given):
                of_array, of_kernel = f"args[{index}] has elements of {given!r}", f"elements of {wanted!r}"
                text = f"{of_array}, and the kernel's parameter points to {of_kernel}"
                warnings.warn(text, RuntimeWarning, stacklevel=3)
        found = self._module.launch(
            kernel,
            _extents(grid, "grid"),
            _extents(block, "block"),
            _extents(cluster, "cluster"),
            shared_bytes,
            cooperative,
            arguments,
            profile,
        )
        return [Finding(own_file=self._own_file, **finding) for finding in found]


def _extents(given: Extents, name: str) -> tuple[int, int, int]:
    extents = tuple(given) if isinstance(given, Sequence) else (given,)
    if not 1 <= len(extents) <= 3 or not all(isinstance(each, int) and 0 < each < 1 << 31 for each in extents):
        raise InvalidArgument(f"{name} must be 1 to 3 positive integers, got {given!r:.80}")
    return (*extents, 1, 1)[:3]  # type: ignore[return-value]


def _argument(index: int, value: Any) -> Any:
    initialised = not isinstance(value, Output)
    array = value if initialised else value.array
    if array is None:
        return 0
    if isinstance(array, bytes | bytearray):
        return bytes(array)
    interface = getattr(array, "__array_interface__", None)
    is_array = interface is not None and hasattr(array, "nbytes")
    # The memory that a scalar of NumPy has in its interface is freed at once.
    if not initialised and (not is_array or not hasattr(array, "__setitem__")):
        raise InvalidArgument(f"args[{index}] is an Output of {array!r:.40}, which is no array that can be written")
    if interface is None or not is_array:
        return array
    if not interface["shape"] and initialised:
        return array.item()  # a NumPy scalar, or an array without dimensions
    address, is_read_only = interface["data"]
    if interface.get("strides") is not None:
        raise InvalidArgument(f"args[{index}] is not C-contiguous: pass numpy.ascontiguousarray(x)")
    if is_read_only:
        raise InvalidArgument(f"args[{index}] is read-only: pass a copy")
    return (address, array.nbytes, initialised)


def _element_type(value: Any) -> str:
    """The type of an array's elements, as NumPy writes it; empty for other arguments."""
    array = value.array if isinstance(value, Output) else value
    interface = getattr(array, "__array_interface__", None)
    return str(interface["typestr"]) if interface is not None and interface["shape"] else ""


if not TYPE_CHECKING:  # type checkers find misspelt names themselves
    __getattr__ = refuse_unknown(__name__, __all__)
