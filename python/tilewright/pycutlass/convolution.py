"""Conv2dOperation and its arguments: convolutions and their gradients with one design."""

from __future__ import annotations

import re
from typing import Any

from tilewright import _tilewright
from tilewright._tilewright import BLASDesignMetadata, Epilogue, Kernel, PreparedCall, ShapeOnly, TensorAttributes
from tilewright.errors import InvalidArgument, Unsupported

from . import cutlass
from .argument_types import check_type, operation_of
from .array import View, current_stream, memory_of, packed, product_of
from .arguments import PartialSums, allocate
from .cutlass.conv import Conv2dProblemSize, IteratorAlgorithm, Mode, Operator, SplitKMode, operands_of
from .cutlass.conv import implicit_gemm_problem_size
from .cutlass.swizzle import Swizzle
from .epilogue import EpilogueFunctorBase, OutputOp
from .kinds import OperationKind, StrideSupport
from .operation import DesignedOperation, lacks_resources
from .output_arguments import OutputArguments, Outputs
from .tensor import CHANNELS_OF_BLOCK, TensorDescription
from .tile import TileDescription
from .visitor import EpilogueVisitTree

MOST_TAPS_OF_OPTIMIZED = 32  # along each axis
_PARAMETER = {"activation": "x", "filter": "w", "output": "y"}  # of tilewright.Conv2dArguments


