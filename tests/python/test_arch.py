"""tilewright.arch: the numbers that nvcute's tests ask for, and those that it gets wrong."""

import pytest

from tilewright import InvalidArgument, arch
from tilewright.layout import Layout, size

F16 = ("f16", "f16", "f32")


def tiled_mma(m: int, n: int, k: int, a_major: str, b_major: str, instruction_n: int = 128) -> arch.TiledMma:
    a, b = arch.smem_tile(a_major, "f16", m, k), arch.smem_tile(b_major, "f16", n, k)
    return arch.TiledMma(arch.wgmma_atom(*F16), instruction_n, a, b, a_major=a_major, b_major=b_major)


def canonical(major: str, mn: int, k: int) -> arch.TiledCopy:
    return arch.TiledCopy(Layout((mn, k), (k, 1) if major == "k" else (1, mn)), "f16")


def descriptor(major: str, mn: int, k: int) -> arch.SmemDescriptor:
    """Of the first instruction, which has all of mn, as B."""
    a, b = arch.smem_tile("k", "f16", 64, k), arch.smem_tile(major, "f16", mn, k)
    return arch.TiledMma(arch.wgmma_atom(*F16), mn, a, b, b_major=major).desc_b


@pytest.mark.parametrize(
    ("major", "mn", "k", "bits", "lbo", "sbo"),
    [
        ("k", 64, 64, 0x4000004000010000, 16, 1024),
        ("k", 128, 64, 0x4000004000010000, 16, 1024),
        ("mn", 128, 64, 0x4000004002000000, 8192, 1024),
        ("mn", 128, 32, 0x4000004001000000, 4096, 1024),
        ("mn", 128, 16, 0x4000004000800000, 2048, 1024),
    ],
)
def test_descriptors_of_nvcute(major: str, mn: int, k: int, bits: int, lbo: int, sbo: int) -> None:
    found = descriptor(major, mn, k)
    assert (found.bits, int(found)) == (bits, bits)
    assert (found.leading_byte_offset, found.stride_byte_offset, found.swizzle, found.swizzle_mode) == (lbo, sbo, 128, 1)
    assert arch.SmemDescriptor.decode(bits) == found == arch.make_gmma_desc(canonical(major, mn, k))


@pytest.mark.parametrize(
    ("major", "mn", "k", "pitchlinear", "smem"),
    [
        ("k", 64, 64, Layout((64, 64), (1, 64)), Layout((64, 64), (64, 1))),
        ("mn", 64, 64, Layout((64, 64), (1, 64)), Layout((64, 64), (1, 64))),
        ("k", 128, 64, Layout((64, 128), (1, 64)), Layout((128, 64), (64, 1))),
        ("mn", 128, 64, Layout(((64, 2), 64), ((1, 4096), 64)), Layout(((64, 2), 64), ((1, 4096), 64))),
    ],
)
def test_tiled_copies_of_nvcute(major: str, mn: int, k: int, pitchlinear: Layout, smem: Layout) -> None:
    copy = canonical(major, mn, k)
    assert (copy.pitchlinear_layout, copy.smem_layout) == (pitchlinear, smem)
    assert (copy.is_MN_major, copy.swizzle) == (major == "mn", 128)
    boxes = mn // 64 if major == "mn" else 1
    assert (copy.num_boxes, copy.box_shape) == (boxes, (64, 64 if major == "mn" else mn))
    assert copy.box_bytes * boxes == mn * k * 2


