#include "tilewright/plan/sm90/repacking.hpp"

#include <algorithm>

#include "tilewright/base/rounding.hpp"

namespace tilewright::plan {
namespace {

constexpr std::int64_t kLineBytes = 128;  // size of an L2 cache line, to which the lines of a copy are aligned

}  // namespace

bool must_be_repacked(const op::TensorSignature& tensor, bool is_along_k) {
  constexpr int kTmaBytes = 16;
  const int element_bytes = bytes(tensor.element);
  return tensor.alignment * element_bytes < kTmaBytes || (element_bytes != 2 && !is_along_k);
}

std::int64_t RepackedCopy::bytes() const {
  constexpr std::int64_t kSaturated = std::int64_t{1} << 61;
  const std::int64_t matrix_lines = lines * matrices;  // no overflow, because both are below 2^31
  return matrix_lines > kSaturated / std::max<std::int64_t>(pitch, 1) ? kSaturated : matrix_lines * pitch;
}

RepackedCopy repacked_copy(const op::Tensor& tensor, arch::Major major, std::int64_t mn, std::int64_t k) {
  RepackedCopy copy;
  copy.contiguous = major == arch::Major::k ? k : mn;
  copy.lines = major == arch::Major::k ? mn : k;
  copy.matrices = tensor.distinct_matrices();
  copy.pitch = round_up(copy.contiguous * bytes(tensor.dtype), kLineBytes);
  return copy;
}

double bytes_to_copy(const op::Tensor& tensor) {
  const auto matrices = static_cast<double>(tensor.distinct_matrices());
  return matrices * static_cast<double>(tensor.rows()) * static_cast<double>(tensor.columns()) * bytes(tensor.dtype);
}

double moved_bytes(const op::Tensor& tensor, const RepackedCopy& copy, bool is_transposed) {
  // A warp moves up to 512 bytes of each of four lines at once (copy/repacked_lines.cuh) and then waits. 176027 lines
  // of 42 bytes took 25 us longer than their bytes, 280000 of 292 bytes 20 us, 272000 of up to 394 bytes 18 us (H100
  // and H200, 2026-11-26).
  constexpr std::int64_t kShortBytes = 1536;
  constexpr double kShortLineBytes = 300;
  const double moved = bytes_to_copy(tensor) + static_cast<double>(copy.bytes());
  const bool is_short = !is_transposed && copy.contiguous * bytes(tensor.dtype) <= kShortBytes;
  return moved +
         (is_short ? kShortLineBytes * static_cast<double>(copy.lines) * static_cast<double>(copy.matrices) : 0);
}

std::optional<RepackedPieces> repacked_pieces(const op::OperandView& operand) {
  constexpr std::int64_t kVectorBytes = 16;
  if (operand.access != op::OperandAccess::im2col) {
    const op::Tensor& tensor = operand.tensor;
    return RepackedPieces{1, tensor.address == 0 ? 0 : op::view_matrix(tensor, "operand")->ld, tensor.batch_stride()};
  }
  const op::Im2col& im2col = operand.im2col;
  const auto is_whole = [](const op::Im2colAxis& axis) {
    return axis.taps == 1 && axis.is_identity() && axis.positions == axis.extent;
  };
  if (operand.tensor.distinct_matrices() != 1 || im2col.blocks != 1 || !is_whole(im2col.h) || !is_whole(im2col.w))
    return std::nullopt;
  const bool has_one_step =
      im2col.images == 1 || im2col.h.positions == 1 || im2col.image_stride == im2col.h.positions * im2col.h.stride;
  if (!has_one_step || im2col.w.positions * bytes(operand.tensor.dtype) % kVectorBytes != 0) return std::nullopt;
  return RepackedPieces{im2col.images * im2col.h.positions, im2col.w.stride,
                        im2col.h.positions > 1 ? im2col.h.stride : im2col.image_stride};
}

int transposing_bytes(int element_bytes) {
  constexpr int kWords = 32;  // 32-bit words per line of a block
  const int elements = 4 / element_bytes;
  const int depth = elements == 1 ? 32 : 16;  // in words
  return kWords * elements * 4 * (depth + 1);
}

}  // namespace tilewright::plan
