#include "tools/cli/convolution.hpp"

#include <sys/sysinfo.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <utility>

#include "tilewright/base/error.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/op/epilogue_tensors.hpp"
#include "tilewright/op/epilogue_text.hpp"
#include "tilewright/op/fill.hpp"
#include "tools/cli/epilogue_scalars.hpp"
#include "tools/cli/number.hpp"
#include "tools/cli/type_names.hpp"

namespace tilewright::cli {
namespace {

constexpr std::uint64_t kAlignment = 256;  // bytes, the alignment of the device's memory pool
constexpr std::uint64_t kPlaceholder = std::uint64_t{1}
                                       << 50;  // bytes between the placeholder addresses of two tensors
constexpr std::int64_t kMaxExtent = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxElements = std::int64_t{1} << 42;

constexpr const char* kProblem = "Convolution";
constexpr const char* kTypes = "Types and math";
constexpr const char* kEpilogue = "Epilogue";

template <class Enum, std::size_t count>
Enum read_name(const std::string& text, const char* option, const std::array<Enum, count>& all) {
  std::string names;
  for (const Enum each : all) {
    if (op::name(each) == text) return each;
    names += fmt::format("{}{}", names.empty() ? "" : each == all.back() ? " or " : ", ", op::name(each));
  }
  throw InvalidArgument(fmt::format("{} must be {}, got '{}'", option, names, printable(text, 40)));
}

std::map<std::string, std::string> assignments(const char* option, const std::vector<std::string>& texts) {
  std::map<std::string, std::string> all;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (equals == std::string::npos || !is_identifier(name))
      throw InvalidArgument(fmt::format("{} takes NAME=VALUE, got '{}'", option, printable(text, 60)));
    if (!all.emplace(name, text.substr(equals + 1)).second)
      throw InvalidArgument(fmt::format("{} gives '{}' twice", option, name));
  }
  return all;
}

std::int64_t required(const std::optional<std::int64_t>& extent, const char* option) {
  if (!extent) throw InvalidArgument(fmt::format("{} is missing: --n, --h, --w, --c and --k are required", option));
  return *extent;
}

/// A packed tensor at the placeholder address of this number.
op::Tensor placeholder(std::size_t number, DType type, const op::Dims& shape) {
  std::int64_t elements = 1;
  for (int mode = 0; mode < shape.rank(); ++mode) {
    if (shape[mode] != 0 && elements > kMaxElements / shape[mode])
      throw InvalidArgument(fmt::format("a tensor of shape {} is larger than any memory", op::to_string(shape)));
    elements *= shape[mode];
  }
  return op::packed_tensor(kPlaceholder * (number + 1), type, shape);
}

/// Sets x, w and y, the numbers of the convolution, and its types.
void set_problem(op::Conv2d& conv, const ConvolutionOptions& options) {
  using enum op::ConvPass;
  const std::int64_t n = required(options.n, "--n"), h = required(options.h, "--h"), w = required(options.w, "--w"),
                     c = required(options.c, "--c"), k = required(options.k, "--k"), r = options.r.value_or(1),
                     s = options.s.value_or(1);
  conv.pass = read_name(options.pass, "--pass", std::array{fprop, dgrad, wgrad});
  conv.mode = read_name(options.mode, "--mode", std::array{op::ConvMode::cross_correlation, op::ConvMode::convolution});
  conv.stride = parse_pair(options.stride, "--stride", 1);
  conv.padding = parse_pair(options.padding, "--padding", 0);
  conv.dilation = parse_pair(options.dilation, "--dilation", 1);
  conv.groups = options.groups;
  for (const auto& [option, count] : {std::pair{"--c", c}, {"--k", k}}) {
    if (count % conv.groups != 0)
      throw InvalidArgument(fmt::format("{} must be a multiple of --groups {}, got {}", option, conv.groups, count));
  }
  std::array<std::int64_t, 2> positions{};
  for (const auto& [axis, extent, taps, name] : {std::tuple{0U, h, r, "--r"}, {1U, w, s, "--s"}}) {
    positions[axis] = op::conv_positions(extent, conv.padding[axis], conv.padding[axis], taps, conv.stride[axis],
                                         conv.dilation[axis]);
    if (positions[axis] != 0 || extent == 0) continue;
    throw InvalidArgument(fmt::format(
        "the filter does not fit: {} {} with --dilation {} covers {} pixels of {} with "
        "padding",
        name, taps, conv.dilation[axis], (taps - 1) * conv.dilation[axis] + 1, extent + 2 * conv.padding[axis]));
  }
  const bool is_tf32 = parse_dtype(options.dtype) == DType::tf32;
  const DType type = is_tf32 ? DType::f32 : parse_type("--dtype", options.dtype);
  const DType output =
      options.out_dtype.empty() ? op::default_output(type) : parse_type("--out-dtype", options.out_dtype);
  const auto type_of = [&](op::ConvPass writer) { return conv.pass == writer ? output : type; };
  conv.x = placeholder(0, type_of(dgrad), {n, h, w, c});
  conv.w = placeholder(1, type_of(wgrad), {k, r, s, c / conv.groups});
  conv.y = placeholder(2, type_of(fprop), {n, positions[0], positions[1], k});
  conv.accumulator =
      options.accumulator.empty() ? op::default_accumulator(type) : parse_type("--accumulator", options.accumulator);
  if (is_tf32) conv.math = op::MathOperation::multiply_add_tf32;
  if (!options.math.empty()) conv.math = parse_math("--math", options.math);
}

void set_epilogue(op::Conv2d& conv, const ConvolutionOptions& options) {
  const DType output = conv.written().dtype, compute = op::default_compute(conv.accumulator, output);
  std::map<std::string, double> scalars;
  for (const auto& [name, text] : assignments("--epilogue-scalar", options.epilogue_scalars))
    scalars[name] = parse_real("--epilogue-scalar " + name, text);
  const bool is_name = options.epilogue.find('=') == std::string::npos;
  if (is_name && !scalars.empty()) throw InvalidArgument("--epilogue-scalar is for an --epilogue that is a text");
  conv.epilogue = is_name ? op::named_epilogue(options.epilogue, output, compute).value_or_throw()
                          : op::parse_epilogue(options.epilogue, compute, scalars).value_or_throw();
  check_uses_scalars(conv.epilogue, options.alpha, options.beta, scalars);
  conv.alpha = options.alpha;
  conv.beta = options.beta;
  if (conv.epilogue.columns_per_element() != 1 && conv.pass == op::ConvPass::fprop)
    conv.y = placeholder(2, output, {conv.y.shape[0], conv.y.shape[1], conv.y.shape[2], conv.y.shape[3] / 2});
  constexpr std::size_t kNumberOfC = 3;
  if (conv.epilogue.reads_source()) conv.c = placeholder(kNumberOfC, output, conv.written().shape);
}

/// Adds the tensors of the epilogue: each has the extents of the output, or 1 where it is broadcast.
void add_epilogue_tensors(op::Conv2d& conv, const ConvolutionOptions& options) {
  std::map<std::string, std::string> types = assignments("--epilogue-dtype", options.epilogue_dtypes);
  op::Dims whole = conv.written().shape;
  if (conv.pass == op::ConvPass::fprop) whole[3] = conv.w.shape[0];
  const int row_modes = conv.pass == op::ConvPass::wgrad ? 1 : 3;
  std::size_t number = 4;
  for (const op::EpilogueTensor& each : op::epilogue_tensors(conv.epilogue)) {
    DType type = conv.epilogue.compute;
    if (const auto given = types.extract(std::string(each.label)))
      type = parse_type("--epilogue-dtype", given.mapped());
    op::Dims shape = whole;
    for (int mode = 0; mode < whole.rank(); ++mode) {
      if (!(mode < row_modes ? each.broadcast.along_m : each.broadcast.along_n)) shape[mode] = 1;
    }
    conv.tensors.push_back({std::string(each.label), placeholder(number++, type, shape)});
  }
  if (!types.empty())
    throw InvalidArgument(fmt::format("--epilogue-dtype: the epilogue has no '{}'", types.begin()->first));
}

op::Tensor flat(const op::Tensor& tensor) {
  return op::matrix(tensor.address, tensor.dtype, 1, op::span_bytes(tensor) / bytes(tensor.dtype));
}

}  // namespace