@pytest.mark.parametrize(("k", "swizzle", "mode", "sbo"), [(32, 64, 2, 512), (16, 32, 3, 256)])
def test_narrower_swizzles(k: int, swizzle: int, mode: int, sbo: int) -> None:
    found = descriptor("k", 64, k)
    assert (found.swizzle, found.swizzle_mode, found.stride_byte_offset) == (swizzle, mode, sbo)
    assert found.bits & ~(0x3FFF << 16) == (mode << 62) | (sbo // 16 << 32)


@pytest.mark.parametrize(
    ("m", "n", "k", "a", "b", "count", "advance"),  # bytes along k of A and B, along m of A, along n of B
    [
        (64, 128, 64, "k", "mn", (1, 1, 4), (32, 2048, 0, 0)),
        (128, 128, 64, "k", "mn", (2, 1, 4), (32, 2048, 8192, 0)),
        (128, 128, 64, "k", "k", (2, 1, 4), (32, 32, 8192, 0)),
        (128, 128, 64, "mn", "mn", (2, 1, 4), (2048, 2048, 8192, 0)),
        (128, 256, 64, "mn", "mn", (2, 2, 4), (2048, 2048, 8192, 16384)),
        # nvcute repeats tuples here, because k spans two swizzle atoms.
        (128, 128, 128, "k", "k", (2, 1, 8), ((0, 32, 64, 96, 16384, 16416, 16448, 16480),) * 2 + (8192, 0)),
    ],
)
def test_tiled_mma_of_nvcute(m: int, n: int, k: int, a: str, b: str, count: object, advance: object) -> None:
    mma = tiled_mma(m, n, k, a, b)
    assert mma.mma_count == count
    assert (mma.advance_k_byte_a, mma.advance_k_byte_b, mma.advance_m_byte_a, mma.advance_n_byte_b) == advance
    assert (mma.trans_a, mma.trans_b) == (a == "mn", b == "mn")


def test_the_seeds_example() -> None:
    """A CTA tile of 64x128x64 by wgmma of 64x128x16, A K-major and B MN-major."""
    mma = tiled_mma(64, 128, 64, "k", "mn")
    assert (mma.desc_a.leading_byte_offset, mma.desc_a.stride_byte_offset) == (16, 1024)
    assert (mma.desc_b.leading_byte_offset, mma.desc_b.stride_byte_offset) == (8192, 1024)
    at = 4096
    assert mma.descriptor_a(0, 1, at) == mma.desc_a.bits + (at + 32) // 16
    assert mma.descriptor_b(0, 3, at) == mma.desc_b.bits + (at + 3 * 2048) // 16
    a = canonical("k", 64, 64).tma(Layout((4096, 512), (512, 1)))
    b = arch.TmaCopy(Layout((4096, 512), (1, 4096)), "f16", arch.smem_tile("mn", "f16", 128, 64), (128, 64))
    assert (a.box_shape, a.num_boxes, a.box_bytes, a.swizzle) == ((64, 64), 1, 8192, 128)
    assert (b.box_shape, b.num_boxes, b.transaction_bytes) == ((64, 64), 2, 128 * 64 * 2)
    assert (b.coordinate((128, 64), 1), b.smem_bytes(1)) == ([192, 64], 64 * 64 * 2)
    assert a.coordinate((64, 128)) == [128, 64]
    assert (a.extents, a.strides[1]) == ((512, 4096), 1024)


def test_atoms_and_fragments() -> None:
    atom = arch.mma_atom(16, 8, 16, "f16", "f16", "f32")
    assert (atom.shape_mnk, atom.threads, atom.a_registers, atom.c_registers) == ((16, 8, 16), 32, 4, 4)
    assert atom.layout_c_tv == arch.fragment(16, 8, 2)
    instruction = arch.wgmma_atom(*F16, "registers").instruction(128)
    assert (instruction.shape_mnk, instruction.threads, instruction.c_registers) == ((64, 128, 16), 128, 64)
    assert size(instruction.layout_c_tv) == 64 * 128
    assert instruction.layout_c_tv(0, 1) == 64  # the second value is in the next column
    assert atom in arch.mma_atoms() and len(arch.wgmma_atoms()) > 10


def test_refusals_have_the_number() -> None:
    with pytest.raises(InvalidArgument, match="m16n8k4 of f16 and f16 with f32 accumulators; it has m16n8k8"):
        arch.mma_atom(16, 8, 4, *F16)
    with pytest.raises(InvalidArgument, match="does not multiply f64 and f64"):
        arch.wgmma_atom("f64", "f64", "f64")
    with pytest.raises(InvalidArgument, match="100"):
        tiled_mma(64, 128, 64, "k", "mn", instruction_n=100)
    with pytest.raises(InvalidArgument, match="got 48"):
        arch.smem_tile("k", "f16", 64, 64, swizzle=48)
    with pytest.raises(InvalidArgument, match="major is"):
        arch.smem_tile("m", "f16", 64, 64)


def test_only_tiles_without_gaps_are_copied():
    for layout, message in (
        (Layout((64, 64), (72, 1)), r"strides \(64,1\) or \(1,64\) for mn = 64 and k = 64, got \(64,64\):\(72,1\)"),
        (Layout((64, 64), (128, 2)), "TMA copies tiles without gaps"),
        (Layout((64, 32, 2), (32, 1, 2048)), r"must have two modes, \(mn, k\), got \(64,32,2\)"),
        (Layout(64, 1), "must have two modes"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            arch.TiledCopy(layout, "f16")
    assert canonical("k", 128, 64).pitchlinear_shape == (64, 128)
    assert canonical("mn", 128, 64).pitchlinear_shape == (128, 64)
    nested = arch.TiledCopy(Layout(((64, 2), 64), ((1, 64), 128)), "f16")
    assert nested.is_MN_major and nested.smem_layout == canonical("mn", 128, 64).smem_layout
