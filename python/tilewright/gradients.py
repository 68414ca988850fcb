"""Gradients of tilewright.matmul and tilewright.contract for tensors of PyTorch.

The gradient of an epilogue is that of the same formula in PyTorch, on accumulators that are computed again. All
gradients can be differentiated again.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright._tilewright import _contraction_modes
from tilewright.errors import InvalidArgument, Unsupported

NAMED = ("relu", "leaky_relu", "tanh", "sigmoid", "silu", "hardswish", "gelu", "identity", "")


def is_supported(torch: Any) -> bool:
    """Whether this PyTorch has what gradients and graphs need. Products of tensors of older ones have neither."""
    return hasattr(getattr(torch, "library", None), "register_autograd")


def require_supported(torch: Any, what: str) -> None:
    if not is_supported(torch):
        raise Unsupported(
            f"{what} need torch.library.register_autograd, which PyTorch has from 2.4 on; this is {torch.__version__}"
        )


def are_needed(*values: Any) -> bool:
    """Whether one of the values is a tensor of PyTorch, or a list of them, that requires a gradient, while gradients are
    enabled."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.is_grad_enabled():
        return False
    for value in values:
        each_of = value if isinstance(value, (list, tuple)) else (value,)
        if any(isinstance(each, torch.Tensor) and each.requires_grad for each in each_of):
            require_supported(torch, "gradients")
            return True
    return False


def refuse(caller: str, named: Mapping[str, Any], instead: str = "") -> None:
    """Raises InvalidArgument if one of the values requires a gradient, which the result of `caller` would lose."""
    for name, value in named.items():
        if are_needed(value):
            raise InvalidArgument(
                f"{name} requires a gradient, which {caller} does not compute: pass {name}.detach(), or call it under "
                f"torch.no_grad(){instead}"
            )


class Evaluator:
    """Computes a text of the epilogue language with arrays of a framework. This class has what frameworks share."""

    def __init__(self, accumulators: Any, tensors: Mapping[str, Any], numbers: Mapping[str, float], c: Any) -> None:
        self.acc = accumulators
        self.numbers = numbers
        self.values: dict[str, Any] = {"acc": accumulators, "C": c}
        self.tensors = tensors

    # Each framework defines these.

    def functions(self) -> Mapping[str, Callable[..., Any]]:
        raise NotImplementedError

    def compare(self, name: str, x: Any, y: Any) -> Any:
        """1 where x and y compare as "lt", "le", "gt", "ge", "eq" or "ne", else 0."""
        raise NotImplementedError

    def array(self, value: Any) -> Any:
        """A number as an array of the accumulators' type; arrays as they are."""
        raise NotImplementedError

    def indices(self, count: int) -> Any:
        """0 to count - 1 in the accumulators' type."""
        raise NotImplementedError

    def operand(self, value: Any) -> Any:
        """An operand in the accumulators' type."""
        raise NotImplementedError

    def rounded(self, value: Any, kind: str) -> Any:
        """The value rounded to f16, bf16, f32, e4m3 or e5m2, in the accumulators' type."""
        raise NotImplementedError

    # The language.

    def result(self, text: str) -> Any:
        """The value of D."""
        for statement in text.split(";"):
            name, _, expression = re.sub(r"^\s*let\s", "", statement).partition("=")
            name = name.strip()
            if not name.isidentifier():
                continue  # the result of a reduction, on which D cannot depend
            try:
                tree = ast.parse(expression.replace("$", "_scalar_").strip(), mode="eval")
            except SyntaxError:
                raise InvalidArgument(f"the epilogue '{text}' has no gradient") from None
            value = self._value(tree.body)
            if name == "D":
                return value
            self.values[name] = value
        raise InvalidArgument(f"the epilogue '{text}' does not define D")

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return float(node.value)
        if isinstance(node, ast.Name):
            return self._leaf(node.id)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._value(node.operand)
        if isinstance(node, ast.BinOp):
            x, y = self._value(node.left), self._value(node.right)
            binary: dict[type, Callable[[Any, Any], Any]] = {
                ast.Add: lambda x, y: x + y,
                ast.Sub: lambda x, y: x - y,
                ast.Mult: lambda x, y: x * y,
                ast.Div: lambda x, y: x / y,
            }
            if type(node.op) in binary:
                return binary[type(node.op)](x, y)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            compared = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
            x, y = self.array(self._value(node.left)), self.array(self._value(node.comparators[0]))
            return self.compare(compared[type(node.ops[0])], x, y)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return self._call(node.func.id, node.args)
        raise InvalidArgument(f"'{ast.unparse(node)}' of the epilogue has no gradient")

    def _leaf(self, name: str) -> Any:
        if name in ("row_index", "column_index"):
            rows, columns = self.acc.shape[-2:]
            steps = self.indices(rows if name == "row_index" else columns)
            return steps[:, None] if name == "row_index" else steps
        label = name.removeprefix("_scalar_")
        if label in self.numbers and name not in self.values:
            return self.numbers[label]
        if name in self.values:
            return self.values[name]
        return self._operand(name)

    def _operand(self, name: str) -> Any:
        if name not in self.tensors:
            raise InvalidArgument(f"'{name}' of the epilogue has no value")
        return self.operand(self.tensors[name])

    def _call(self, name: str, arguments: list[ast.expr]) -> Any:
        if name in ("row", "column", "single", "full") and isinstance(arguments[0], ast.Name):
            value = self._operand(arguments[0].id)
            rank = len(value.shape)
            if name == "row":
                return value[None, :] if rank == 1 else value
            if name == "column":
                return value[:, None] if rank == 1 else value
            return value.reshape(()) if name == "single" and all(extent == 1 for extent in value.shape) else value
        if name == "convert" and isinstance(arguments[0], ast.Name):
            if arguments[0].id in ("f16", "bf16", "f32", "e4m3", "e5m2"):
                return self.rounded(self.array(self._value(arguments[1])), arguments[0].id)
        functions = self.functions()
        if name not in functions:
            raise InvalidArgument(f"the function {name} of the epilogue has no gradient")
        return functions[name](*(self.array(self._value(each)) for each in arguments))


