"""GemmOperationUniversal: a GEMM with a kernel of the given design."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tilewright import _tilewright, find_kernels
from tilewright._tilewright import BLASDesignMetadata, Epilogue, Kernel, TensorAttributes
from tilewright.errors import InvalidArgument, RefusedDesign, Unsupported

from . import cutlass
from .argument_types import check_type, operation_of
from .cutlass.element import DataType
from .cutlass.swizzle import Swizzle
from .device import device_cc
from .enumeration import Enumeration
from .epilogue import EpilogueFunctorBase
from .extents import count
from .tensor import TensorDescription
from .tile import TileDescription
from .visitor import EpilogueVisitTree

if TYPE_CHECKING:
    from .arguments import GemmArguments

Extents = tuple[int, int, int]  # along m, n and k

# Instructions of tensor cores that targets before sm_80 have.
_BEFORE_SM80 = (((16, 8, 8), DataType.float16), ((8, 8, 16), DataType.int8), ((8, 8, 16), DataType.u8))
MAX_SIMT_TILE_K = 16  # where CUDA cores multiply in place of tensor cores: more would take long to compile
WGMMA_M = 64  # of every wgmma; that of mma.sync is 8 or 16
MAX_STAGES = 12  # the most stages that are tried if a tile has none


class ApiVersion(Enumeration):
    """The version of CUTLASS's API. 3.x is for tensor cores of sm_90, for which stages, warps and shape may be None."""

    v2x = 2
    v3x = 3


def api_version(arch: int, opclass: cutlass.OpClass, datatype: DataType) -> ApiVersion:
    """The version of CUTLASS's API that designs of this architecture and these instructions are written in."""
    is_wgmma = opclass is cutlass.OpClass.TensorOp and datatype is not DataType.float64 and _tilewright.has_wgmma(arch)
    return ApiVersion.v3x if is_wgmma else ApiVersion.v2x


LETTERS = {
    cutlass.RowMajor: "t",
    cutlass.ColumnMajor: "n",
    cutlass.RowMajorInterleaved32: "t32",
    cutlass.ColumnMajorInterleaved32: "n32",
}


class RuntimeModule:
    """The source of an operation's kernel."""

    def __init__(self, operation: DesignedOperation) -> None:
        self.operation = operation

    def emit(self) -> str:
        """The CUDA C++ that is compiled."""
        return self.operation.kernel.source.text

    def name(self) -> str:
        """PyCUTLASS's name of the operation."""
        return self.operation.procedural_name()


