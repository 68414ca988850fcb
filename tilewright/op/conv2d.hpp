// A two-dimensional convolution and its two gradients.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tilewright/op/gemm.hpp"
#include "tilewright/op/gemm_view.hpp"

namespace tilewright::op {

/// The pass: fprop computes y from x and w, dgrad the gradient of x from that of y and w, wgrad the gradient of w from
/// that of y and x.
enum class ConvPass : std::uint8_t { fprop, dgrad, wgrad };
std::string_view name(ConvPass pass);  // "fprop"

/// cross_correlation multiplies pixel p * stride - padding + r * dilation with tap r; convolution reads the filter in
/// reverse order, so that this pixel is multiplied with tap R - 1 - r.
enum class ConvMode : std::uint8_t { cross_correlation, convolution };
std::string_view name(ConvMode mode);  // "cross_correlation"

/// Pairs are (height, width). P and Q are those of y. They need not follow from the other extents: pixels outside of x
/// are zeros, and pixels of x that no output needs are not used.
struct Conv2d {
  ConvPass pass = ConvPass::fprop;
  /// All four have contiguous channels, and the other modes may have any strides, as far as the pass allows: see
  /// validate(). The pass writes one of x, w and y, where x and y of the gradients are gradients.
  /// In fprop of s8 and u8 the channels may be in blocks of 32, as in CUTLASS's TensorNC32HW32 and TensorC32RSK32:
  /// x (N, C/32, H, W, 32) and w (C/32, R, S, K, 32), and, independently of these, y and C (N, K/32, P, Q, 32).
  Tensor x;  // (N, H, W, C)
  Tensor w;  // (K, R, S, C / groups)
  Tensor y;  // (N, P, Q, K), or (N, P, Q, K/2) if the epilogue pairs channels
  Tensor c;  // like the written tensor; may be absent unless the epilogue reads it and its gate (beta) is not 0
  std::array<std::int64_t, 2> padding{0, 0};  // zeros above and to the left of x
  std::array<std::int64_t, 2> stride{1, 1}, dilation{1, 1};
  std::int64_t groups = 1;
  ConvMode mode = ConvMode::cross_correlation;
  double alpha = 1.0, beta = 0.0;
  DType accumulator = DType::f32;
  MathOperation math = MathOperation::multiply_add;
  Epilogue epilogue = linear_combination();
  /// The auxiliary tensors of the epilogue, in any order, with the modes of the written tensor. The extents of modes
  /// along which a tensor is broadcast are 1: a bias of fprop is (1, 1, 1, K), or (1, K/32, 1, 1, 32) if y has blocks
  /// of channels. N, P and Q (dgrad: N, H, W; wgrad: R, S, C) are broadcast together or not at all.
  std::vector<NamedTensor> tensors = {};

  const Tensor& written() const { return pass == ConvPass::fprop ? y : pass == ConvPass::dgrad ? x : w; }
  Tensor& written() { return pass == ConvPass::fprop ? y : pass == ConvPass::dgrad ? x : w; }
  /// "x", "w" or "y"
  std::string_view written_name() const { return pass == ConvPass::fprop ? "y" : pass == ConvPass::dgrad ? "x" : "w"; }
  /// Whether the written tensor is empty, so that there is nothing to compute.
  bool is_empty() const { return written().is_empty(); }

  bool operator==(const Conv2d&) const = default;
};

/// A packed tensor of four modes.
Tensor packed_tensor(std::uint64_t address, DType dtype, const Dims& shape, MemoryDevice device = {});

/// P, or Q, of a convolution whose input has `extent` pixels and `padding` zeros on each side; 0 if the filter does not
/// fit.
std::int64_t conv_positions(std::int64_t extent, std::int64_t padding_before, std::int64_t padding_after,
                            std::int64_t taps, std::int64_t stride, std::int64_t dilation);

/// Refuses wrong ranks, extents, strides and types. The written tensor, y of wgrad, and the filter of fprop must be
/// matrices: their modes except the channels (of y and x) or K (of w) have one stride. With blocks of channels, w has
/// no gaps between its filters, nor between its blocks and taps, and y may have any. Accepts empty tensors.
Support validate(const Conv2d& conv);

/// The operands: the two inputs, C, the output, then the auxiliary tensors in the problem's order. Their names are "x",
/// "w", "y" and "C".
std::vector<Operand> operands(Conv2d& conv);
std::vector<ConstOperand> operands(const Conv2d& conv);

/// The convolution as a GEMM, whose batch are the groups; see Im2col. A convolution of single pixels has strided
/// operands. The view refers to `conv`. @pre validate(conv)
GemmView view(const Conv2d& conv);

}  // namespace tilewright::op