class _TorchEvaluator(Evaluator):
    """With tensors of PyTorch."""

    def __init__(self, accumulators: Any, tensors: Mapping[str, Any], numbers: Mapping[str, float], c: Any) -> None:
        import torch

        self.torch = torch
        super().__init__(accumulators, tensors, numbers, c)

    def functions(self) -> Mapping[str, Callable[..., Any]]:
        return _functions(self.torch)

    def compare(self, name: str, x: Any, y: Any) -> Any:
        return getattr(self.torch, name)(x, y).to(self.acc.dtype)

    def array(self, value: Any) -> Any:
        return value if isinstance(value, self.torch.Tensor) else self.acc.new_tensor(value)

    def indices(self, count: int) -> Any:
        return self.torch.arange(count, device=self.acc.device).to(self.acc.dtype)

    def operand(self, value: Any) -> Any:
        return value if value.dtype == self.acc.dtype else value.to(self.acc.dtype)

    def rounded(self, value: Any, kind: str) -> Any:
        names = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}
        return value.to(getattr(self.torch, names[kind])).to(self.acc.dtype)


def _functions(torch: Any) -> dict[str, Callable[..., Any]]:
    functional = torch.nn.functional
    same = "abs neg sqrt rsqrt reciprocal exp log log1p floor round erf tanh square relu sigmoid pow".split()
    pairs = {"glu": torch.sigmoid, "reglu": torch.relu, "swiglu": functional.silu, "geglu": functional.gelu}
    pairs["geglu_tanh"] = lambda x: functional.gelu(x, approximate="tanh")
    return {
        **{name: getattr(torch, name) for name in same},
        **{name: getattr(functional, name) for name in ("silu", "hardswish", "gelu", "mish", "softplus")},
        **{name: (lambda x, gate=gate: gate(x[..., 0::2]) * x[..., 1::2]) for name, gate in pairs.items()},
        "min": torch.minimum,
        "max": torch.maximum,
        "fma": lambda x, y, z: x * y + z,
        "where": lambda x, y, z: torch.where(x != 0, y, z),
        "clamp": lambda x, y, z: torch.minimum(torch.maximum(x, y), z),
        "leaky_relu": lambda x, y: torch.where(x > 0, x, y * x),
        "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
        "even": lambda x: x[..., 0::2],
        "odd": lambda x: x[..., 1::2],
    }


def _text_of_named(name: str) -> str:
    """The text of a named epilogue, such as "relu" or "linear_combination_relu"."""
    function = name.removeprefix("linear_combination").removeprefix("_")
    if function not in NAMED:
        raise InvalidArgument(f"the epilogue '{name}' has no gradient: write it as a text or as a Python function")
    parameter = ", 0.2" if function == "leaky_relu" else ""
    return "D = alpha * acc + beta * C" if function in ("", "identity") else f"D = {function}(x{parameter})"


