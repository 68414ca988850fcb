"""The commands find, emit, cache, doctor and env; and bad input, on which every command exits with code 2, prints one
line on stderr and writes no output file."""

import json
import re
import struct

import numpy as np
import pytest
from conftest import Tilewright

SMALL = ("--m", 40, "--n", 24, "--k", 16, "--device", "emulator:sm_80")


def expect_refusal(finished, says, code=2):
    assert finished.returncode == code, finished.stdout + finished.stderr
    lines = finished.stderr.strip().splitlines()
    assert len(lines) == 1, finished.stderr
    assert lines[0].startswith("tilewright: ")
    assert says in lines[0]
    assert finished.stdout == ""


def npy(descr="'<f4'", fortran="False", shape="(4, 4)", data=b"\0" * 64, length=None):
    header = f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(header) if length is None else length) + header + data


BAD_FILES = {
    "not_npy": (b"PK\x03\x04 something else", "it is not a .npy file"),
    "empty": (b"", "it is not a .npy file"),
    "cut_in_header": (npy()[:20], "ends inside its header"),
    "truncated": (npy(data=b"\0" * 63), "needs 64 bytes of data, it has 63"),
    "fortran_order": (npy(fortran="True"), "numpy.ascontiguousarray"),
    "wrong_dtype": (npy(descr="'<i8'"), "'<i8'"),
    "big_endian": (npy(descr="'>f4'"), "big endian"),
    "structure": (npy(descr="[('x', '<f4')]"), "structure"),
    "vector": (npy(shape="(16,)"), "1 dimensions"),
    "negative_shape": (npy(shape="(-4, 4)"), "impossible"),
    "overflowing_shape": (npy(shape="(999999999999999999, 999999999999999999)"), "impossible"),
    "absurd_shape": (npy(shape="(1000000000, 1000000000)"), "truncated"),
    "huge_header": (npy(length=65535), "states a length of 65535 bytes"),
    "not_a_dictionary": (b"\x93NUMPY\x01\0" + struct.pack("<H", 8) + b"import x", "not the dictionary"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_file(tilewright, save, tmp_path, name):
    contents, says = BAD_FILES[name]
    bad = tmp_path / "bad.npy"
    bad.write_bytes(contents)
    good = save("good", np.zeros((4, 4), np.float32))
    out = tmp_path / "d.npy"
    expect_refusal(tilewright("gemm", "--a", bad, "--b", good, "--out", out), says)
    assert not out.exists()


BAD_PROBLEMS = {
    "negative": (("--m", -5, "--n", 3, "--k", 2), "--m takes an integer from 0 to 2147483647, got '-5'"),
    "empty_number": (("--m", "", "--n", 3, "--k", 2), "--m takes an integer from 0 to 2147483647, got ''"),
    "negative_batch": ((*SMALL, "--batch", -1), "--batch takes an integer from 0 to 2147483647, got '-1'"),
    "overflowing": (("--m", 2147483647, "--n", 2147483647, "--k", 2147483647), "2^63"),
    "not_an_index": (("--m", 2147483648, "--n", 1, "--k", 1), "to 2147483647, got '2147483648'"),
    "not_a_number": (("--m", "many", "--n", 1, "--k", 1), "--m takes an integer from 0 to 2147483647, got 'many'"),
    "clamped": ((*SMALL, "--lda", "99999999999999999999"), "--lda takes an integer from 1 to 9223372036854775807"),
    "empty_alpha": ((*SMALL, "--alpha", ""), "--alpha takes a number such as -0.5 or 1e-3, or nan, inf or -inf"),
    "infinite_alpha": ((*SMALL, "--alpha", "1e400"), "--alpha takes a number that is 0 or has a magnitude"),
    "alpha_beyond_f32": ((*SMALL, "--alpha", "-1e39"), "alpha is -1e+39, beyond the range of the epilogue's compute type f32"),
    "beta_beyond_f32": ((*SMALL, "--beta", "1e39", "--verify"), "beta is 1e+39, beyond the range of the epilogue's compute type f32"),
    "scalar": (
        (*SMALL, "--epilogue", "D = $x * acc", "--epilogue-scalar", "x= 1"),
        "--epilogue-scalar x takes a number such as -0.5",
    ),
    "scalar_beyond_f32": (
        (*SMALL, "--epilogue", "D = $x * acc", "--epilogue-scalar", "x=1e39"),
        "x is 1e+39, beyond the range",
    ),
    "too_large": (("--m", 1000000, "--n", 1000000, "--k", 1), "MiB"),
    "missing_extent": (("--m", 4, "--n", 4), "--k is missing"),
    "nothing": ((), "--m is missing"),
    "ld_too_small": ((*SMALL, "--lda", 15), "leading dimension of at least 16, got 15"),
    "ld_negative": ((*SMALL, "--ldd", -24), "--ldd takes an integer from 1 to 9223372036854775807, got '-24'"),
    "unknown_dtype": (
        (*SMALL, "--dtype", "f12"),
        "unknown type 'f12'; the types are f64 f32 tf32 f16 bf16 s32 s8 u8 e4m3 e5m2",
    ),
    "integer_input": ((*SMALL, "--dtype", "s32"), "A and B must be"),
    "accumulator": ((*SMALL, "--dtype", "f16", "--accumulator", "s32"), "accumulate in f32 or f16, got s32"),
    "out_dtype": ((*SMALL, "--dtype", "f64", "--out-dtype", "s8"), "is s8, which is not supported with f64"),
    "math_of_f16": ((*SMALL, "--dtype", "f16", "--math", "multiply_add_tf32"), "takes f32 operands, got f16"),
    "unknown_math": ((*SMALL, "--math", "divide"), "--math: unknown operation 'divide': it must be multiply_add, "),
    "unknown_epilogue": ((*SMALL, "--epilogue", "mish"), "unknown epilogue 'mish'"),
    "epilogue_of_s32": ((*SMALL, "--dtype", "s8", "--epilogue", "gelu"), "compute type s32"),
    "fraction_of_s32": ((*SMALL, "--dtype", "s8", "--alpha", "0.5"), "32-bit integer"),
    "unknown_kernel": ((*SMALL, "--kernel", "sm99_gemm"), "the nearest names are "),
    "refused_kernel": (
        (*SMALL, "--kernel", "simt", "--batch-invariant", "--epilogue", "D = acc; row(s) = sum(acc)"),
        "that is batch_invariant",
    ),
    "unused_alpha": ((*SMALL, "--alpha", 2, "--epilogue", "D = acc"), "--alpha 2 has no effect: the epilogue does not use 'alpha'"),
    "unused_beta": ((*SMALL, "--beta", 3, "--epilogue", "D = acc"), "--beta 3 has no effect: the epilogue does not use 'beta'"),
    "unused_scalar": (
        (*SMALL, "--epilogue", "D = $x * acc", "--epilogue-scalar", "x=1", "--epilogue-scalar", "y=2"),
        "--epilogue-scalar y has no effect: the epilogue does not use 'y'",
    ),
    "scalar_of_a_name": (
        (*SMALL, "--epilogue", "relu", "--epilogue-scalar", "y=2"),
        "--epilogue-scalar y has no effect: the epilogue does not use 'y'",
    ),
    "unknown_device": ((*SMALL[:6], "--device", "abacus"), "unknown device 'abacus'"),
    "unknown_target": ((*SMALL[:6], "--device", "emulator:sm_70"), "unknown target 'sm_70'"),
    "tile_shape": ((*SMALL, "--tile", "128x128"), "--tile must be three positive numbers"),
    "tile_indivisible": ((*SMALL, "--tile", "100x100x8"), "divisible"),
    "too_much_smem": ((*SMALL, "--tile", "128x128x32", "--stages", 20), "shared memory"),
    "no_such_instruction": ((*SMALL, "--tile", "128x128x32", "--instruction", "16x8x5"), "16x8x5"),
    "unknown_op_class": ((*SMALL, "--tile", "128x128x8", "--op-class", "abacus"), "simt or tensor_op"),
    "design_without_tile": ((*SMALL, "--stages", 3), "--stages is a part of an explicit design, which needs --tile"),
    "two_kernels": ((*SMALL, "--tile", "128x128x8", "--kernel", "simt"), "not both"),
    "unknown_option": ((*SMALL, "--frobnicate"), "--frobnicate"),
    "unknown_fill": ((*SMALL, "--distribution", "sand"), "must be integer or normal"),
    "control_characters": ((*SMALL, "--kernel", "x\n\x1b[31my"), "no kernel"),
}


@pytest.mark.parametrize("name", BAD_PROBLEMS)
def test_bad_problem(tilewright, tmp_path, name):
    arguments, says = BAD_PROBLEMS[name]
    out = tmp_path / "d.npy"
    expect_refusal(tilewright("gemm", *arguments, "--out", out), says)
    assert list(tmp_path.iterdir()) == []


def test_files_that_do_not_fit_together(tilewright, save, tmp_path):
    a = save("a", np.zeros((4, 5), np.float32))
    b = save("b", np.zeros((4, 6), np.float32))
    half = save("half", np.zeros((5, 6), np.float16))
    expect_refusal(tilewright("gemm", "--a", a, "--b", b), "columns of A and rows of B differ: (4,5) and (4,6)")
    expect_refusal(tilewright("gemm", "--a", a, "--b", half), "A is f32 and B is f16")
    expect_refusal(tilewright("gemm", "--a", a), "--a and --b must be given together")
    expect_refusal(tilewright("gemm", "--a", a, "--b", b, "--m", 4), "not both")
    expect_refusal(tilewright("gemm", "--a", half, "--b", half, "--dtype", "bf16"), "only files of f32 are converted")
    fit = save("fit", np.zeros((5, 6), np.float32))
    expect_refusal(tilewright("gemm", "--a", a, "--b", fit, "--beta", 1), "--c is missing")
    expect_refusal(tilewright("gemm", "--a", a, "--b", fit, "--c", fit, "--beta", 1), "shapes of C and D differ")
    with_c = ("gemm", "--a", a, "--b", fit, "--c", fit)
    expect_refusal(tilewright(*with_c), "--c has no effect: beta is 0 unless --beta is given")
    expect_refusal(tilewright(*with_c, "--epilogue", "D = acc"), "--c has no effect: the epilogue does not read C")
    expect_refusal(tilewright("gemm", "--a", tmp_path / "none.npy", "--b", b), "cannot be opened")


def test_output_that_cannot_be_written(tilewright, tmp_path):
    expect_refusal(tilewright("gemm", *SMALL, "--out", tmp_path / "missing" / "d.npy"), "cannot be written")
    expect_refusal(tilewright("gemm", *SMALL, "--out", tmp_path), "not the name of a file")


def test_missing_gpu(tilewright):
    finished = tilewright("gemm", *SMALL[:6], "--device", "cuda:99")
    assert finished.returncode in (2, 3)  # 2: there are GPUs, but not that many
    assert len(finished.stderr.strip().splitlines()) == 1


def test_no_command(tilewright):
    assert tilewright().returncode == 2
    assert tilewright("frobnicate").returncode == 2
    assert tilewright("--help").returncode == 0
    assert tilewright("gemm", "--help").returncode == 0


def test_find_ranks_and_explains(tilewright):
    finished = tilewright("find", "--m", 512, "--n", 512, "--k", 63, "--dtype", "f16", "--target", "sm_80", "--json")
    assert finished.returncode == 0, finished.stderr
    found = json.loads(finished.stdout)
    names = [kernel["name"] for kernel in found["kernels"]]
    assert names and len(set(names)) == len(names)
    estimates = [kernel["estimate_us"] for kernel in found["kernels"]]
    assert estimates == sorted(estimates)
    assert all(refused["name"] and refused["reason"] for refused in found["refused"])
    assert found["target"] == "sm_80"
    text = tilewright("find", "--m", 512, "--n", 512, "--k", 63, "--dtype", "f16", "--explain").stdout
    assert "refused" in text


FEW_ROWS = ("--m", 8, "--n", 64, "--k", 8192, "--dtype", "f16", "--device", "emulator:sm_90a")


def test_required_promises(tilewright):
    free = json.loads(tilewright("find", *FEW_ROWS, "--json").stdout)
    assert free["kernels"][0]["metadata"]["promises"] == {"deterministic": True, "batch_invariant": True}
    assert free["kernels"][0]["metadata"]["design"]["split_k"] > 1
    assert "required" not in free
    bound = json.loads(tilewright("find", *FEW_ROWS, "--json", "--batch-invariant", "--deterministic").stdout)
    assert bound["kernels"] and all(each["metadata"]["design"]["split_k"] == 1 for each in bound["kernels"])
    assert bound["required"]["order"] == "wgmma 64x0x16 over 8192"
    assert bound["required"]["unrestricted_us"] == free["kernels"][0]["estimate_us"]
    text = tilewright("find", *FEW_ROWS, "--batch-invariant").stdout
    assert "required  batch_invariant: the best kernel takes" in text
    chosen = json.loads(tilewright("gemm", *FEW_ROWS, "--batch-invariant", "--json").stdout)["kernel"]
    assert chosen == bound["kernels"][0]["name"]
    by_variable = Tilewright({"TILEWRIGHT_BATCH_INVARIANT": "1"})("find", *FEW_ROWS, "--json")
    assert json.loads(by_variable.stdout)["kernels"][0]["name"] == chosen
    split = ("--tile", "64x64x64", "--warps", "4x1x1", "--stages", 4, "--instruction", "64x64x16", "--split-k", 2)
    assert tilewright("emit", *FEW_ROWS, *split, "--deterministic").returncode == 0
    expect_refusal(tilewright("emit", *FEW_ROWS, *split, "--batch-invariant"), "batch_invariant requires [wgmma 64x0x16")


def test_every_ranked_name_is_accepted_by_gemm(tilewright):
    found = json.loads(tilewright("find", *SMALL, "--json").stdout)
    for kernel in found["kernels"]:
        finished = tilewright("gemm", *SMALL, "--kernel", kernel["name"], "--verify", "--json")
        assert finished.returncode == 0, finished.stderr
        outcome = json.loads(finished.stdout)
        assert outcome["kernel"] == kernel["name"]
        assert outcome["verify"]["exact"]


def test_emit(tilewright, tmp_path):
    source = tilewright("emit", *SMALL).stdout
    assert '#include "tilewright/' in source and 'extern "C"' in source and "static_assert" in source
    ptx = tilewright("emit", *SMALL, "--ptx").stdout
    assert ".visible .entry" in ptx and ".target sm_80" in ptx
    cubin = tmp_path / "kernel.cubin"
    numbers = json.loads(tilewright("emit", *SMALL, "--stats", "--json").stdout)
    assert numbers["registers"] > 0 and numbers["spill_bytes"] == 0 and len(numbers["grid"]) == 3
    refused = tilewright("emit", *SMALL, "--json")
    assert refused.returncode == 2 and "--json needs --stats" in refused.stderr
    stats = tilewright("emit", *SMALL, "--stats", "--cubin", cubin)
    assert stats.returncode == 0, stats.stderr
    for figure in ("registers", "spills", "shared memory"):
        assert figure in stats.stdout
    assert "unknown" not in stats.stdout
    assert cubin.read_bytes().startswith(b"\x7fELF")


def test_cache(tmp_path):
    here = Tilewright({"TILEWRIGHT_CACHE_DIR": str(tmp_path / "here")})
    there = Tilewright({"TILEWRIGHT_CACHE_DIR": str(tmp_path / "there")})
    first, second = (json.loads(here("gemm", *SMALL, "--json").stdout) for _ in range(2))
    assert first["binary"]["from"] == "compiled"
    assert second["binary"]["from"] == "disk"
    assert first["kernel"] in here("cache", "ls").stdout
    assert "1 intact, 0 damaged" in here("cache", "verify").stdout

    bundle = tmp_path / "compiled_cache.db"
    assert here("cache", "export", bundle).returncode == 0
    assert there("cache", "import", bundle).returncode == 0
    assert json.loads(there("gemm", *SMALL, "--json").stdout)["binary"]["from"] == "disk"

    entry = next((tmp_path / "here").rglob("*.twk"))
    entry.write_bytes(entry.read_bytes()[:100])
    assert json.loads(here("gemm", *SMALL, "--json").stdout)["binary"]["from"] == "compiled"
    assert here("cache", "clear").returncode == 0
    assert "0 kernels" in here("cache", "ls").stdout
    expect_refusal(here("cache", "import", "/dev/null"), "is a device, not a regular file")


def test_doctor(tilewright):
    finished = tilewright("doctor", "--json")
    assert finished.returncode == 0, finished.stderr
    findings = {finding["what"]: finding for finding in json.loads(finished.stdout)}
    assert findings["NVRTC"]["found"] and findings["NVRTC"]["detail"].startswith("/")
    assert findings["emulator"]["found"]
    if findings["MLIR"]["found"]:
        assert "libtilewright_mlir.so (LLVM 22." in findings["MLIR"]["detail"]
        assert "assembled by /" in findings["MLIR"]["detail"]
    without = Tilewright({"TILEWRIGHT_MLIR_LIBRARY": "/no/such.so"})("doctor")
    assert without.returncode == 0
    assert re.search(r"^absent +MLIR +not found\n +looked in /no/such.so\n +to install: apt-get install libmlir-22-dev",
                     without.stdout, re.M), without.stdout
    assert tilewright("doctor").stdout.startswith("ok")


def test_env():
    finished = Tilewright({"TILEWRIGHT_JOBS": "3", "TILEWRIGHT_JBOS": "4"})("env")
    assert finished.returncode == 0, finished.stderr
    assert re.search(r"^TILEWRIGHT_JOBS +set +3 ", finished.stdout, re.M), finished.stdout
    assert "warning: TILEWRIGHT_JBOS is set, but Tilewright reads no variable of this name\n" in finished.stdout
    finished = Tilewright({"TILEWRIGHT_JOBS": "many"})("env")
    assert finished.returncode == 2
    assert re.search(r"^TILEWRIGHT_JOBS +set +many ", finished.stdout, re.M), finished.stdout
    assert finished.stderr == "tilewright: TILEWRIGHT_JOBS must be a number of at least 0, got 'many'\n"
