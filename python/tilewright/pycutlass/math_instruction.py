"""The math instruction of a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.errors import InvalidArgument, Unsupported

from . import cutlass
from .argument_types import check_type
from .cutlass.element import DataType
from .enumeration import Enumeration
from .extents import three


class MathOperation(Enumeration):
    """How products are computed and accumulated."""

    multiply_add = "multiply_add"
    multiply_add_saturate = "multiply_add_saturate"
    xor_popc = "xor_popc"
    multiply_add_fast_bf16 = "multiply_add_fast_bf16"
    multiply_add_fast_f16 = "multiply_add_fast_f16"
    multiply_add_fast_f32 = "multiply_add_fast_f32"
    multiply_add_complex_fast_f32 = "multiply_add_complex_fast_f32"
    multiply_add_complex = "multiply_add_complex"
    multiply_add_complex_gaussian = "multiply_add_complex_gaussian"


# The type that f32 operands are rounded to; a MathInstruction may name it, or tfloat32, instead of float32.
_ROUNDED = {
    MathOperation.multiply_add: DataType.tfloat32,
    MathOperation.multiply_add_fast_bf16: DataType.bfloat16,
    MathOperation.multiply_add_fast_f16: DataType.float16,
    MathOperation.multiply_add_fast_f32: DataType.float32,
}

DP4A_SHAPE = (1, 1, 4)


class MathInstruction:
    """The shape, types, class and math operation of the instruction.

    For tensor cores of sm_90 the shape may be None: then it follows from the tile. Raises InvalidArgument, or
    Unsupported for a class or an operation that no kernel has.
    """

    def __init__(
        self,
        instruction_shape: Sequence[int] | None,
        element_a: DataType,
        element_b: DataType,
        element_accumulator: DataType,
        opcode_class: cutlass.OpClass = cutlass.OpClass.Simt,
        math_operation: MathOperation = MathOperation.multiply_add,
    ) -> None:
        for name, element in (
            ("element_a", element_a),
            ("element_b", element_b),
            ("element_accumulator", element_accumulator),
        ):
            if not isinstance(element, DataType):
                raise InvalidArgument(f"{name} must be one of cutlass.float16, cutlass.float32, ..., got {element!r}")
        check_type("opcode_class", opcode_class, cutlass.OpClass, "cutlass.OpClass.Simt or cutlass.OpClass.TensorOp")
        check_type("math_operation", math_operation, MathOperation, "a MathOperation, as MathOperation.multiply_add")
        if opcode_class not in (cutlass.OpClass.Simt, cutlass.OpClass.TensorOp):
            raise Unsupported(f"no kernel multiplies by {opcode_class.name}: Simt and TensorOp are supported")
        is_saturating = math_operation is MathOperation.multiply_add_saturate
        if math_operation not in _ROUNDED and not is_saturating:
            raise Unsupported(f"no kernel multiplies by {math_operation.name}")
        if is_saturating and element_accumulator is not DataType.int32:
            raise InvalidArgument(f"multiply_add_saturate accumulates in int32, got {element_accumulator.name}")
        self.instruction_shape = None if instruction_shape is None else three(instruction_shape, "instruction_shape")
        self.element_a = element_a
        self.element_b = element_b
        self.element_accumulator = element_accumulator
        self.opcode_class = opcode_class
        self.math_operation = math_operation

    @property
    def shape_of_design(self) -> tuple[int, int, int] | None:
        """instruction_shape as Tilewright's designs have it: dp4a of 8-bit integers, [1, 1, 4], is 1x1x1."""
        is_dp4a = self.opcode_class is cutlass.OpClass.Simt and self.element_a.bits == 8
        return (1, 1, 1) if is_dp4a and self.instruction_shape == DP4A_SHAPE else self.instruction_shape

    def math_of(self, element: DataType) -> str:
        """Tilewright's name of the math operation for operands of that type.

        Tensor cores round f32 to tf32. multiply_add_saturate becomes multiply_add, because GemmArguments refuses a k
        for which the sums could overflow. The multiply_add_fast operations become multiply_add for f16 and bf16, whose
        products tensor cores compute without rounding.
        """
        is_tensor_op = self.opcode_class is cutlass.OpClass.TensorOp
        is_exact = is_tensor_op and element in (DataType.float16, DataType.bfloat16)
        if is_exact or self.math_operation is MathOperation.multiply_add_saturate:
            return "multiply_add"
        is_rounded = element is DataType.float32 and is_tensor_op
        if self.math_operation is MathOperation.multiply_add:
            return "multiply_add_tf32" if is_rounded else "multiply_add"
        return self.math_operation.name

    def check_operand(self, role: str, element: DataType) -> None:
        """Raises InvalidArgument if the operand's type is not that of the instruction."""
        named = self.element_a if role == "A" else self.element_b
        others = (_ROUNDED.get(self.math_operation), DataType.tfloat32) if element is DataType.float32 else ()
        if named is not element and named not in others:
            raise InvalidArgument(f"{role} is {element.name}, but the math instruction multiplies {named.name}")