def prepared_text(evaluator: Evaluator, text: str, alpha: float, beta: float, c: Any) -> str:
    """The text of an epilogue that may be a name, whose values are given to the evaluator."""
    if "=" in text:
        return text
    scaled = alpha * evaluator.acc
    evaluator.values["x"] = scaled if c is None else scaled + beta * c
    evaluator.values["C"] = 0.0 if c is None else c
    return _text_of_named(text)


def pull_back(
    text: str,
    labels: Sequence[str | None],
    numbers: Mapping[str, float],
    alpha: float,
    beta: float,
    accumulators: Any,
    c: Any,
    tensors: Sequence[Any],
    gradient: Any,
) -> list[Any]:
    """The gradients of the accumulators, of c and of the tensors, whose names in the text are `labels`; None: unused."""
    import torch

    given = [accumulators, c, *tensors]
    is_float = [each is not None and each.is_floating_point() for each in given]

    def formula(*floats: Any) -> Any:
        values = iter(floats)
        here = [next(values) if differs else each for each, differs in zip(given, is_float, strict=True)]
        operands = {label: value for label, value in zip(labels, here[2:], strict=True) if label is not None}
        source = None if here[1] is None else here[1].to(here[0].dtype)
        evaluator = _TorchEvaluator(here[0], operands, {"alpha": alpha, "beta": beta, **numbers}, source)
        return evaluator.result(prepared_text(evaluator, text, alpha, beta, source))

    floats = [each for each, differs in zip(given, is_float, strict=True) if differs]
    if are_wrapped(gradient, *floats):  # torch.func does not see through torch.autograd.grad
        differentiated: Any = torch.func.vjp(formula, *floats)  # PyTorch's annotation has a third value too
        result, pull = differentiated
        found = iter(pull(gradient.to(result.dtype)))
    else:
        again = torch.is_grad_enabled()
        with torch.enable_grad():
            leaves = [each if again and each.requires_grad else each.detach().requires_grad_() for each in floats]
            result = formula(*leaves)
            found = iter(
                torch.autograd.grad(result, leaves, gradient.to(result.dtype), allow_unused=True, create_graph=again)
            )
    gradients = [next(found) if differs else None for differs in is_float]
    if gradients[0] is None:
        gradients[0] = torch.zeros_like(accumulators)
    return gradients


def are_wrapped(*values: Any) -> bool:
    """Whether one of the values is a tensor that torch.func transforms. Its memory is only seen by operators."""
    torch = sys.modules.get("torch")
    if torch is None or not is_supported(torch) or not torch._C._are_functorch_transforms_active():
        return False
    is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor
    return any(isinstance(value, torch.Tensor) and is_wrapped(value) for value in values)


def is_recorded(a: Any, b: Any, epilogue: Any, c: Any, operands: Mapping[str, Any]) -> bool:
    """Whether PyTorch must see the call as one operator: torch.compile or torch.jit.trace traces it, or a
    TorchDispatchMode is active, such as those of make_fx and FakeTensorMode. Otherwise the product would be no part of the
    graph."""
    torch = sys.modules.get("torch")
    if torch is None or not is_supported(torch) or not (
        torch.compiler.is_compiling() or torch._C._is_tracing() or torch._C._len_torch_dispatch_stack() > 0
    ):
        return False
    if not (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and (c is None or isinstance(c, torch.Tensor))):
        return False
    if not (epilogue is None or isinstance(epilogue, str) or callable(epilogue)):
        return False
    return all(isinstance(value, (torch.Tensor, int, float)) for value in operands.values())