void add_convolution_options(CLI::App& command, ConvolutionOptions& options) {
  const auto add_extent = [&](const char* name, std::optional<std::int64_t>& extent, const char* help) {
    add_integer<std::int64_t>(command, name, extent, {0, kMaxExtent}, help)->group(kProblem);
  };
  add_extent("--n", options.n, "number of images; the tensors are random");
  add_extent("--h", options.h, "height of the images x");
  add_extent("--w", options.w, "width of the images x");
  add_extent("--c", options.c, "channels of x");
  add_extent("--k", options.k, "number of filters, which is that of the channels of y");
  add_extent("--r", options.r, "height of the filters (default 1)");
  add_extent("--s", options.s, "width of the filters (default 1)");
  const auto add_text = [&](const char* name, std::string& value, const char* type_name, const char* help) {
    command.add_option(name, value, help)->type_name(type_name);
  };
  add_text("--stride", options.stride, "N|HxW", "stride along both axes, or height x width: 2x1 (default 1)");
  add_text("--padding", options.padding, "N|HxW", "zeros on each side of x (default 0)");
  add_text("--dilation", options.dilation, "N|HxW", "distance of the filter's taps (default 1)");
  add_text("--pass", options.pass, "NAME",
           "fprop (default), which computes y; dgrad, the gradient of x; or wgrad, that of the filter w");
  add_text("--mode", options.mode, "NAME", "cross_correlation (default), or convolution, which mirrors the filters");
  add_text("--distribution", options.distribution, "NAME",
           "of the inputs: integer (default; small integers, so that every sum is exact) or normal");
  add_integer<std::int64_t>(command, "--groups", options.groups, {1, kMaxExtent},
                            "number of groups, into which the channels of x and the filters are split (default 1)");
  add_integer<std::uint64_t>(command, "--seed", options.seed, {.least = 0}, "seed of the inputs (default 0)");
  for (const char* const name :
       {"--stride", "--padding", "--dilation", "--pass", "--mode", "--distribution", "--groups", "--seed"})
    command.get_option(name)->group(kProblem);
  add_text("--dtype", options.dtype, "TYPE", "type of the inputs: f64 f32 (default) tf32 f16 bf16 e4m3 e5m2 s8 u8");
  add_text("--accumulator", options.accumulator, "TYPE",
           "type of the accumulators; default: f64 for f64, s32 for integers, f32 for other types");
  add_text("--out-dtype", options.out_dtype, "TYPE",
           "type of C and the output; default: s32 for integers, bf16 for e4m3 and e5m2, else that of the inputs");
  add_text("--math", options.math, "NAME", "math operation, as in tilewright gemm");
  for (const char* const name : {"--dtype", "--accumulator", "--out-dtype", "--math"})
    command.get_option(name)->group(kTypes);
  add_real(command, "--alpha", options.alpha, "factor of the convolution (default 1)");
  add_real(command, "--beta", options.beta, "factor of C (default 0, where C is not read)");
  add_text("--epilogue", options.epilogue, "TEXT",
           "linear_combination (default), relu, ... of it; or a text such as \"D = relu(acc + row(bias) + residual)\". "
           "Its tensors are random");
  command.add_option("--epilogue-scalar", options.epilogue_scalars, "the value of $NAME in the epilogue")
      ->type_name("NAME=NUMBER");
  command
      .add_option("--epilogue-dtype", options.epilogue_dtypes,
                  "type of the tensor NAME of the epilogue; default: the epilogue's compute type")
      ->type_name("NAME=TYPE");
  for (const char* const name : {"--alpha", "--beta", "--epilogue", "--epilogue-scalar", "--epilogue-dtype"})
    command.get_option(name)->group(kEpilogue);
}