class Conv2dOperation(DesignedOperation):
    """D = epilogue(convolution of A and B, C), computed for any extents by a kernel of the given tile.

    conv_kind           ConvKind.fprop: A is the activation, B the filter, C and D the output; dgrad: A is the gradient
                        of the output, B the filter, C and D the gradient of the activation; wgrad: A is the gradient of
                        the output, B the activation, C and D the gradient of the filter
    iterator_algorithm  restricts the problems, as in CUTLASS; all algorithms have the same kernels
    arch                the architecture of the design; kernels for 80 run on every newer device
    A, B, C             TensorDescriptions of layout TensorNHWC; C describes both C and D. In fprop of 8-bit integers A
                        may be TensorNC32HW32 with B of TensorC32RSK32, and C TensorNC32HW32
    stride_support      StrideSupport.Unity refuses strides other than 1 in dgrad
    swizzling_functor   the raster order; StridedDgrad... are for dgrad with StrideSupport.Strided

    Raises InvalidArgument, with the numbers, for a design that no kernel has, before anything is compiled, and
    Unsupported for an EpilogueVisitTree, as PyCUTLASS has none here.
    """

    operation_kind = OperationKind.Conv2d

    def __init__(
        self,
        conv_kind: Operator,
        iterator_algorithm: IteratorAlgorithm,
        arch: int,
        tile_description: TileDescription,
        A: TensorDescription,
        B: TensorDescription,
        C: TensorDescription,
        stride_support: StrideSupport,
        epilogue_functor: EpilogueFunctorBase,
        swizzling_functor: type[Swizzle] | Swizzle = cutlass.IdentitySwizzle1,
    ) -> None:
        for name, value, kind in (
            ("conv_kind", conv_kind, Operator),
            ("iterator_algorithm", iterator_algorithm, IteratorAlgorithm),
            ("stride_support", stride_support, StrideSupport),
        ):
            check_type(name, value, kind)
        super().__init__(arch, tile_description, A, B, C, epilogue_functor, swizzling_functor)
        self.conv_kind = conv_kind
        self.iterator_algorithm = iterator_algorithm
        self.stride_support = stride_support
        self.visitor = False
        self.kind = f"{conv_kind.name}_{iterator_algorithm.name}"
        self._check_descriptions()
        self.kernel  # noqa: B018  raises what is wrong with the design

    @property
    def kernel(self) -> Kernel:
        """The kernel for the current device and a filter of 3 x 3, whose channels are as aligned as the descriptions
        say."""
        functor = self.epilogue_functor
        assert isinstance(functor, EpilogueFunctorBase)
        epilogue = functor.graph(functor.epilogue_type(1.0, 0.0))
        key = (_tilewright.device_target(), epilogue.signature)
        if key not in self._kernels:
            self._gemm_kernel()
            self._kernels[key] = self._kernel_of_design(self._typical_arguments(epilogue), 1)
        return self._kernels[key]

    def kernel_for(self, arguments: _tilewright.Conv2dArguments, split_k: int = 1) -> Kernel:
        """A kernel for the arguments, of this design if it has one. At most `split_k` CTAs share the K of each tile."""
        tiles_of_k = -(-max(1, arguments.k) // self.tile_description.threadblock_shape[2])
        split_k = min(split_k, tiles_of_k)
        own = self.kernel
        is_as_described = own.metadata.design.tile_shape == self.tile_description.threadblock_shape
        if split_k == 1 and is_as_described and own.supports(arguments):
            return own
        kernel = self._kernel_of_design(arguments, split_k)
        return self._kernels.setdefault((_tilewright.device_target(), kernel.name), kernel)

    def run(self, arguments: Conv2dArguments, stream: Any = None) -> int:
        """Enqueues the launch on `stream`, by default the current stream of the arrays' framework.

        Compiles the kernel if necessary. Returns 0, which is CUDA_SUCCESS; failures are raised.
        """
        if operation_of(arguments, "Conv2dArguments") is not self:
            raise InvalidArgument("these are the arguments of another operation")
        arguments.launch(stream)
        return 0

    def layout_name(self) -> str:
        """The layout of A, as names of kernels have it: "nhwc"."""
        return str(self.A.layout.value)

    def procedural_name(self) -> str:
        """PyCUTLASS's name: architecture, class, types, kind, algorithm, tile, layout, alignment."""
        name = super().procedural_name()
        return name.replace("_align", "_unity_stride_align") if self.stride_support is StrideSupport.Unity else name

    def _tile_name(self) -> str:
        m, n, k = self.tile_description.threadblock_shape
        return f"{m}x{n}_{k}x{self.tile_description.stages or 0}"

    def _gemm_kernel(self) -> Kernel:
        """The kernel of this design for a GEMM with the layouts of the convolution, and operands that tensor cores can
        load. Raises InvalidArgument if no kernel has the design."""
        major_a = "column" if self.conv_kind is Operator.wgrad else "row"
        major_b = "column" if self.conv_kind is Operator.fprop else "row"
        if self.B.layout.has_blocks:
            major_b = "row_interleaved_32"
        a, b, d = (
            TensorAttributes(each.element.kind, major, max(each.alignment, 32 // each.element.bits), False)
            for each, major in ((self.A, major_a), (self.B, major_b), (self.C, "row"))
        )
        accumulator = self.accumulator_type().kind
        return self._of_first_design(
            lambda design: _tilewright.make_kernel(
                a, b, d, accumulator, design, math=self.math, epilogue=self.plain_epilogue
            ),
            1,
        )

    def _kernel_of_design(self, arguments: _tilewright.Conv2dArguments, split_k: int) -> Kernel:
        """The kernel of this design; or, because a convolution needs more registers than a GEMM, that with more warps,
        or the best one with the same math instruction, or the best one. K is split among at most `split_k` CTAs."""
        design = self._gemm_kernel().metadata.design
        m, n, k = design.warp_count
        for warp_count in ((m, n, k), (m, 2 * n, k), (2 * m, n, k)):
            try:
                return _tilewright.make_kernel(arguments, _changed(design, warp_count, split_k))
            except InvalidArgument as error:
                if not lacks_resources(error):
                    break
        found: list[Kernel] = [*_tilewright.find_kernels(arguments)]
        if not found:
            raise Unsupported(str(_tilewright.explain(arguments)))
        math = (design.op_class, design.instruction_shape)
        similar = [
            kernel
            for kernel in found
            if (kernel.metadata.design.op_class, kernel.metadata.design.instruction_shape) == math
        ]
        best = (similar or found)[0]  # they are ranked by predicted time
        split = next((each for each in similar or found if each.metadata.design.split_k == split_k), None)
        if split is not None:
            return split
        try:
            return _tilewright.make_kernel(arguments, _changed(best.metadata.design, None, split_k))
        except InvalidArgument:
            return best if split_k == 1 else self._kernel_of_design(arguments, split_k // 2)

    def _typical_arguments(self, epilogue: Epilogue) -> _tilewright.Conv2dArguments:
        """Tensors without memory whose channels have the alignments of the descriptions, and no larger ones."""
        is_fprop = self.conv_kind is Operator.fprop
        of_c = [self.A, self.B] if is_fprop else [self.B, self.C]  # the descriptions whose contiguous mode are channels
        of_k = [self.C] if is_fprop else [self.A]
        channels, filters = (9 * min(each.alignment for each in some) for some in (of_c, of_k))
        is_strided = self.conv_kind is Operator.dgrad and self.stride_support is StrideSupport.Strided
        extent = 5 if is_strided else 9
        shapes: dict[str, tuple[int, ...]] = {
            "x": (1, 9, 9, channels),
            "w": (filters, 3, 3, channels),
            "y": (1, extent, extent, filters),
        }
        if self.A.layout.has_blocks:
            filters = 2 * CHANNELS_OF_BLOCK
            shapes["x"], shapes["w"] = (1, 2, 9, 9, CHANNELS_OF_BLOCK), (2, 3, 3, filters, CHANNELS_OF_BLOCK)
            shapes["y"] = (1, extent, extent, filters)
        if self.C.layout.has_blocks:
            shapes["w"] = (*shapes["w"][:3], filters, CHANNELS_OF_BLOCK)
            shapes["y"] = (1, filters // CHANNELS_OF_BLOCK, extent, extent, CHANNELS_OF_BLOCK)
        kinds = {
            _PARAMETER[name]: description.element.kind
            for name, description in zip(operands_of(self.conv_kind), (self.A, self.B, self.C), strict=True)
        }
        tensors: dict[str, Any] = {name: ShapeOnly(shape, kinds[name]) for name, shape in shapes.items()}
        return _tilewright.Conv2dArguments(
            **tensors,
            accumulator_type=self.accumulator_type().kind,
            epilogue=epilogue,
            kind=self.conv_kind.name,
            stride=2 if is_strided else 1,
            padding=1,
            layout="nhwc",
            math=self.math,
        )

    def _check_descriptions(self) -> None:
        if isinstance(self.epilogue_functor, EpilogueVisitTree):
            raise Unsupported("Conv2dOperation takes no EpilogueVisitTree: use tilewright.conv2d")
        self._check_elements()
        self._check_layouts()
        algorithm = self.iterator_algorithm
        if algorithm in (IteratorAlgorithm.fixed_channels, IteratorAlgorithm.few_channels):
            if self.conv_kind is not Operator.fprop:
                raise InvalidArgument(f"IteratorAlgorithm.{algorithm.name} is for fprop, got {self.conv_kind.name}")
        is_strided_dgrad = self.conv_kind is Operator.dgrad and self.stride_support is StrideSupport.Strided
        if self.swizzling_functor.is_of_strided_dgrad and not is_strided_dgrad:
            raise InvalidArgument(
                f"{type(self.swizzling_functor).__name__} is for dgrad with StrideSupport.Strided, got "
                f"{self.conv_kind.name} with StrideSupport.{self.stride_support.name}"
            )

    def _check_layouts(self) -> None:
        has_blocks = self.A.layout.has_blocks or self.B.layout.has_blocks or self.C.layout.has_blocks
        blocked = {"A": cutlass.TensorNC32HW32, "B": cutlass.TensorC32RSK32, "C": cutlass.TensorNC32HW32}
        for role, description in (("A", self.A), ("B", self.B), ("C", self.C)):
            is_plain = description.layout is cutlass.TensorNHWC
            if not is_plain and (not has_blocks or description.layout is not blocked[role]):
                wanted = f"TensorNHWC or {blocked[role].name}" if has_blocks else "TensorNHWC"
                raise InvalidArgument(f"{role} is {description.layout.name}: a convolution takes {wanted}")
            if has_blocks and role != "C" and (is_plain or description.element.bits != 8):
                raise InvalidArgument(
                    f"convolutions of TensorNC32HW32 have 8-bit integers, A of TensorNC32HW32 and B of TensorC32RSK32; "
                    f"{role} is {description.element.name} and {description.layout.name}"
                )
        if has_blocks and self.conv_kind is not Operator.fprop:
            raise InvalidArgument(f"TensorNC32HW32 is for fprop, got {self.conv_kind.name}")


def _after_d(positional: tuple[Any, ...], named: dict[str, Any]) -> tuple[OutputOp | None, SplitKMode, int | None]:
    """output_op, split_k_mode and split_k_slices. By position there may be all three in this order, as PyCUTLASS's
    documentation has them, or split_k_mode alone, as its class has it."""
    names = ["split_k_mode"] if positional and isinstance(positional[0], SplitKMode) else [*named]
    if len(positional) > len(names):
        raise InvalidArgument(f"after D there may be {', '.join(names)}, got {len(positional)} arguments")
    for name, value in zip(names, positional, strict=False):
        if named[name] is not None:
            raise InvalidArgument(f"{name} is given twice, by position after D and by name")
        named[name] = value
    mode = named["split_k_mode"]
    return named["output_op"], SplitKMode.Serial if mode is None else mode, named["split_k_slices"]


class Conv2dArguments(OutputArguments):
    """The arguments of a Conv2dOperation: extents, arrays and scalars.

    A, B, C, D      NumPy, PyTorch or CuPy arrays, or CUdeviceptr, as in GemmArguments: only their memory matters, which
                    is packed NHWC (KRSC for filters), or as the descriptions of the operation say
    C               may have one number for each channel of D, which is then a bias, in wgrad too; may be None if beta is 0
    split_k_mode    SplitKMode.Serial: at most split_k_slices CTAs share the K of each tile in one launch, fewer where
                    the kernel or the device cannot have as many. Parallel: partial sums of at most split_k_slices parts
                    are written to memory and reduced. The parts of fprop are rows of the filter, those of dgrad
                    filters, those of wgrad images, or rows of a single image. With TensorNC32HW32 Parallel is Serial
    output_op       operation.epilogue_type(alpha, beta); the default is alpha = 1 and beta = 0
    bias            whether C is a vector

    After D, output_op, split_k_mode and split_k_slices may be given by position in this order, or split_k_mode alone.

    Raises InvalidArgument, with the numbers, for what GemmArguments refuses and for channels that are no multiple of an
    alignment: fprop has C of A and B and K of D; dgrad has K of A and C of B and D; wgrad has K of A and C of B. A D of
    wgrad that is less aligned than the description says is stored in smaller vectors. Also refused are problems that
    CUTLASS's iterators do not have: fixed_channels if C is not the alignment of A; optimized with filters of more than
    32 taps along an axis; and strides in dgrad if the operation has StrideSupport.Unity.
    """

    operation: Conv2dOperation

    def __init__(
        self,
        operation: Conv2dOperation,
        problem_size: Conv2dProblemSize,
        A: Any,
        B: Any,
        C: Any,
        D: Any,
        *output_and_split: OutputOp | SplitKMode | int | None,
        output_op: OutputOp | None = None,
        split_k_mode: SplitKMode | None = None,
        split_k_slices: int | None = None,
        bias: bool = False,
    ) -> None:
        named = {"output_op": output_op, "split_k_mode": split_k_mode, "split_k_slices": split_k_slices}
        output_op, split_k_mode, split_k_slices = _after_d(output_and_split, named)
        if not isinstance(operation, Conv2dOperation):
            raise InvalidArgument(f"operation must be a Conv2dOperation, got {type(operation).__name__}")
        if not isinstance(problem_size, Conv2dProblemSize):
            raise InvalidArgument(f"problem_size must be a cutlass.conv.Conv2dProblemSize, got {problem_size!r:.80}")
        if not isinstance(split_k_mode, SplitKMode):
            raise InvalidArgument(f"split_k_mode must be Serial or Parallel, got {split_k_mode!r:.80}")
        super().__init__(operation, implicit_gemm_problem_size(operation.conv_kind, problem_size), output_op, bias)
        if split_k_slices is not None:
            problem_size = problem_size.reset_split_k_slices(split_k_slices)
        self.problem_size = problem_size
        self.split_k_mode = split_k_mode
        self.split_k_slices = problem_size.split_k_slices
        self._check_problem()
        names = operands_of(operation.conv_kind)
        described = (operation.A, operation.B, operation.C, operation.C)
        self._extents = {
            role: self._shape(role, description, _four(getattr(problem_size, f"{name}_extent")()))
            for role, name, description in zip("ABCD", (*names, names[2]), described, strict=True)
        }
        a = self._matrix(A, "A", operation.A, 0, 0, None)
        b = self._matrix(B, "B", operation.B, 0, 0, None)
        outputs = self._bind_outputs(C, D, None)
        self._calls: list[tuple[_tilewright.OperationArguments, Kernel | None]]
        self._sums: PartialSums | None = None  # in mode Parallel
        if split_k_mode is SplitKMode.Parallel and self.split_k_slices > 1 and not self._has_blocks():
            self._calls = self._in_parts(a, b, outputs)
        else:
            arguments = self._arguments(a, b, outputs.d, outputs.epilogue, **outputs.options)
            self._calls = [(arguments, operation.kernel_for(arguments, self.split_k_slices))]
        self._prepared: list[PreparedCall] | None = None

    @property
    def ptr_D(self) -> PartialSums:
        """The partial sums that a ReductionOperation reads, in mode Parallel with more than one part.

        Once this has been read, runs of the operation no longer write D. Raises InvalidArgument in other modes, and
        Unsupported for TensorNC32HW32, of which there are no partial sums.
        """
        if self._has_blocks() and self.split_k_mode is SplitKMode.Parallel:
            raise Unsupported("ptr_D needs TensorNHWC operands: convolutions of TensorNC32HW32 write D in one launch")
        if self._sums is None:
            raise InvalidArgument(
                f"ptr_D needs SplitKMode.Parallel and several split_k_slices, got {self.split_k_mode.name} and "
                f"{self.split_k_slices}"
            )
        self._calls = [call for call in self._calls if call[1] is not None]  # the reduction has no kernel of its own
        self._prepared = None
        return self._sums

    @property
    def bound(self) -> _tilewright.OperationArguments:
        """The convolution, or that of the first part."""
        return self._calls[0][0]

    @property
    def kernel(self) -> Kernel:
        """The kernel that computes the convolution, or its first part."""
        kernel = self._calls[0][1]
        assert kernel is not None
        return kernel

    def launch(self, stream: Any = None) -> None:
        """Implements Conv2dOperation.run()."""
        if self._prepared is None:
            self._prepared = [_tilewright.prepare(arguments, kernel) for arguments, kernel in self._calls]
        self._refresh(stream)
        self._stream = current_stream(self._memories[-1]) if stream is None else stream
        for prepared in self._prepared:
            prepared.run(stream=self._stream)
        if self._sums is not None:
            self._sums.is_ready = True

    def reorder_tensor_B(self, tensor_B: Any, problem_size: Conv2dProblemSize) -> Any:
        """Returns `tensor_B`: a filter of TensorC32RSK32 is read in its natural order.

        CUTLASS's kernels with a D of TensorNC32HW32 need the filters in another order, and PyCUTLASS's arguments
        reorder a copy of B.
        """
        return tensor_B

    def free(self) -> None:
        """Has no effect: memory is released when nothing refers to it."""

    def _has_blocks(self) -> bool:
        return bool(self.operation.A.layout.has_blocks or self.operation.C.layout.has_blocks)

    @staticmethod
    def _shape(role: str, description: TensorDescription, extents: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of an operand in memory. `extents` are those of NHWC, or of KRSC."""
        if not description.layout.has_blocks:
            return extents
        first, second, third, channels = extents
        if channels % CHANNELS_OF_BLOCK != 0:
            raise InvalidArgument(
                f"{role} is {description.layout.name}: it needs a multiple of {CHANNELS_OF_BLOCK} channels, got "
                f"{channels}"
            )
        blocks = channels // CHANNELS_OF_BLOCK
        if description.layout is cutlass.TensorC32RSK32:
            return blocks, second, third, first, CHANNELS_OF_BLOCK
        return first, blocks, second, third, CHANNELS_OF_BLOCK

    def _check_problem(self) -> None:
        operation, size = self.operation, self.problem_size
        kind, algorithm = operation.conv_kind, operation.iterator_algorithm
        is_fprop = kind is Operator.fprop
        if algorithm is IteratorAlgorithm.fixed_channels and size.C // size.groups != operation.A.alignment:
            raise InvalidArgument(
                f"IteratorAlgorithm.fixed_channels needs C = {operation.A.alignment}, the alignment of A, got {size.C}"
            )
        of_c = {"A": operation.A, "B": operation.B} if is_fprop else {"B": operation.B}
        if kind is Operator.dgrad:
            of_c["C"] = operation.C
        of_k = {"C": operation.C} if is_fprop else {"A": operation.A}
        for name, count, descriptions in (("C", size.C, of_c), ("K", size.K, of_k)):
            for role, description in descriptions.items():
                if count // size.groups % description.alignment != 0:
                    raise InvalidArgument(
                        f"{name} must be a multiple of {description.alignment}, the alignment of {role}, got "
                        f"{count // size.groups}"
                    )
        if algorithm is IteratorAlgorithm.optimized and max(size.R, size.S) > MOST_TAPS_OF_OPTIMIZED:
            raise InvalidArgument(
                f"IteratorAlgorithm.optimized is for filters of at most {MOST_TAPS_OF_OPTIMIZED} taps along an axis, "
                f"got {size.R} x {size.S}"
            )
        is_unity = operation.stride_support is StrideSupport.Unity
        if kind is Operator.dgrad and is_unity and (size.stride_h, size.stride_w) != (1, 1):
            raise InvalidArgument(
                f"StrideSupport.Unity needs strides of 1 in dgrad, got {size.stride_h} x {size.stride_w}"
            )

    def _arguments(
        self, a: View, b: View, d: Any, epilogue: Epilogue, padding_h: int | None = None, **options: Any
    ) -> _tilewright.Conv2dArguments:
        """tilewright.Conv2dArguments, whose errors name the operands as callers of PyCUTLASS do."""
        operation, size = self.operation, self.problem_size
        roles = dict(zip((_PARAMETER[name] for name in operands_of(operation.conv_kind)), "ABD", strict=True))
        operands = dict(zip(roles, (a, b, d), strict=True))
        try:
            return _tilewright.Conv2dArguments(
                **operands,
                accumulator_type=operation.accumulator_type().kind,
                epilogue=epilogue,
                kind=operation.conv_kind.name,
                stride=(size.stride_h, size.stride_w),
                padding=(size.pad_h if padding_h is None else padding_h, size.pad_w),
                dilation=(size.dilation_h, size.dilation_w),
                groups=size.groups,
                mode=size.mode.name,
                layout="nhwc",
                math=operation.math,
                **options,
            )
        except InvalidArgument as error:
            raise InvalidArgument(re.sub(r"\b[xwy]\b", lambda found: roles[found[0]], str(error))) from None

    def _matrix(
        self,
        array: Any,
        role: str,
        description: TensorDescription,
        rows: int,
        columns: int,
        batch: int | None,
        is_written: bool = False,
    ) -> View:
        """The array's memory as a packed tensor of four modes, or of five; rows and columns are not used."""
        shape = self._extents[role]
        memory = memory_of(array, role)
        self._check(memory, role, description, product_of(shape))
        if not memory.is_contiguous and memory.elements is not None:
            memory = self._in_order(memory, role, shape, packed(shape), is_written)
        if is_written and memory.is_read_only:
            raise InvalidArgument(f"{role} is read-only")
        return View(memory, description.element.kind, shape, packed(shape))

    def _vector_shape(self, along: int, is_row: bool) -> tuple[int, ...]:
        if self.operation.conv_kind is Operator.wgrad:
            return (1, *self._extents["D"][1:])
        if self.operation.C.layout.has_blocks:
            return (1, along // CHANNELS_OF_BLOCK, 1, 1, CHANNELS_OF_BLOCK)
        return (1, 1, 1, along)

    def _channels(self) -> int | None:
        return self._extents["D"][-1] if self.operation.conv_kind is Operator.wgrad else None

    def _in_parts(
        self, a: View, b: View, outputs: Outputs
    ) -> list[tuple[_tilewright.OperationArguments, Kernel | None]]:
        """Convolutions that write partial sums, and their reduction."""
        operation, size = self.operation, self.problem_size
        if size.groups != 1:
            raise Unsupported(f"SplitKMode.Parallel is for convolutions without groups, got groups={size.groups}")
        assert isinstance(outputs.d, View)
        parts = _parts(operation.conv_kind, size, self.split_k_slices)
        accumulator = operation.accumulator_type().kind
        shape = self._extents["D"]
        elements = product_of(shape)
        kind = _tilewright.dtype("f32") if accumulator.name == "f16" else accumulator
        memory = allocate((len(parts), *shape), kind, outputs.d.memory.device)
        self._memories.insert(0, memory)
        calls: list[tuple[_tilewright.OperationArguments, Kernel | None]] = []
        for index, (begin, end) in enumerate(parts):
            part_a, part_b, padding_h = _part(operation.conv_kind, size, a, b, begin, end)
            sums = View(memory, kind, shape, packed(shape), index * elements)
            arguments = self._arguments(part_a, part_b, sums, operation.plain_epilogue, padding_h)
            calls.append((arguments, operation.kernel_for(arguments)))
        m, n = self.gemm_size.m(), self.gemm_size.n()
        self._sums = PartialSums(self, View(memory, kind, (len(parts), m, n), (elements, max(1, n), 1)))
        as_matrix: dict[str, Any] = {"parts": self._sums.parts, "out": _matrix_of(outputs.d, m, n)}
        options = dict(outputs.options)
        if isinstance(options.get("C"), View):
            options["C"] = _matrix_of(options["C"], m, n)
        options["tensors"] = {
            name: View(view.memory, view.dtype, (1, n), (n, 1)) for name, view in options.get("tensors", {}).items()
        }
        reduction = _tilewright.ReduceSplitKArguments(**as_matrix, epilogue=outputs.epilogue, **options)
        return [*calls, (reduction, None)]


def _changed(design: BLASDesignMetadata, warp_count: tuple[int, int, int] | None, split_k: int) -> BLASDesignMetadata:
    """The design with other warps, unless they are None, and another split of K."""
    return BLASDesignMetadata(
        design.tile_shape,
        design.cluster_shape,
        stages=design.stages,
        warp_count=warp_count or design.warp_count,
        instruction_shape=design.instruction_shape,
        op_class=design.op_class,
        schedule=design.schedule,
        raster_width=design.raster_width,
        raster_along=design.raster_along,
        split_k=split_k,
    )


def _four(extent: Any) -> tuple[int, ...]:
    return extent.n(), extent.h(), extent.w(), extent.c()


def _matrix_of(view: View, m: int, n: int) -> View:
    return View(view.memory, view.dtype, (m, n), (max(1, n), 1))


def _parts(kind: Operator, size: Conv2dProblemSize, count: int) -> list[tuple[int, int]]:
    """At most `count` intervals of what the parts of K are: rows of the filter (fprop), filters (dgrad), images or, of
    one image, rows of pixels (wgrad)."""
    extent = {
        Operator.fprop: size.R,
        Operator.dgrad: size.K,
        Operator.wgrad: size.P if size.N == 1 else size.N,
    }[kind]
    step = max(1, -(-extent // count))
    if kind is Operator.dgrad and step > 1:
        step = -(-step // 8) * 8  # so that the parts are as aligned as the whole
    return [(begin, min(begin + step, extent)) for begin in range(0, max(1, extent), step)]


def _part(
    kind: Operator, size: Conv2dProblemSize, a: View, b: View, begin: int, end: int
) -> tuple[View, View, int | None]:
    """A and B of one part, and the padding above the activation if it differs."""
    if kind is Operator.dgrad:
        return a.slice(3, begin, end), b.slice(0, begin, end), None
    if kind is Operator.wgrad and size.N != 1:
        return a.slice(0, begin, end), b.slice(0, begin, end), None
    if kind is Operator.wgrad:
        above = begin * size.stride_h - size.pad_h  # the first row of the activation that the part's pixels meet
        return a.slice(1, begin, end), b.slice(1, min(max(0, above), size.H), size.H), max(0, -above)
    first = size.R - end if size.mode is Mode.convolution else begin  # the row of the filter that is read first
    above = first * size.dilation_h - size.pad_h
    return a.slice(1, min(max(0, above), size.H), size.H), b.slice(1, begin, end), max(0, -above)