def recorded(
    a: Any, b: Any, epilogue: Any, c: Any, alpha: float, beta: Any, options: Mapping[str, Any], operands: Mapping[str, Any]
) -> Any:
    """tilewright.matmul as an operator. @pre is_recorded()"""
    import torch

    from tilewright.torch import text_of

    tensors = {name: value for name, value in operands.items() if isinstance(value, torch.Tensor)}
    numbers = {name: float(value) for name, value in operands.items() if not isinstance(value, torch.Tensor)}
    text, names, given = epilogue or "", tuple(tensors), tuple(tensors)
    values = " ".join(f"{name}={value!r}" for name, value in numbers.items())
    if callable(epilogue) or (isinstance(epilogue, str) and "def " in epilogue):
        batch = max(a.shape[:-2], b.shape[:-2], key=len)
        shapes = {name: tuple(value.shape) for name, value in tensors.items()}
        problem = (*batch, a.shape[-2], b.shape[-1])
        text, names, given, values = text_of(epilogue, problem, a.dtype == torch.float64, shapes, numbers)
    return torch.ops.tilewright.product(
        a,
        b,
        c,
        [tensors[name] for name in given],
        " ".join(names),
        text,
        values,
        float(alpha),
        (0.0 if c is None else 1.0) if beta is None else float(beta),
        options["out_dtype"],
        options["accumulator_type"],
        options["math"],
        options["deterministic"],
        options["batch_invariant"],
    )


def matmul(a: Any, b: Any, bound: Any, c: Any, alpha: float, beta: float | None, options: dict[str, Any]) -> Any:
    """tilewright.matmul with a gradient. `bound` is None, a str or an EpilogueArguments."""
    import torch

    from tilewright.epilogue import EpilogueArguments

    for name, value in {"a": a, "b": b}.items():
        if not isinstance(value, torch.Tensor):
            raise InvalidArgument(
                f"{name} must be one tensor of PyTorch, because an argument requires a gradient, "
                f"got a {type(value).__name__}"
            )
    scale = (0.0 if c is None else 1.0) if beta is None else float(beta)
    given = {name: value for name, value in options.items() if value is not None}
    if not (bound is None or isinstance(bound, EpilogueArguments)):
        raise InvalidArgument("an Epilogue object has no gradients: pass its text, or a Python function")
    operands = {} if bound is None else dict(bound.operands)
    tensors = {name: value for name, value in operands.items() if isinstance(value, torch.Tensor)}
    return _product_function().apply(a, b, c, bound, float(alpha), scale, given, [*tensors], *tensors.values())


@functools.cache
def _product_function() -> Any:
    """The autograd.Function, whose class needs PyTorch."""
    import torch

    from tilewright.call_arguments import compute_type
    from tilewright.product import matmul as product
    from tilewright.results import row_or_column_major

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(
            a: Any,
            b: Any,
            c: Any,
            bound: Any,
            alpha: float,
            beta: float,
            options: dict[str, Any],
            names: list[str],
            *tensors: Any,
        ) -> Any:
            here = None if bound is None else _rebound(bound, dict(zip(names, tensors, strict=True)))
            return product(a, b, epilogue=here, c=c, alpha=alpha, beta=beta, **options)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            a, b, c, bound, alpha, beta, options, names, *tensors = inputs
            ctx.save_for_backward(a, b, c, *tensors)
            ctx.save_for_forward(a, b, c, *tensors)
            ctx.call = bound, alpha, beta, options, names

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            a, b, c, *_ = ctx.saved_tensors
            bound, alpha, beta, options, _ = ctx.call
            if bound is not None:
                raise InvalidArgument("matmul(epilogue=) has no derivatives in forward mode: use torch.func.vjp")
            of_a, of_b, of_c, *_ = tangents
            terms = [] if of_a is None else [product(row_or_column_major(of_a), b, alpha=alpha, **options)]
            terms += [] if of_b is None else [product(a, row_or_column_major(of_b), alpha=alpha, **options)]
            terms += [] if of_c is None or c is None else [beta * of_c]
            return sum(terms[1:], terms[0])

        @staticmethod
        def vmap(info: Any, in_dims: Any, *inputs: Any) -> Any:
            """One batch if a and b are matrices without other operands, else one product after the other."""
            of_a, of_b, *others = in_dims
            of_tensors = in_dims[8:]
            a, b, c, bound, alpha, beta, options, names, *tensors = inputs
            is_plain = c is None and not tensors
            if is_plain and [x.dim() - (dim is not None) for x, dim in ((a, of_a), (b, of_b))] == [2, 2]:
                a = a if of_a is None else row_or_column_major(a.movedim(of_a, 0))
                b = b if of_b is None else row_or_column_major(b.movedim(of_b, 0))
                return Product.apply(a, b, None, bound, alpha, beta, options, names), 0

            def item(x: Any, dim: int | None, index: int) -> Any:
                if dim is None or x is None:
                    return x
                x = x.select(dim, index)
                return row_or_column_major(x) if x.dim() > 1 else x.contiguous()

            made = []
            for index in range(info.batch_size):
                here = [item(x, dim, index) for x, dim in zip(tensors, of_tensors, strict=True)]
                source = item(c, others[0], index)
                factors = item(a, of_a, index), item(b, of_b, index)
                made.append(Product.apply(*factors, source, bound, alpha, beta, options, names, *here))
            return torch.stack(made), 0

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            (gradient,) = gradients
            a, b, c, *tensors = ctx.saved_tensors
            bound, alpha, beta, _, names = ctx.call
            if bound is None:
                of_product = alpha * gradient
                of_others = [None if c is None or not ctx.needs_input_grad[2] else beta * gradient]
            else:
                of_product, *of_others = _of_epilogue(ctx, a, b, c, tensors, gradient)
            of_a = of_b = None
            of_product = row_or_column_major(of_product.to(a.dtype))
            if ctx.needs_input_grad[0]:
                of_a = _sum_to(product(of_product, row_or_column_major(b).transpose(-1, -2)), a)
            if ctx.needs_input_grad[1]:
                of_b = _sum_to(product(row_or_column_major(a).transpose(-1, -2), of_product), b)
            of_c: Any = of_others[0]
            if of_c is not None and c is not None:
                of_c = _sum_to(of_c, c).to(c.dtype)
            rest = of_others[1:] or [None] * len(tensors)
            return of_a, of_b, of_c, None, None, None, None, None, *rest

    def _of_epilogue(ctx: Any, a: Any, b: Any, c: Any, tensors: Any, gradient: Any) -> list[Any]:
        bound, alpha, beta, _, names = ctx.call
        accumulators = product(a, b, out_dtype=torch.float64 if a.dtype == torch.float64 else torch.float32)
        batch = None if accumulators.dim() == 2 else int(accumulators.shape[0])
        m, n = (int(extent) for extent in accumulators.shape[-2:])
        here = _rebound(bound, dict(zip(names, tensors, strict=True)))
        text, labels, numbers = here._text(batch, m, n, compute_type(a))
        used = {name: label for label, name in labels.items()}
        return pull_back(
            text, [used.get(name) for name in names], numbers, alpha, beta, accumulators, c, tensors, gradient
        )

    return Product