class DesignedOperation:
    """Base class of GEMMs and convolutions: types, tile and epilogue, of which kernels are made."""

    kind = "gemm"  # as names of kernels have it

    def __init__(
        self,
        arch: int,
        tile_description: TileDescription,
        A: TensorDescription,
        B: TensorDescription,
        C: TensorDescription,
        epilogue_functor: EpilogueFunctorBase | EpilogueVisitTree,
        swizzling_functor: type[Swizzle] | Swizzle,
    ) -> None:
        self.arch = count(arch, "arch")
        check_type("tile_description", tile_description, TileDescription)
        for name, tensor in (("A", A), ("B", B), ("C", C)):
            check_type(name, tensor, TensorDescription)
        functors = (EpilogueFunctorBase, EpilogueVisitTree)
        check_type("epilogue_functor", epilogue_functor, functors, "an epilogue such as LinearCombination(...)")
        is_class = isinstance(swizzling_functor, type) and issubclass(swizzling_functor, Swizzle)
        if not is_class:
            check_type("swizzling_functor", swizzling_functor, Swizzle, "a swizzle such as cutlass.IdentitySwizzle1")
        self.tile_description = tile_description
        self.A, self.B, self.C = A, B, C
        self.epilogue_functor = epilogue_functor
        self.swizzling_functor = swizzling_functor() if isinstance(swizzling_functor, type) else swizzling_functor
        self.rt_module = RuntimeModule(self)
        self._kernels: dict[tuple[str, ...], Kernel] = {}

    @property
    def kernel(self) -> Kernel:
        """The kernel for the current device."""
        raise NotImplementedError

    def layout_name(self) -> str:
        """The layouts of the operands, as names of kernels have them."""
        raise NotImplementedError

    @property
    def epilogue_type(self) -> Any:
        """Makes the epilogue's arguments: epilogue_type(alpha, beta), or for a visitor epilogue_type(name=value)."""
        return self.epilogue_functor.epilogue_type

    @property
    def api(self) -> ApiVersion:
        math = self.tile_description.math_instruction
        return api_version(self.arch, math.opcode_class, math.element_a)

    @property
    def math(self) -> str:
        """Tilewright's name of the math operation."""
        return self.tile_description.math_instruction.math_of(self.A.element)

    @property
    def plain_epilogue(self) -> Epilogue:
        """A linear combination in the compute type that the accumulator needs."""
        is_f64 = self.tile_description.math_instruction.element_accumulator is DataType.float64
        return Epilogue("linear_combination", "f64" if is_f64 else "f32")

    def free(self) -> None:
        """Has no effect: kernels are released when nothing refers to them."""

    def is_complex(self) -> bool:
        return False

    def is_planar_complex(self) -> bool:
        return False

    def accumulator_type(self) -> DataType:
        return self.tile_description.math_instruction.element_accumulator

    def kind_name(self) -> str:
        """The kind of operation, as names have it."""
        return self.kind

    def core_name(self) -> str:
        """The accumulator's letter and the shape of the tensor core instruction: "sgemm", "h16x8x16gemm"."""
        math = self.tile_description.math_instruction
        letter = {"f16": "h", "f32": "s", "f64": "d", "s32": "i"}.get(self.accumulator_type().value, "x")
        if math.opcode_class is cutlass.OpClass.Simt:
            return f"{letter}{self.kind_name()}"
        shape = "Default" if math.instruction_shape is None else "x".join(map(str, math.instruction_shape))
        is_other = math.element_a not in (self.A.element, self.accumulator_type())
        return f"{letter}{shape}{math.element_a.value if is_other else ''}{self.kind_name()}"

    def extended_name(self) -> str:
        """The core name, with the types of A and C if they differ from the accumulator's."""
        accumulator = self.accumulator_type()
        name = self.core_name()
        if self.C.element is not accumulator:
            name = f"{self.C.element.value}_{name}"
        return name if self.A.element is accumulator else f"{name}_{self.A.element.value}"

    def procedural_name(self) -> str:
        """The name that PyCUTLASS of CUTLASS 3.0 gives: architecture, class, types, tile, layouts, the alignment of A. It has
        no epilogue, warps and swizzle, so that it is not unique; `kernel.name` is."""
        parts = [f"cutlass_sm{self.arch}", self._op_class_name(), self.extended_name()]
        return "_".join([*parts, self._tile_name(), self.layout_name(), f"align{self.A.alignment}"])

    def _op_class_name(self) -> str:
        return {"simt": "simt", "tensor_op": "tensorop"}[self.tile_description.math_instruction.opcode_class.value]

    def _tile_name(self) -> str:
        """The tile as names have it."""
        return self.tile_description.procedural_name()

    def configuration_name(self) -> str:
        return self.procedural_name()

    def _check_elements(self) -> None:
        """Raises InvalidArgument if the types of the epilogue, the operands and the math instruction do not fit."""
        math = self.tile_description.math_instruction
        math.check_operand("A", self.A.element)
        math.check_operand("B", self.B.element)
        functor = self.epilogue_functor
        if functor.element_output is not self.C.element:
            raise InvalidArgument(
                f"the epilogue's output is {functor.element_output.name}, but C and D are {self.C.element.name}"
            )
        is_given = isinstance(functor, EpilogueVisitTree) or functor.is_accumulator_given
        if is_given and functor.element_accumulator is not math.element_accumulator:
            raise InvalidArgument(
                f"the epilogue's accumulator is {functor.element_accumulator.name}, but the math instruction "
                f"accumulates in {math.element_accumulator.name}"
            )
        if math.opcode_class is cutlass.OpClass.TensorOp and self.arch < 80:
            shape, element = math.instruction_shape, math.element_a
            if (shape, element) not in _BEFORE_SM80:
                raise InvalidArgument(
                    f"arch={self.arch} has no instruction_shape {None if shape is None else [*shape]} of {element.name} on "
                    "tensor cores: arch=80 may have it"
                )
        if self.arch > device_cc():
            raise InvalidArgument(f"arch={self.arch}, but the device has compute capability {device_cc()}")

    def _of_first_design(self, make: Callable[[BLASDesignMetadata], Kernel], split_k: int) -> Kernel:
        """The kernel of the first design that is possible. If there is none, raises the error of the first design."""
        tile = self.tile_description
        math = tile.math_instruction
        is_chosen = self.api is ApiVersion.v3x and math.instruction_shape is None
        written = {
            "instruction_shape": math.instruction_shape,
            "stages": tile.stages,
            "warp_count": tile.warp_count,
        }
        missing = [name for name, value in written.items() if value is None]
        if missing and not is_chosen:
            raise InvalidArgument(
                f"{', '.join(missing)} may be None on tensor cores of arch=90 only, where instruction_shape is None, "
                f"got arch={self.arch}, {math.opcode_class.name} and instruction_shape={math.instruction_shape}"
            )
        refused: list[InvalidArgument] = []
        for tile_shape, stages, warp_count, instruction_shape, options in self._designs(is_chosen, split_k, refused):
            design = BLASDesignMetadata(
                tile_shape,
                tile.cluster_shape,
                stages=stages,
                warp_count=warp_count,
                instruction_shape=instruction_shape,
                raster_width=self.swizzling_functor.raster_width,
                raster_along=self.swizzling_functor.raster_along,
                split_k=split_k,
                **options,
            )
            try:
                return make(design)
            except InvalidArgument as error:
                refused.append(error)
        raise self._in_callers_words(refused[0])

    def _in_callers_words(self, error: InvalidArgument) -> InvalidArgument:
        """The refusal of a design by the family that the description means, in the words of descriptions. Other families
        have designs that no description means."""
        if not isinstance(error, RefusedDesign) or not error.reasons:
            return error
        tile = self.tile_description
        math = tile.math_instruction
        shape = math.instruction_shape
        if math.opcode_class is cutlass.OpClass.Simt:
            meant = "simt_gemm"
        else:
            is_wgmma = self.arch >= 90 and (shape is None or shape[0] == WGMMA_M)
            meant = "sm90_gemm" if is_wgmma else "sm80_gemm"
        reason = error.reasons.get(meant)
        if reason is None:
            return error
        for pattern, words in _WORDS:
            reason = pattern.sub(words, reason)
        given = {
            "threadblock_shape": [*tile.threadblock_shape],
            "stages": tile.stages,
            "warp_count": None if tile.warp_count is None else [*tile.warp_count],
            "instruction_shape": None if shape is None else [*shape],
        }
        if tile.cluster_shape != (1, 1, 1):
            given["cluster_shape"] = [*tile.cluster_shape]
        described = ", ".join(f"{name}={value}" for name, value in given.items())
        message = f"no kernel has this design: {meant}: {reason} (arch={self.arch}, {described})"
        return RefusedDesign(message, error.codes, error.reasons)

    def _designs(
        self, is_chosen: bool, split_k: int, refused: list[InvalidArgument]
    ) -> Iterator[tuple[Extents, int, Extents, Extents, dict[str, Any]]]:
        """Tile, stages, warps, instruction, and the other parameters of BLASDesignMetadata: as they are given or, if
        `is_chosen`, candidates on tensor cores of sm_90. `refused` has the errors of the designs before. Where a warp
        tile of mma.sync needs more registers than a thread has, as 64 x 64 elements do if operands go through registers
        or K is split, there are twice as many warps. If these lack registers too and K is split, the tile is half as
        large instead. mma.sync and wgmma read 8-bit operands along K only. If A or B is not K-major, wgmma multiplies
        copies where the device has it, else CUDA cores multiply."""
        tile = self.tile_description
        shape = tile.threadblock_shape
        math = tile.math_instruction
        tensor_op = {"op_class": math.opcode_class.value}
        repack = {**tensor_op, "repacks_operands": True}
        is_k_major = self.A.layout is not cutlass.ColumnMajor and self.B.layout is not cutlass.RowMajor
        is_copied = math.opcode_class is cutlass.OpClass.TensorOp and self.A.element.bits == 8 and not is_k_major
        if is_chosen:
            for design in self._hopper_designs(tile.warp_count):
                yield shape, *design, tensor_op
            if is_copied:
                for design in self._hopper_designs(tile.warp_count):
                    yield shape, *design, repack
            return
        assert tile.stages is not None and tile.warp_count is not None and math.shape_of_design is not None
        yield shape, tile.stages, tile.warp_count, math.shape_of_design, tensor_op
        is_mma = math.opcode_class is cutlass.OpClass.TensorOp and math.shape_of_design[0] != WGMMA_M
        if is_mma and lacks_resources(refused[0]):
            more_warps = _twice_as_many(tile.warp_count, shape)
            yield shape, tile.stages, more_warps, math.shape_of_design, tensor_op
            if split_k > 1 and lacks_resources(refused[-1]):
                yield _half_as_large(shape), tile.stages, tile.warp_count, math.shape_of_design, tensor_op
        if is_copied and self.kind == "gemm":
            if _tilewright.has_wgmma(device_cc()):
                for design in self._hopper_designs(None):
                    yield shape, *design, repack
            m, n, k = shape
            yield (m, n, min(k, MAX_SIMT_TILE_K)), tile.stages, tile.warp_count, (1, 1, 1), {"op_class": "simt"}

    def _hopper_designs(self, given_warp_count: Extents | None) -> Iterator[tuple[int, Extents, Extents]]:
        """Candidates for stages, warps and instruction on tensor cores of sm_90, best first. A column-major D is
        computed as its transpose, so that warpgroups are along its columns."""
        tile = self.tile_description
        m, n, _ = tile.threadblock_shape
        is_transposed = self.C.layout is cutlass.ColumnMajor
        rows, columns = (n, m) if is_transposed else (m, n)
        instruction_shape = (64, columns, 256 // self.A.element.bits)
        groups = [count for count in (2, 1, 3) if rows % (64 * count) == 0] or [1]
        warp_counts = [(1, 4 * count, 1) if is_transposed else (4 * count, 1, 1) for count in groups]
        most = MAX_STAGES if tile.stages is None else tile.stages
        least = 2 if tile.stages is None else tile.stages
        for warp_count in warp_counts if given_warp_count is None else [given_warp_count]:
            for stages in range(most, least - 1, -1):
                yield stages, warp_count, instruction_shape


class GemmOperationUniversal(DesignedOperation):
    """D = epilogue(A * B, C), computed for any extents by a kernel of the given tile.

    arch               the architecture of the design; kernels for 80 run on every newer device
    C                  describes both C and D
    swizzling_functor  the raster order
    direct_store       has no effect: Tilewright's kernels choose how D is stored
    visitor            may be True if epilogue_functor is an EpilogueVisitTree; is not needed

    Raises InvalidArgument, with the numbers, for a design that no kernel has, before anything is compiled.
    """

    def __init__(
        self,
        arch: int,
        tile_description: TileDescription,
        A: TensorDescription,
        B: TensorDescription,
        C: TensorDescription,
        epilogue_functor: EpilogueFunctorBase | EpilogueVisitTree,
        swizzling_functor: type[Swizzle] | Swizzle = cutlass.IdentitySwizzle1,
        visitor: bool = False,
        *,
        direct_store: bool = False,
    ) -> None:
        super().__init__(arch, tile_description, A, B, C, epilogue_functor, swizzling_functor)
        self.direct_store = direct_store
        self.visitor = isinstance(epilogue_functor, EpilogueVisitTree)
        self._check_types(is_visitor_expected=visitor)
        self.kernel  # noqa: B018  raises what is wrong with the design

    @property
    def kernel(self) -> Kernel:
        """The kernel for the current device. For a visitor, the kernel of this design with a linear combination."""
        functor = self.epilogue_functor
        if isinstance(functor, EpilogueVisitTree):
            return self.kernel_of(self.plain_epilogue)
        return self.kernel_of(functor.graph(functor.epilogue_type(1.0, 0.0)))

    def kernel_of(self, epilogue: Epilogue, pointer_arrays: str = "", split_k: int = 1) -> Kernel:
        """The kernel with an epilogue that reads no other tensors than C. `pointer_arrays` has the letters of the
        operands whose matrices lie at the addresses in an array; `split_k` CTAs share the K of each tile. Raises
        InvalidArgument."""
        key = (_tilewright.device_target(), epilogue.signature, pointer_arrays, str(split_k))
        if key not in self._kernels:
            self._kernels[key] = self._make_kernel(epilogue, pointer_arrays, split_k)
        return self._kernels[key]

    def kernel_for(self, arguments: _tilewright.GemmArguments, split_k: int = 1) -> Kernel:
        """The kernel of this design for arguments whose alignments or types are not those of the descriptions, as those
        of an epilogue's tensors. Raises InvalidArgument."""
        kernel = self._of_first_design(lambda design: _tilewright.make_kernel(arguments, design), split_k)
        return self._kernels.setdefault((_tilewright.device_target(), kernel.name), kernel)

    def closest_kernel(self, arguments: _tilewright.GemmArguments, split_k: int = 1) -> Kernel:
        """The kernel for these arguments whose design is most similar to this operation's, with K split among
        `split_k` CTAs if there is one. Raises Unsupported."""
        found = [*find_kernels(arguments)]
        if not found:
            raise Unsupported(str(_tilewright.explain(arguments)))
        wanted = self.kernel.metadata.design
        best: Kernel = min(found, key=lambda kernel: _differences(kernel.metadata.design, wanted, split_k))
        return best

    def run(self, arguments: GemmArguments, stream: Any = None) -> int:
        """Enqueues the launch on `stream`, by default the current stream of the arrays' framework.

        Compiles the kernel if necessary. Returns 0, which is CUDA_SUCCESS; failures are raised.
        """
        if operation_of(arguments, "GemmArguments") is not self:
            raise InvalidArgument("these are the arguments of another operation")
        arguments.launch(stream)
        return 0

    def layout_name(self) -> str:
        """A letter for A and for B: t for row-major, n for column-major, t32 and n32 if they are interleaved."""
        return "".join(LETTERS[each.layout] for each in (self.A, self.B))

    def procedural_name(self) -> str:
        """PyCUTLASS's name. For tensor cores of sm_90 it has the types of all operands, the cluster and three layouts."""
        if self.api is not ApiVersion.v3x or self.arch < 90:
            return super().procedural_name()
        tile = self.tile_description
        elements = (self.A.element, self.B.element, self.accumulator_type(), self.C.element)
        types = "_".join([self.core_name(), *(each.value for each in elements)])
        shape, cluster = ("x".join(map(str, extents)) for extents in (tile.threadblock_shape, tile.cluster_shape))
        layouts = "".join(LETTERS[each.layout] for each in (self.A, self.B, self.C))
        stages = 0 if tile.stages is None else tile.stages
        parts = [f"cutlass3x_sm{self.arch}", self._op_class_name(), types, shape, cluster, str(stages)]
        return "_".join([*parts, layouts, f"align{self.A.alignment}"])

    def _check_types(self, is_visitor_expected: bool) -> None:
        self._check_elements()
        functor = self.epilogue_functor
        if is_visitor_expected and not self.visitor:
            raise InvalidArgument(f"visitor=True needs an EpilogueVisitTree, got {type(functor).__name__}")
        for role, given, expected in (
            ("A", self.A, cutlass.ColumnMajorInterleaved32),
            ("B", self.B, cutlass.RowMajorInterleaved32),
            ("C", self.C, cutlass.ColumnMajorInterleaved32),
        ):
            if given.layout.is_interleaved and given.layout is not expected:
                raise Unsupported(f"{role} is {given.layout.name}: as in CUTLASS, it must be {expected.name}")
        if self.swizzling_functor.is_of_strided_dgrad:
            raise InvalidArgument(f"{type(self.swizzling_functor).__name__} is for convolutions")

    def _make_kernel(self, epilogue: Epilogue, pointer_arrays: str, split_k: int, groups: str | None = None) -> Kernel:
        a, b, c, d = (
            description.attributes_of(role in pointer_arrays)
            for role, description in (("A", self.A), ("B", self.B), ("C", self.C), ("D", self.C))
        )
        if groups is not None:  # the lines of D end where groups do, which may be anywhere
            d = TensorAttributes(self.C.element.kind, self.C.layout.major, 1, True)
        accumulator = self.accumulator_type().kind
        return self._of_first_design(
            lambda design: _tilewright.make_kernel(
                a, b, d, accumulator, design, math=self.math, epilogue=epilogue, C=c, groups=groups
            ),
            split_k,
        )


# Each pattern matches what a family says about a design; its replacement says it in the words of TileDescription and
# MathInstruction.
_WORDS = [
    (re.compile(pattern), words)
    for pattern, words in (
        (r"\btile ([mnk]) (\d+)", r"threadblock_shape along \1, \2,"),
        (r"\bwarp count ([mnk])\b", r"warp_count along \1,"),
        (r"\bwarp count\b", "warp_count"),
        (r"\bthe instruction of this tile is\b", "instruction_shape for this threadblock_shape must be"),
        (r"\bno instruction (\d)", r"no instruction_shape \1"),
        (r"\bthe instruction's\b", "instruction_shape's"),
        (r"\ba cluster has\b", "a cluster_shape has"),
    )
]


def lacks_resources(error: InvalidArgument) -> bool:
    """Whether a design is refused because it needs more registers or shared memory than there is."""
    return isinstance(error, RefusedDesign) and "resources" in error.codes.values()


def _twice_as_many(warps: Extents, tile: Extents) -> Extents:
    """Twice as many warps, along the longer extent of a warp's tile."""
    of_m, of_n, of_k = warps
    return (2 * of_m, of_n, of_k) if tile[0] // of_m >= tile[1] // of_n else (of_m, 2 * of_n, of_k)


def _half_as_large(tile: Extents) -> Extents:
    """The tile with half of the longer extent along m and n."""
    m, n, k = tile
    return (m // 2, n, k) if m >= n else (m, n // 2, k)


def _differences(design: BLASDesignMetadata, wanted: BLASDesignMetadata, split_k: int) -> tuple[bool, ...]:
    """Which parts of a design differ from `wanted` with this `split_k`, the most important part first."""

    def differ(*names: str) -> list[bool]:
        return [getattr(design, name) != getattr(wanted, name) for name in names]

    return (
        *differ("op_class", "instruction_shape"),
        design.split_k != split_k,
        *differ("tile_shape", "warp_count", "stages", "cluster_shape", "raster_width", "raster_along"),
    )