std::array<std::int64_t, 2> parse_pair(const std::string& text, const std::string& option, std::int64_t least) {
  constexpr std::int64_t kMaxValue = std::int64_t{1} << 30;
  std::vector<std::string> parts = split(text, 'x');
  if (parts.size() == 1) parts.push_back(parts.front());
  std::array<std::int64_t, 2> pair{};
  bool is_good = parts.size() == 2;
  for (std::size_t i = 0; is_good && i < 2; ++i) {
    const std::optional<std::int64_t> number = read_integer<std::int64_t>(parts[i], {least, kMaxValue});
    is_good = number.has_value();
    pair[i] = number.value_or(0);
  }
  if (!is_good) {
    throw InvalidArgument(fmt::format("{} must be an integer of {} to 2^30, or two such as 2x1, got '{}'", option,
                                      least, printable(text, 60)));
  }
  return pair;
}

Convolution::Convolution(const ConvolutionOptions& options)
    : seed_(options.seed), is_normal_(options.distribution == "normal") {
  if (!is_normal_ && options.distribution != "integer") {
    throw InvalidArgument(
        fmt::format("--distribution must be integer or normal, got '{}'", printable(options.distribution, 40)));
  }
  set_problem(conv_, options);
  set_epilogue(conv_, options);
  add_epilogue_tensors(conv_, options);
  op::validate(conv_).or_throw();
}