def _rebound(bound: Any, tensors: Mapping[str, Any]) -> Any:
    """The same epilogue with other tensors."""
    from tilewright.epilogue import EpilogueArguments

    return EpilogueArguments(bound.epilogue, **{**bound.operands, **tensors})


def _sum_to(gradient: Any, operand: Any) -> Any:
    """The gradient summed over the batch if the operand is a single matrix that was broadcast to it, and over other
    modes along which the operand was broadcast."""
    while gradient.dim() > operand.dim():
        gradient = gradient.sum(0)
    for mode, extent in enumerate(operand.shape):
        if extent == 1 and gradient.shape[mode] != 1:
            gradient = gradient.sum(mode, keepdim=True)
    return gradient


def contract(expression: str, a: Any, b: Any, options: dict[str, Any]) -> Any:
    """tilewright.contract without an epilogue, with gradients that can be differentiated again."""
    return _contraction_function().apply(expression, a, b, options)


@functools.cache
def _contraction_function() -> Any:
    """The autograd.Function, whose class needs PyTorch."""
    import torch

    from tilewright.contraction import contract as compute

    class Contraction(torch.autograd.Function):
        @staticmethod
        def forward(expression: str, a: Any, b: Any, options: dict[str, Any]) -> Any:
            return compute(expression, a, b, **options)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            expression, a, b, options = inputs
            ctx.save_for_backward(a, b)
            ctx.call = expression, options

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            gradient = gradients[0]
            a, b = ctx.saved_tensors
            expression, options = ctx.call
            of_a, of_b, of_out = _contraction_modes(expression)
            found: list[Any] = [None, None]
            pairs = ((of_a, of_b, a, b), (of_b, of_a, b, a))
            for place, (own, other, operand, factor) in enumerate(pairs):
                if not ctx.needs_input_grad[1 + place]:
                    continue
                summed = [mode for mode in own if mode not in other and mode not in of_out]
                if summed:
                    raise InvalidArgument(
                        f"'{expression}' sums over the mode '{summed[0]}' of one operand alone, whose gradient is not "
                        "computed: sum the operand before"
                    )
                back = f"{of_out},{other}->{own}"
                found[place] = compute(back, gradient.to(operand.dtype), factor, **options).to(operand.dtype)
            return None, *found, None

    return Contraction
