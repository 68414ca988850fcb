"""Each exception is derived from Error and from the built-in exception that fits."""

import pickle

import pytest

import tilewright
from tilewright.errors import (
    CompileError,
    DriverError,
    EmulationError,
    Error,
    InternalError,
    InvalidArgument,
    OutOfMemory,
    ToolchainNotFound,
    Unsupported,
)


@pytest.mark.parametrize(
    "error, builtin",
    [
        (InvalidArgument, ValueError),
        (Unsupported, NotImplementedError),
        (CompileError, RuntimeError),
        (DriverError, RuntimeError),
        (OutOfMemory, MemoryError),
        (ToolchainNotFound, RuntimeError),
        (EmulationError, RuntimeError),
    ],
)
def test_each_error_is_derived_from_a_builtin_exception(error: type[Error], builtin: type[Exception]) -> None:
    assert issubclass(error, Error) and issubclass(error, builtin)
    assert getattr(tilewright, error.__name__) is error
    with pytest.raises(builtin, match="k is 63"):
        raise error("k is 63")


def test_an_internal_error_is_not_a_tilewright_error() -> None:
    assert not issubclass(InternalError, Error)


def test_driver_errors_carry_their_code() -> None:
    error = DriverError("cuLaunchKernel: CUDA_ERROR_INVALID_VALUE", 1)
    assert (error.code, str(error)) == (1, "cuLaunchKernel: CUDA_ERROR_INVALID_VALUE")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.code, str(again)) == (DriverError, 1, str(error))