void Convolution::materialize() {
  std::vector<op::Operand> operands = op::operands(conv_);
  std::erase_if(operands, [](const op::Operand& operand) { return operand.tensor->address == 0; });
  std::uint64_t total = 0;
  for (const op::Operand& operand : operands)
    total += static_cast<std::uint64_t>(op::span_bytes(*operand.tensor)) + kAlignment;
  struct sysinfo machine {};
  if (sysinfo(&machine) == 0 && total > machine.totalram * machine.mem_unit) {
    throw InvalidArgument(fmt::format("the tensors need {} MiB of memory, but this machine has {} MiB", total >> 20,
                                      (machine.totalram * machine.mem_unit) >> 20));
  }
  const std::int64_t limit = op::largest_exact_input(conv_);
  std::uint64_t seed = seed_ * operands.size();
  for (const op::Operand& operand : operands) {
    op::Tensor& tensor = *operand.tensor;
    memory_.push_back(std::make_unique<std::byte[]>(static_cast<std::size_t>(op::span_bytes(tensor)) + kAlignment));
    const auto address = reinterpret_cast<std::uint64_t>(memory_.back().get());
    tensor.address = round_up(address, kAlignment);
    ++seed;
    if (op::is_written(operand.access)) {
      op::fill_poison(flat(tensor));
    } else if (is_normal_) {
      op::fill_normal(flat(tensor), is_integer(tensor.dtype) ? 16.0 : 1.0, seed);
    } else {
      op::fill_integers(flat(tensor), tensor.dtype == DType::u8 ? 0 : -limit, limit, seed);
    }
  }
}

std::string to_string(const op::Conv2d& conv) {
  const auto shape = [](const op::Tensor& tensor) {
    return fmt::format("{}x{}x{}x{}", tensor.shape[0], tensor.shape[1], tensor.shape[2], tensor.shape[3]);
  };
  const op::Tensor& input = conv.pass == op::ConvPass::fprop ? conv.x : conv.y;
  const std::string groups = conv.groups == 1 ? "" : fmt::format(" in {} groups", conv.groups);
  return fmt::format("{} of {} by {}{}: {} -> {}, {} accumulated in {}, {}, alpha {}, beta {}", op::name(conv.pass),
                     shape(conv.x), shape(conv.w), groups, name(input.dtype), name(conv.written().dtype),
                     op::name(conv.math), name(conv.accumulator), conv.epilogue.name, conv.alpha, conv.beta);
}

}  // namespace tilewright::cli
