// The convolution that a command line describes, with random tensors in host memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/op/problem.hpp"

namespace CLI {
class App;
}

namespace tilewright::cli {

struct ConvolutionOptions {
  std::optional<std::int64_t> n, h, w, c, k, r, s;          // r and s: by default 1
  std::string stride = "1", padding = "0", dilation = "1";  // "2" or "2x1": height and width
  std::int64_t groups = 1;
  std::string pass = "fprop", mode = "cross_correlation";
  std::uint64_t seed = 0;
  std::string distribution = "integer";  // or "normal"
  double alpha = 1.0, beta = 0.0;
  std::string dtype = "f32";
  std::string accumulator, out_dtype, math;  // empty: the default for dtype
  std::string epilogue = "linear_combination";
  std::vector<std::string> epilogue_scalars;  // "NAME=NUMBER"
  std::vector<std::string> epilogue_dtypes;   // "NAME=TYPE"
};

/// Adds the options that describe a convolution.
void add_convolution_options(CLI::App& command, ConvolutionOptions& options);

class Convolution {
 public:
  /// Checks the problem. The tensors have no memory yet: their addresses are placeholders with the alignment of device
  /// memory. @throws InvalidArgument with a reason of one line
  explicit Convolution(const ConvolutionOptions& options);

  const op::Conv2d& conv() const { return conv_; }
  /// Allocates every tensor. Inputs are random, outputs NaN. @throws InvalidArgument if the machine has too little
  /// memory
  void materialize();

 private:
  op::Conv2d conv_;
  std::uint64_t seed_;
  bool is_normal_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
};

/// A number for both axes, "2", or a pair, "2x1": height and width. @throws InvalidArgument naming the option
std::array<std::int64_t, 2> parse_pair(const std::string& text, const std::string& option, std::int64_t least);

/// "fprop of 2x8x8x16 by 32x3x3x16: f16, multiply_add accumulated in f32, linear_combination, alpha 1, beta 0"
std::string to_string(const op::Conv2d& conv);

}  // namespace tilewright::cli
