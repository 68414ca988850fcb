"""Malformed arrays, numbers and texts: the outcome is a result, a tilewright.Error that says what is wrong, a TypeError, a
ValueError, or whatever the program's own objects raise."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright import GemmArguments, InvalidArgument, matmul

A = np.arange(16, dtype=np.float32).reshape(4, 4)
SURROGATE = "\ud800"


class CallersOwn(Exception):
    pass


def raises(*_: object, **__: object) -> Any:
    raise CallersOwn("of the object")


def made(**members: Any) -> Any:
    """An object that has these attributes and no others."""
    return type("Made", (), members)()


def out() -> Any:
    return np.empty((4, 4), np.float32)


def interface(**changes: Any) -> dict[str, Any]:
    return {**A.__array_interface__, **changes}


def on_gpu(**changes: Any) -> Any:
    described = {"shape": (4, 4), "typestr": "<f4", "data": (4096, False), "version": 3, **changes}
    return made(dtype=A.dtype, shape=(4, 4), __cuda_array_interface__=described)


def test_exceptions_of_an_exporter_are_propagated() -> None:
    for error in (CallersOwn("its own"), BufferError("none"), TypeError("twice"), KeyboardInterrupt()):

        def dlpack(self: Any, error: BaseException = error, **options: Any) -> Any:
            raise error

        with pytest.raises(type(error)) as raised:
            GemmArguments(made(__dlpack__=dlpack), A, out())
        assert raised.value is error


def test_another_interface_does_not_hide_an_interruption() -> None:
    def interrupted(self: Any, **options: Any) -> Any:
        raise KeyboardInterrupt

    GemmArguments(made(__dlpack__=raises, __array_interface__=interface()), A, out())
    with pytest.raises(KeyboardInterrupt):
        GemmArguments(made(__dlpack__=interrupted, __array_interface__=interface()), A, out())


@pytest.mark.parametrize("returned", [None, 3, "text", object()])
def test_objects_that_are_not_capsules_are_refused_by_name(returned: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"^B: __dlpack__\(\) must return a DLPack capsule, got"):
        GemmArguments(A, made(__dlpack__=lambda self, **options: returned), out())


@pytest.mark.parametrize("named", [None, 3, (), (1,), ("cpu", 0), (2**70, 0)])
def test_invalid_devices_are_refused(named: Any) -> None:
    exporter = made(__dlpack__=lambda self, **options: A.__dlpack__(), __dlpack_device__=lambda self: named)
    with pytest.raises((InvalidArgument, TypeError), match="^A: .*(must return|device type)"):
        GemmArguments(exporter, A, out())


@pytest.mark.parametrize("address", [2**64, -1, 2**200])
def test_invalid_addresses_are_refused_by_name(address: int) -> None:
    data = (address, False)
    message = rf"the address of the array's data is {address}, must be 0 to 18446744073709551615"
    for array in (on_gpu(data=data), made(__array_interface__=interface(data=data))):
        with pytest.raises(InvalidArgument, match="^C: " + message):
            GemmArguments(A, A, out(), C=array, beta=1.0)
    args = GemmArguments(A, A, out())
    kernel = tilewright.find_kernels(args)[0]
    with pytest.raises(InvalidArgument, match="^workspace: " + message):
        kernel.run(args, workspace=on_gpu(data=data))
    with pytest.raises(InvalidArgument, match="data_ptr of a kernel parameter is"):
        tilewright.Launch(1, 1, [made(data_ptr=address)])
    with pytest.raises(InvalidArgument, match="the handle of a stream is"):
        kernel.run(args, stream=address)


@pytest.mark.parametrize(
    "changes, message",
    [
        (dict(data=None), "no data pointer"),
        (dict(data=7), r"data of an array's interface must be \(address, is_read_only\), got 7"),
        (dict(data=(4096,)), r"got \(4096,\)"),
        (dict(data=("x", False)), "the address of the array's data must be an integer, got str"),
        (dict(shape=None), "shape must be a sequence of integers, got None"),
        (dict(shape={4: 4}), "shape must be a sequence of integers"),
        (dict(shape=(4.5, 4)), "an entry of the shape must be an integer, got float"),
        (dict(shape=(2**63, 4)), "an entry of the shape is 9223372036854775808, must be"),
        (dict(shape=(2**40, 2**40)), "has more than 2.63 elements"),
        (dict(shape=(-4, 4)), "A has a negative extent -4"),
        (dict(strides=(4,)), "the array has 1 strides, but 2 extents"),
        (dict(strides=(6, 4)), "a stride of 6 bytes is no multiple of the element size, 4 bytes"),
        (dict(typestr=">f4"), "big-endian"),
        (dict(typestr=4), "typestr of an array's interface must be a str, got int"),
        (dict(typestr="<c8"), "its typestr '<c8' is no supported element type"),
        (dict(typestr=""), "its typestr '' is no supported element type"),
    ],
)
def test_interfaces_that_are_wrong_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidArgument, TypeError), match=message):
        GemmArguments(made(__array_interface__=interface(**changes)), A, out())


def test_a_type_that_the_interface_contradicts_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="A: the array's dtype is f64, but its typestr is '<f4'"):
        GemmArguments(made(__array_interface__=interface(), dtype=np.dtype(np.float64)), A, out())


@pytest.mark.parametrize("kind", ["float64", "float32", "float16", "int8", "uint8"])
def test_an_object_with_numpys_interface_is_an_array(kind: str) -> None:
    a = np.arange(16).reshape(4, 4).astype(kind)
    alone = made(__array_interface__=a.__array_interface__)
    np.testing.assert_array_equal(matmul(alone, alone), matmul(a, a))
    result = matmul(a, a)
    into = np.empty_like(result)
    assert matmul(alone, a, out=made(__array_interface__=into.__array_interface__)) is not None
    np.testing.assert_array_equal(into, result)
    np.testing.assert_array_equal(matmul(made(__array_interface__=a.T.__array_interface__), a), matmul(a.T, a))


def test_a_result_needs_no_attribute_but_that_of_dlpack() -> None:
    exporter = made(__dlpack__=lambda self, **options: A.__dlpack__())
    np.testing.assert_array_equal(matmul(exporter, A), A @ A)
    np.testing.assert_array_equal(matmul(A, exporter), A @ A)
    np.testing.assert_array_equal(matmul(exporter, A, out=out()), A @ A)


def texts(text: str) -> dict[str, Callable[[], object]]:
    """Calls every function that takes a str."""
    args = GemmArguments(A, A, out())
    kernel = tilewright.find_kernels(args)[0]
    old = kernel.metadata
    return {
        "epilogue's name": lambda: GemmArguments(A, A, out(), epilogue=text),
        "epilogue": lambda: tilewright.Epilogue("D = acc * " + text),
        "number": lambda: tilewright.Epilogue("D = acc * $s", scalars={text: 1.0}),
        "tensor": lambda: GemmArguments(A, A, out(), tensors={text: A}),
        "traced": lambda: matmul(A, A, epilogue=f"def f(accum, {text}):\n  return accum", **{text: 1.0}),
        "operand": lambda: matmul(A, A, epilogue="D = acc", **{text: A}),
        "math": lambda: GemmArguments(A, A, out(), math=text),
        "accumulator": lambda: GemmArguments(A, A, out(), accumulator_type=text),
        "dtype": lambda: tilewright.dtype(text),
        "file read": lambda: tilewright.load_artifact("/tmp/" + text),
        "file written": lambda: kernel.compile().save("/no such folder/" + text),
        "device": lambda: tilewright.device_name(text),
        "configured": lambda: tilewright.configure(compiler=text),
        "folder": lambda: tilewright.configure(cache_dir="/no such folder/" + text),
        "target": lambda: tilewright.find_kernels(args, target=text),
        "provider": lambda: tilewright.find_kernels(args, providers=[text]),
        "family": lambda: tilewright.KernelMetadata("x", text, old.operands, old.design),
        "symbol": lambda: tilewright.Source("", symbol=text),
        "language": lambda: tilewright.Source("", language=text),
        "header": lambda: tilewright.Source("", headers={text: ""}),
        "layout": lambda: tilewright.TensorAttributes("float32", text),
        "op_class": lambda: tilewright.BLASDesignMetadata((16, 16, 16), op_class=text),
        "schedule": lambda: tilewright.BLASDesignMetadata((16, 16, 16), schedule=text),
    }


@pytest.mark.parametrize("what", texts(""))
def test_lone_surrogates_are_refused(what: str) -> None:
    with pytest.raises(ValueError, match=r"surrogate|\\ud800|unicode") as raised:
        texts(SURROGATE)[what]()
    assert not isinstance(raised.value, UnicodeError)


@pytest.mark.parametrize("what", ["file read", "file written", "folder"])
def test_file_names_with_nul_are_refused(what: str) -> None:
    with pytest.raises(InvalidArgument, match=r"is no valid file name: .*\\x00"):
        texts("a\0b")[what]()


def test_file_names_need_not_be_utf8(tmp_path: Path) -> None:
    artifact = tilewright.find_kernels(GemmArguments(A, A, out()))[0].compile()
    for path in (tmp_path / "kernel.twk", str(tmp_path / "odd\udcff.twk")):
        artifact.save(path)
        assert tilewright.load_artifact(path).name == artifact.name
    assert (tmp_path / "odd\udcff.twk").exists()


def test_messages_escape_lone_surrogates() -> None:
    assert tilewright.Status.fail(SURROGATE).reason == r"\ud800"


class Malformed:
    """Random values, most of which are valid, so that the invalid ones are reached deep inside a call."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.memory = np.ones(1 << 16, np.float32)  # enough for every plausible shape below

    def one_of(self, *values: Any) -> Any:
        return self.random.choice(values)

    def often(self, value: Any) -> Any:
        return value if self.random.random() < 0.85 else self.junk()

    def junk(self) -> Any:
        return self.one_of(
            None, True, -1, 0, 3, 2**31, 2**63, 2**64, -(2**80), 10**5000, 1.5, float("nan"), float("inf"), 1j, "", "x",
            "a\0b", SURROGATE, "f" * 1000, b"\0", (), [], {}, {1: 2}, (1, 2, 3), [None], object(), int, raises, len,
            np.float32(2), np.arange(3), np.array(4), np.ones((2, 2), complex), Ellipsis, NotImplemented,
            made(__len__=lambda self: 2**62), made(__len__=lambda self: -1), made(__index__=raises),
            made(__len__=lambda self: 2, __getitem__=raises), made(__float__=raises), made(__str__=raises),
            made(__repr__=raises), made(__repr__=lambda self: SURROGATE), made(__class__=property(raises)),
            made(__getattr__=raises), made(__bool__=raises), made(__hash__=None), made(__call__=raises),
        )  # fmt: skip

    def extent(self) -> Any:
        return self.often(self.one_of(4, 4, 4, 4, 0, 1, 8, -1, 2**40, 2**62, np.int64(4), True))

    def extents(self) -> Any:
        values = [self.extent() for _ in range(self.one_of(2, 2, 2, 2, 3, 1, 0, 6))]
        return self.often(self.one_of(tuple(values), values))

    def interface(self) -> Any:
        typestr = self.often(self.one_of("<f4", "<f4", "<f4", ">f4", "<f2", "|i1"))
        described = dict(shape=self.often((4, 4)), typestr=typestr, version=3)
        # Random numbers that could be valid addresses are not used: they would be accepted.
        address = self.one_of(*[self.memory.ctypes.data] * 9, -1, 2**64, 10**5000, None, "x", 1.5, made(__index__=raises))
        described["data"] = self.often((address, self.often(False)))
        if self.random.random() < 0.3:
            described["shape"] = self.extents()
        if self.random.random() < 0.3:
            described["strides"] = self.often(tuple(self.often(self.one_of(16, 4, 3, 0, -4, 2**62)) for _ in range(2)))
        if self.random.random() < 0.2:
            del described[self.one_of("shape", "typestr", "data")]
        return self.often(described)

    def member(self, value: Any) -> Any:
        return property(raises) if self.random.random() < 0.05 else value

    def array(self) -> Any:
        if self.random.random() < 0.4:
            return np.ones((4, 4), self.one_of("f4", "f4", "f4", "f8", "f2", "i1", "c8", ">f4", "O", "M8[s]", "U3"))
        if self.random.random() < 0.1:
            return self.junk()
        members: dict[str, Any] = {}
        if self.random.random() < 0.6:
            members["__array_interface__"] = self.member(self.interface())
        if self.random.random() < 0.5:
            exported = self.often(self.one_of(A, self.memory[:16].reshape(4, 4)))
            can = isinstance(exported, np.ndarray) and exported.dtype == A.dtype
            capsule = (lambda self, **_: exported.__dlpack__()) if can else (lambda self, **_: exported)
            members["__dlpack__"] = self.one_of(capsule, capsule, capsule, raises, self.junk())
        if self.random.random() < 0.3:
            device = self.often((1, 0))
            members["__dlpack_device__"] = self.often(lambda self: device)
        if self.random.random() < 0.5:
            members["shape"] = self.member(self.often((4, 4)))
        if self.random.random() < 0.5:
            members["dtype"] = self.member(self.often(self.one_of(A.dtype, "f4", np.float32)))
        if self.random.random() < 0.1:
            members[self.one_of("mask", "device", "stride", "data_ptr", "__cuda_stream__", "ptr")] = self.junk()
        return made(**members)

    def options(self, **choices: Callable[[], Any]) -> dict[str, Any]:
        return {name: choice() for name, choice in choices.items() if self.random.random() < 0.15}

    def epilogue(self) -> Any:
        graph = tilewright.Epilogue("relu")
        bound = made(_bind=lambda self, *_, junk=self.often((graph, {}, {"alpha": self.often(2.0)})): junk)
        return self.often(self.one_of("relu", "D = acc", "D = acc + row(x)", graph, bound, "D = (", "D = acc" * 99))

    def numbers(self) -> dict[str, Any]:
        number = lambda: self.often(self.one_of(1.0, 2, float("nan"), float("inf"), np.float32(3)))  # noqa: E731
        return self.options(alpha=number, beta=number, math=lambda: self.often("multiply_add"))

    def call(self) -> object:
        """One call with random values."""
        arrays = [self.array() for _ in range(3)]
        given = self.options(epilogue=self.epilogue, accumulator_type=lambda: self.often("float32"), **{})
        if self.random.random() < 0.5:
            out_ = self.options(out=lambda: self.often(np.empty((4, 4), np.float32)), c=self.array)
            return matmul(arrays[0], arrays[1], **given, **self.numbers(), **out_, **self.options(stream=self.junk))
        tensors = self.options(C=self.array, tensors=lambda: self.often({self.often("x"): self.array()}))
        args = GemmArguments(arrays[0], arrays[1], self.often(np.empty((4, 4), np.float32)), **given, **tensors)
        query = self.options(
            metadata_filter=lambda: self.often(lambda metadata: self.junk()),
            target=lambda: self.often(self.one_of("sm_90a", 80, 90)),
            providers=lambda: self.often([self.often("simt_gemm")]),
        )
        kernels = tilewright.find_kernels(args, **query)
        tilewright.explain(args, **{name: value for name, value in query.items() if name == "target"})
        if len(kernels) == 0:
            return None
        run = self.options(artifact=self.junk, stream=self.junk, workspace=self.array)
        return kernels[0].run(args, **run)

    def construct(self) -> object:
        """An object made of random values."""
        tile = self.often((16, 16, 16))
        return self.random.choice(
            [
                lambda: tilewright.ShapeOnly(self.extents(), self.often("f4"), *self.one_of([], [self.extents()])),
                lambda: tilewright.TensorAttributes(self.often("f4"), self.often((0, 0, self.often(1)))),
                lambda: tilewright.Launch(self.extents(), self.extents(), self.often([self.array(), self.junk()])),
                lambda: tilewright.Source(self.often(""), self.often("ptx"), self.often("x"), self.often({"a": "b"})),
                lambda: tilewright.Epilogue(self.often("D = acc * $s"), self.often("f4"), self.often({"s": 2.0})),
                lambda: tilewright.BLASDesignMetadata(tile, **self.options(op_class=self.junk, stages=self.junk)),
                lambda: tilewright.Workspace(self.junk(), self.junk()),
                lambda: tilewright.dtype(self.junk()),
                lambda: tilewright.load_artifact(self.junk()),
                lambda: tilewright.register(self.junk()),
                lambda: tilewright.unregister(self.junk()),
                lambda: tilewright.compile_kernels(self.often([self.junk()])),
                lambda: tilewright.prepare(self.junk(), self.junk()),
                lambda: tilewright.device_target(self.junk()),
                lambda: tilewright.Status.fail(self.junk()).reason,
            ]
        )()


@pytest.mark.parametrize("seed", range(20))
def test_random_objects(seed: int) -> None:
    """Makes a hundred calls for each seed; a failure can be reproduced by the seed and the number of the call."""
    malformed = Malformed(seed)
    results = 0
    for number in range(100):
        try:
            malformed.call() if number % 4 else malformed.construct()
            results += 1
        except (tilewright.Error, TypeError, ValueError, CallersOwn):
            pass
        except Exception as error:
            raise AssertionError(f"call {number} of seed {seed} ends with {error!r}") from error
    assert results > 0
