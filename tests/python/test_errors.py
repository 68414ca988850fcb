"""Each exception is derived from Error and from the built-in exception that fits."""

import pickle

import numpy as np
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
    RefusedDesign,
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


def test_a_refused_design_is_explained_by_families_of_its_operation() -> None:
    a = np.ones((64, 64), np.float16)
    design = tilewright.BLASDesignMetadata(
        (64, 64, 33), stages=3, warp_count=(2, 2, 1), op_class="tensor_op", instruction_shape=(16, 8, 16)
    )
    with pytest.raises(RefusedDesign, match="sm80_gemm: tile k 33 is not divisible by the instruction's 16") as raised:
        tilewright.make_kernel(tilewright.GemmArguments(a, a, a.copy()), design)
    assert "skinny_gemm, simt_gemm: needs a simt instruction, got tensor_op" in str(raised.value)
    assert "depthwise_conv" not in str(raised.value)


def test_a_refused_design_has_the_code_of_each_family() -> None:
    a = np.ones((8, 8), np.float32)
    with pytest.raises(RefusedDesign, match="tile m 33 is not divisible by warp count m 2") as raised:
        tilewright.make_kernel(tilewright.GemmArguments(a, a, a.copy()), tilewright.BLASDesignMetadata((33, 32, 8)))
    assert (raised.value.codes["simt_gemm"], raised.value.codes["reduce_split_k"]) == ("design", "operation")
    assert pickle.loads(pickle.dumps(raised.value)).codes == raised.value.codes
