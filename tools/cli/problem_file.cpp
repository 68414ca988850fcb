#include "tools/cli/problem_file.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "tilewright/base/rounding.hpp"
#include "tilewright/base/spelling.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/kernels/weight_gemm.hpp"
#include "tilewright/op/epilogue_text.hpp"
#include "tilewright/op/fill.hpp"
#include "tilewright/op/problem_text.hpp"
#include "tilewright/op/product_operation.hpp"
#include "tilewright/profile/extents.hpp"
#include "tilewright/program/packed_weights.hpp"
#include "tools/cli/epilogue_scalars.hpp"
#include "tools/cli/input_file.hpp"
#include "tools/cli/type_names.hpp"

namespace tilewright::cli {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kAlignment = 256;                        // bytes, the alignment of the device's memory pool
constexpr std::uint64_t kPlaceholder = std::uint64_t{1} << 38;  // MiB between the placeholder addresses of two operands
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 31;
constexpr std::size_t kMaxBytes = 1 << 20;  // of a file
constexpr const char* kWeightTypes = "s4, s8 or e4m3";

/// A JSON object that records which of its fields were read. A field that nobody read is a mistake of the author.
class Fields {
 public:
  Fields(const Json& json, std::string what) : json_(json), what_(std::move(what)) {
    if (!json.is_object()) throw InvalidArgument(fmt::format("{} must be an object", what_));
  }

  const Json* find(const std::string& name) {
    taken_.push_back(name);
    const auto found = json_.find(name);
    return found == json_.end() ? nullptr : &*found;
  }
  const Json& at(const std::string& name) {
    const Json* const found = find(name);
    if (found == nullptr) throw InvalidArgument(fmt::format("{} lacks the field '{}'", what_, name));
    return *found;
  }
  void check_all_taken() const {
    for (const auto& [name, value] : json_.items()) {
      if (std::ranges::find(taken_, name) == taken_.end())
        throw InvalidArgument(fmt::format("{} has no field '{}'{}", what_, printable(name), suggestion(name, taken_)));
    }
  }

 private:
  const Json& json_;
  std::string what_;
  std::vector<std::string> taken_;
};

std::string read_text(const Json& json, std::string_view what) {
  if (!json.is_string())
    throw InvalidArgument(fmt::format("{} must be a string, got {}", what, printable(json.dump(), 60)));
  return json.get<std::string>();
}

double read_number(const Json& json, std::string_view what) {
  if (!json.is_number())
    throw InvalidArgument(fmt::format("{} must be a number, got {}", what, printable(json.dump(), 60)));
  return json.get<double>();
}

std::int64_t read_extent(const Json& json, std::string_view what) {
  const bool is_valid =
      json.is_number_integer() && json.get<std::int64_t>() >= 0 && json.get<std::int64_t>() < kMaxExtent;
  if (!is_valid)
    throw InvalidArgument(
        fmt::format("{} must be an integer from 0 to 2^31 - 1, got {}", what, printable(json.dump(), 60)));
  return json.get<std::int64_t>();
}

DType read_type(const Json& json, std::string_view what) {
  const std::string text = read_text(json, what);
  if (const std::optional<DType> type = parse_dtype(text)) return *type;
  throw InvalidArgument(fmt::format(
      "{} is not an element type: '{}'; the types are f64, f32, tf32, f16, bf16, e4m3, e5m2, s8, u8 and s32", what,
      printable(text)));
}

/// The value that a word stands for; `words` are those that `parse` accepts.
template <class T>
T read_name(const Json& json, std::string_view what, std::optional<T> (*parse)(std::string_view),
            std::string_view words) {
  const std::string text = read_text(json, what);
  if (const std::optional<T> value = parse(text)) return *value;
  throw InvalidArgument(fmt::format("unknown {} '{}': it must be {}", what, printable(text), words));
}

op::MathOperation read_math(const Json& json) {
  return read_name(json, "math", op::parse_math_operation, kMathOperationNames);
}

std::optional<op::Access> parse_access(std::string_view text) {
  for (const op::Access each : {op::Access::read, op::Access::write, op::Access::update}) {
    if (op::name(each) == text) return each;
  }
  return std::nullopt;
}

const Json& read_list(const Json& json, std::string_view what, std::string_view of) {
  if (json.is_array()) return json;
  throw InvalidArgument(fmt::format("{} must be a list of {}, got {}", what, of, printable(json.dump(), 60)));
}

std::vector<std::string> read_texts(const Json& json, std::string_view what) {
  std::vector<std::string> texts;
  for (const Json& each : read_list(json, what, "strings")) texts.push_back(read_text(each, what));
  return texts;
}

op::OperandDeclaration read_operand(const Json& json, std::size_t index) {
  Fields fields(json, fmt::format("operands[{}]", index));
  op::OperandDeclaration operand;
  operand.name = read_text(fields.at("name"), "an operand's name");
  operand.shape = read_texts(fields.at("shape"), "an operand's shape");
  if (const Json* const access = fields.find("access"))
    operand.access = read_name(*access, "access", parse_access, "read, write or update");
  if (const Json* const types = fields.find("types")) {
    for (const Json& type : read_list(*types, "an operand's types", "element types"))
      operand.types.push_back(read_type(type, "an operand's type"));
  }
  fields.check_all_taken();
  return operand;
}

std::vector<op::NamedScalar> read_scalars(const Json* json) {
  std::vector<op::NamedScalar> scalars;
  if (json == nullptr) return scalars;
  if (!json->is_object()) throw InvalidArgument("scalars must be an object of numbers");
  for (const auto& [name, value] : json->items()) scalars.push_back({name, read_number(value, name)});
  return scalars;
}

/// A product that the file declares. The GEMM families compute it.
op::OperationPtr read_product(const Json& json) {
  Fields fields(json, "the operation");
  std::vector<op::OperandDeclaration> operands;
  for (const Json& operand : read_list(fields.at("operands"), "operands", "objects"))
    operands.push_back(read_operand(operand, operands.size()));
  const std::vector<std::string> names = read_texts(fields.at("product"), "a product");
  if (names.size() != 3) throw InvalidArgument(fmt::format("a product names 3 operands, got {}", names.size()));
  const std::string name = read_text(fields.at("name"), "the operation's name");
  std::vector<op::NamedScalar> scalars = read_scalars(fields.find("scalars"));
  fields.check_all_taken();
  return std::make_shared<op::ProductOperation>(name, std::move(operands), std::array{names[0], names[1], names[2]},
                                                std::move(scalars));
}

op::OperationPtr find_operation(const Json& json, const registry::Registry& registry) {
  if (json.is_object()) return read_product(json);
  const std::string name = read_text(json, "the operation");
  if (op::OperationPtr operation = registry.find_operation(name)) return operation;
  throw InvalidArgument(fmt::format(
      "unknown operation '{}'; the operations are gemm, conv2d, contraction, grouped_gemm, reduce_split_k{}{}",
      printable(name), registry.operations().empty() ? "" : ", ", fmt::join(registry.operations(), ", ")));
}

op::Tensor packed(std::size_t number, DType type, const op::Dims& shape) {
  op::Tensor tensor{kPlaceholder * (number + 1) << 20, type, shape, shape, {}};
  std::int64_t stride = 1;
  for (int mode = shape.rank() - 1; mode >= 0; --mode) {
    tensor.stride[mode] = stride;
    stride *= std::max<std::int64_t>(shape[mode], 1);
  }
  return tensor;
}

void read_strides(const Json& json, op::Tensor& tensor, const std::string& name) {
  if (!json.is_array() || json.size() != static_cast<std::size_t>(tensor.shape.rank())) {
    throw InvalidArgument(fmt::format("the strides of '{}' must be a list of {} integers", name, tensor.shape.rank()));
  }
  for (int mode = 0; mode < tensor.shape.rank(); ++mode)
    tensor.stride[mode] =
        read_extent(json[static_cast<std::size_t>(mode)], fmt::format("stride {} of '{}'", mode, name));
}

op::Problem read_custom(Fields& fields, const op::OperationPtr& operation) {
  Fields extents(fields.at("extents"), "extents");
  Fields types(fields.at("types"), "types");
  const Json* const strides_json = fields.find("strides");
  const Json none = Json::object();
  Fields strides(strides_json == nullptr ? none : *strides_json, "strides");
  std::vector<op::NamedTensor> tensors;
  for (const op::OperandDeclaration& operand : operation->operands()) {
    op::Dims shape;
    for (const std::string& entry : operand.shape) {
      if (entry[0] >= '0' && entry[0] <= '9') {
        shape.append(std::stoll(entry));
      } else if (const Json* const extent = extents.find(entry); extent != nullptr) {
        shape.append(read_extent(*extent, entry));
      } else {
        throw InvalidArgument(fmt::format("extents lacks '{}', an extent of '{}'", entry, operand.name));
      }
    }
    op::Tensor tensor = packed(tensors.size(), read_type(types.at(operand.name), "the type of " + operand.name), shape);
    if (const Json* const given = strides.find(operand.name)) read_strides(*given, tensor, operand.name);
    tensors.push_back({operand.name, tensor});
  }
  extents.check_all_taken();
  types.check_all_taken();
  strides.check_all_taken();
  return op::Custom::make(operation, std::move(tensors), read_scalars(fields.find("scalars")));
}

/// The operands of a GEMM or a split-K reduction: their types, layouts and placeholder addresses.
class MatrixReader {
 public:
  explicit MatrixReader(Fields& fields)
      : types_(fields.at("types"), "types"), layouts_(object_or_empty(fields.find("layouts")), "layouts") {}

  bool has(const char* name) { return types_.find(name) != nullptr; }
  DType type(const char* name) { return read_type(types_.at(name), name); }
  op::Tensor read(const char* name, std::int64_t rows, std::int64_t columns) {
    const Json* const layout = layouts_.find(name);
    return op::matrix(kPlaceholder * ++number_ << 20, type(name), rows, columns,
                      layout == nullptr ? op::MatrixLayout::row_major
                                        : read_name(*layout, "layout", op::parse_matrix_layout,
                                                    "row, column, row_interleaved_32 or column_interleaved_32"));
  }
  /// Refuses strides that contradict a layout in the file.
  void check_layout(const char* name, const op::Tensor& tensor) {
    const Json* const layout = layouts_.find(name);
    if (layout == nullptr || tensor.rows() <= 1 || tensor.columns() <= 1) return;
    const op::MatrixLayout has = op::view_matrix(tensor, name).value_or_throw().layout;
    if (layout->get<std::string>() == op::name(has)) return;
    throw InvalidArgument(fmt::format("the layout of '{}' is {}, but its strides {} are those of {}", name,
                                      layout->get<std::string>(), op::to_string(tensor.stride), op::name(has)));
  }
  void check_all_taken() const {
    types_.check_all_taken();
    layouts_.check_all_taken();
  }

 private:
  static const Json& object_or_empty(const Json* json) {
    static const Json kNone = Json::object();
    return json == nullptr ? kNone : *json;
  }

  Fields types_, layouts_;
  std::size_t number_ = 0;
};

/// Reads the epilogue and the scalars of a problem, as of an op::Gemm, whose accumulator is set.
template <class Problem>
void read_epilogue(Fields& fields, DType output, Problem& problem) {
  const DType compute = op::default_compute(problem.accumulator, output);
  problem.epilogue = op::linear_combination(compute);
  if (const Json* const epilogue = fields.find("epilogue")) {
    const std::string text = read_text(*epilogue, "the epilogue");
    const bool is_name = text.find_first_of("=;( ") == std::string::npos;
    problem.epilogue = is_name ? op::named_epilogue(text, output, compute).value_or_throw()
                               : op::parse_epilogue(text, compute, {}).value_or_throw();
  }
  for (const op::NamedScalar& scalar : read_scalars(fields.find("scalars"))) {
    if (scalar.name != "alpha" && scalar.name != "beta") {
      throw InvalidArgument(fmt::format("the scalars of a {} are alpha and beta, got '{}'", op::operation_name(problem),
                                        printable(scalar.name)));
    }
    const bool is_alpha = scalar.name == "alpha";
    if (scalar.value != (is_alpha ? 1.0 : 0.0))
      check_uses_scalar(problem.epilogue, scalar.name, fmt::format("the scalar {} of {}", scalar.name, scalar.value));
    (is_alpha ? problem.alpha : problem.beta) = scalar.value;
  }
}

DType read_accumulator(Fields& fields, DType by_default) {
  const Json* const accumulator = fields.find("accumulator");
  return accumulator == nullptr ? by_default : read_type(*accumulator, "accumulator");
}

op::Problem read_gemm(Fields& fields) {
  Fields extents(fields.at("extents"), "extents");
  const std::int64_t m = read_extent(extents.at("m"), "m"), n = read_extent(extents.at("n"), "n"),
                     k = read_extent(extents.at("k"), "k");
  const Json* const batch = extents.find("batch");
  extents.check_all_taken();
  MatrixReader matrices(fields);
  const Json none = Json::object();
  const Json* const strides_json = fields.find("strides");
  Fields strides(strides_json == nullptr ? none : *strides_json, "strides");
  const auto operand = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    op::Tensor tensor = matrices.read(name, rows, columns);
    if (batch != nullptr) tensor = op::batched(tensor, read_extent(*batch, "batch"));
    if (const Json* const given = strides.find(name)) {
      read_strides(*given, tensor, name);
      matrices.check_layout(name, tensor);
    }
    return tensor;
  };
  op::Gemm gemm;
  gemm.a = operand("A", m, k);
  gemm.b = operand("B", k, n);
  gemm.accumulator = read_accumulator(fields, op::default_accumulator(gemm.a.dtype));
  if (const Json* const math = fields.find("math")) gemm.math = read_math(*math);
  read_epilogue(fields, matrices.type("D"), gemm);
  gemm.d = operand("D", m, gemm.d_columns());
  if (matrices.has("C")) gemm.c = operand("C", m, gemm.d_columns());
  matrices.check_all_taken();
  strides.check_all_taken();
  return gemm;
}

op::Problem read_reduce_split_k(Fields& fields) {
  Fields extents(fields.at("extents"), "extents");
  const std::int64_t m = read_extent(extents.at("m"), "m"), n = read_extent(extents.at("n"), "n"),
                     count = read_extent(extents.at("parts"), "parts");
  extents.check_all_taken();
  MatrixReader matrices(fields);
  op::ReduceSplitK reduction;
  reduction.parts = op::batched(matrices.read("parts", m, n), count);
  reduction.accumulator = read_accumulator(fields, op::sum_accumulator(reduction.parts.dtype));
  read_epilogue(fields, matrices.type("D"), reduction);
  reduction.d = matrices.read("D", m, reduction.d_columns());
  if (matrices.has("C")) reduction.c = matrices.read("C", m, reduction.d_columns());
  matrices.check_all_taken();
  return reduction;
}

/// The ends of groups of the sizes in the file, of which none exceeds `capacity`.
std::vector<std::int32_t> read_ends(const Json& sizes, op::GroupedMode mode, std::int64_t capacity) {
  std::vector<std::int32_t> ends;
  std::int64_t end = 0;
  for (const Json& each : read_list(sizes, "sizes", "integers")) {
    const std::int64_t size = read_extent(each, fmt::format("sizes[{}]", ends.size()));
    end = op::is_ragged(mode) ? end + size : size;
    if (end > capacity) {
      throw InvalidArgument(fmt::format("{} {}, but {} has only {}",
                                        op::is_ragged(mode) ? "sizes are in total" : "a size is", end, op::name(mode),
                                        capacity));
    }
    ends.push_back(static_cast<std::int32_t>(end));
  }
  return ends;
}

/// What the file expects of the sizes: their mean, or a list of sizes.
op::GroupSummary read_expected(const Json* json, op::GroupedMode mode, std::int64_t groups) {
  if (json == nullptr) return {};
  if (!json->is_array()) return op::expect_mean(mode, groups, read_extent(*json, "expected_sizes"));
  std::vector<std::int64_t> sizes;
  for (const Json& each : *json) sizes.push_back(read_extent(each, fmt::format("expected_sizes[{}]", sizes.size())));
  return op::summarize(mode, sizes);
}

/// Reads the types, the accumulator, the math and the epilogue of groups. `place` makes a tensor an operand of the mode
/// from its name and matrix.
template <class Place>
void read_group_operands(Fields& fields, op::Gemm& gemm, std::int64_t m, std::int64_t n, std::int64_t k,
                         const Place& place) {
  MatrixReader matrices(fields);
  const auto operand = [&](char role, std::int64_t rows, std::int64_t columns) {
    const std::string name(1, role);
    return place(role, matrices.read(name.c_str(), rows, columns));
  };
  gemm.a = operand('A', m, k);
  gemm.b = operand('B', k, n);
  gemm.accumulator = read_accumulator(fields, op::default_accumulator(gemm.a.dtype));
  if (const Json* const math = fields.find("math")) gemm.math = read_math(*math);
  read_epilogue(fields, matrices.type("D"), gemm);
  gemm.d = operand('D', m, gemm.d_columns());
  if (matrices.has("C")) gemm.c = operand('C', m, gemm.d_columns());
  matrices.check_all_taken();
}

using Extents = std::array<std::int64_t, 3>;  // m, n and k

std::vector<Extents> read_independent_extents(const Json& sizes) {
  if (!sizes.is_array()) throw InvalidArgument("sizes of independent groups must be a list of [m, n, k]");
  std::vector<Extents> extents;
  for (const Json& each : sizes) {
    if (!each.is_array() || each.size() != 3) {
      throw InvalidArgument(
          fmt::format("a size of independent groups must be [m, n, k], got {}", printable(each.dump(), 60)));
    }
    extents.push_back({read_extent(each[0], "m"), read_extent(each[1], "n"), read_extent(each[2], "k")});
  }
  return extents;
}

/// The largest alignment in bytes, at most 16, of the lines of every group.
int declared_alignment(std::span<const std::int64_t> lines, DType type) {
  std::int64_t all = 16;
  for (const std::int64_t line : lines) all = std::gcd(all, line * bytes(type));
  return static_cast<int>(all);
}

/// Groups whose matrices are packed and lie anywhere.
op::Problem read_independent_groups(Fields& fields, GroupNumbers& numbers) {
  const std::vector<Extents> extents = read_independent_extents(fields.at("sizes"));
  const auto count = static_cast<std::int64_t>(extents.size());
  Extents most{};
  for (const Extents& each : extents) {
    for (std::size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], each[i]);
    for (const std::int64_t extent : each) numbers.ends.push_back(static_cast<std::int32_t>(extent));
  }
  numbers.leading_dimensions.resize(4 * extents.size());
  op::GroupedGemm grouped{.gemm = {},
                          .mode = op::GroupedMode::independent,
                          .ends = {},
                          .leading_dimensions = {},
                          .expected = op::summarize(extents)};
  read_group_operands(fields, grouped.gemm, most[0], most[1], most[2], [&](char role, const op::Tensor& matrix) {
    const bool by_rows = op::has_contiguous_rows(op::view_matrix(matrix, "operand")->layout);
    const std::size_t contiguous = role == 'A'   ? (by_rows ? 2 : 0)
                                   : role == 'B' ? (by_rows ? 1 : 2)
                                                 : (by_rows ? 1 : 0);
    std::vector<std::int64_t> lines;
    for (std::size_t group = 0; group < extents.size(); ++group) {
      lines.push_back(std::max<std::int64_t>(extents[group][contiguous], 1));
      numbers.leading_dimensions[4 * group + static_cast<std::size_t>(role - 'A')] =
          static_cast<std::int32_t>(lines.back());
    }
    return op::pointer_array(matrix, matrix.address, count, declared_alignment(lines, matrix.dtype));
  });
  grouped.ends = op::group_extents(reinterpret_cast<std::uint64_t>(numbers.ends.data()), count);
  grouped.leading_dimensions =
      op::group_leading_dimensions(reinterpret_cast<std::uint64_t>(numbers.leading_dimensions.data()), count);
  return grouped;
}

op::Problem read_grouped_gemm(Fields& fields, GroupNumbers& numbers) {
  op::GroupedGemm grouped;
  const op::GroupedMode mode = read_name(fields.at("mode"), "mode", op::parse_grouped_mode,
                                         "ragged_m, ragged_n, ragged_k, masked_m, masked_n, masked_k or independent");
  if (mode == op::GroupedMode::independent) return read_independent_groups(fields, numbers);
  grouped.mode = mode;
  Fields extents(fields.at("extents"), "extents");
  const std::int64_t m = read_extent(extents.at("m"), "m"), n = read_extent(extents.at("n"), "n"),
                     k = read_extent(extents.at("k"), "k");
  extents.check_all_taken();
  numbers.ends = read_ends(fields.at("sizes"), mode, op::differs_in_m(mode) ? m : op::differs_in_n(mode) ? n : k);
  const auto groups = static_cast<std::int64_t>(numbers.ends.size());
  grouped.expected = read_expected(fields.find("expected_sizes"), mode, groups);
  read_group_operands(fields, grouped.gemm, m, n, k, [&](char role, const op::Tensor& matrix) {
    return op::is_stacked(mode, role) ? matrix : op::batched(matrix, groups);
  });
  grouped.ends = op::group_ends(reinterpret_cast<std::uint64_t>(numbers.ends.data()), groups);
  return grouped;
}

/// One integer for both axes, or a list of two: height and width.
std::array<std::int64_t, 2> read_pair(const Json* json, const char* what, std::int64_t by_default) {
  if (json == nullptr) return {by_default, by_default};
  if (!json->is_array()) {
    const std::int64_t both = read_extent(*json, what);
    return {both, both};
  }
  if (json->size() != 2) throw InvalidArgument(fmt::format("{} must be an integer or a list of two", what));
  return {read_extent((*json)[0], what), read_extent((*json)[1], what)};
}

template <class Enum, std::size_t count>
Enum read_choice(const Json* json, const char* what, const std::array<Enum, count>& all) {
  if (json == nullptr) return all.front();
  const std::string text = read_text(*json, what);
  std::string words;
  for (const Enum each : all) {
    if (op::name(each) == text) return each;
    words += fmt::format("{}{}", words.empty() ? "" : each == all.back() ? " or " : ", ", op::name(each));
  }
  throw InvalidArgument(fmt::format("unknown {} '{}': it must be {}", what, printable(text), words));
}

op::Problem read_conv2d(Fields& fields) {
  using enum op::ConvPass;
  Fields extents(fields.at("extents"), "extents");
  const auto extent = [&](const char* name) { return read_extent(extents.at(name), name); };
  const std::int64_t n = extent("n"), c = extent("c"), k = extent("k");
  const std::array<std::int64_t, 2> image{extent("h"), extent("w")}, taps{extent("r"), extent("s")};
  op::Conv2d conv;
  conv.pass = read_choice(fields.find("pass"), "pass", std::array{fprop, dgrad, wgrad});
  conv.mode =
      read_choice(fields.find("mode"), "mode", std::array{op::ConvMode::cross_correlation, op::ConvMode::convolution});
  conv.stride = read_pair(fields.find("stride"), "stride", 1);
  conv.padding = read_pair(fields.find("padding"), "padding", 0);
  conv.dilation = read_pair(fields.find("dilation"), "dilation", 1);
  if (const Json* const groups = fields.find("groups")) conv.groups = read_extent(*groups, "groups");
  if (conv.groups < 1 || std::ranges::min(conv.stride) < 1 || std::ranges::min(conv.dilation) < 1)
    throw InvalidArgument("groups, stride and dilation must be at least 1");
  std::array<std::int64_t, 2> positions{};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const Json* const given = extents.find(axis == 0 ? "p" : "q");
    positions[axis] = given != nullptr ? read_extent(*given, axis == 0 ? "p" : "q")
                                       : op::conv_positions(image[axis], conv.padding[axis], conv.padding[axis],
                                                            taps[axis], conv.stride[axis], conv.dilation[axis]);
  }
  extents.check_all_taken();
  Fields types(fields.at("types"), "types");
  const auto type = [&](const char* name) { return read_type(types.at(name), std::string("the type of ") + name); };
  conv.x = packed(0, type("x"), {n, image[0], image[1], c});
  conv.w = packed(1, type("w"), {k, taps[0], taps[1], c / conv.groups});
  const DType type_of_y = type("y");
  conv.accumulator = read_accumulator(fields, op::default_accumulator(conv.pass == fprop ? conv.x.dtype : type_of_y));
  if (const Json* const math = fields.find("math")) conv.math = read_math(*math);
  read_epilogue(fields, conv.pass == fprop ? type_of_y : conv.written().dtype, conv);
  const bool is_paired = conv.pass == fprop && conv.epilogue.columns_per_element() == 2;
  conv.y = packed(2, type_of_y, {n, positions[0], positions[1], is_paired ? k / 2 : k});
  if (const Json* const source = types.find("C")) conv.c = packed(3, read_type(*source, "C"), conv.written().shape);
  types.check_all_taken();
  return conv;
}

/// A mode of a contraction has the extent of its letter.
op::Problem read_contraction(Fields& fields) {
  op::Contraction contraction;
  const std::array<std::string, 3> modes =
      op::parse_contraction(read_text(fields.at("expression"), "the expression")).value_or_throw();
  contraction.modes_a = modes[0];
  contraction.modes_b = modes[1];
  contraction.modes_d = modes[2];
  Fields extents(fields.at("extents"), "extents");
  Fields types(fields.at("types"), "types");
  const Json none = Json::object();
  const Json* const strides_json = fields.find("strides");
  Fields strides(strides_json == nullptr ? none : *strides_json, "strides");
  const auto tensor = [&](std::size_t number, const std::string& name, const std::string& letters) {
    op::Dims shape;
    if (letters.size() > op::Dims::kMaxRank)
      throw InvalidArgument(fmt::format("{} has {} modes, the limit is {}", name, letters.size(), op::Dims::kMaxRank));
    for (const char letter : letters)
      shape.append(read_extent(extents.at(std::string(1, letter)), std::string(1, letter)));
    op::Tensor made = packed(number, read_type(types.at(name), "the type of " + name), shape);
    if (const Json* const given = strides.find(name)) read_strides(*given, made, name);
    return made;
  };
  contraction.a = tensor(0, "A", contraction.modes_a);
  contraction.b = tensor(1, "B", contraction.modes_b);
  contraction.d = tensor(2, "D", contraction.modes_d);
  if (types.find("C") != nullptr) contraction.c = tensor(3, "C", contraction.modes_d);
  extents.check_all_taken();
  types.check_all_taken();
  strides.check_all_taken();
  contraction.accumulator = read_accumulator(fields, op::default_accumulator(contraction.a.dtype));
  if (const Json* const math = fields.find("math")) contraction.math = read_math(*math);
  read_epilogue(fields, contraction.d.dtype, contraction);
  return contraction;
}

/// A linear layer with narrow weights, whose packed bytes follow from its extents.
op::Problem read_weight_gemm(Fields& fields) {
  Fields extents(fields.at("extents"), "extents");
  const auto extent = [&](const char* name) { return read_extent(extents.at(name), name); };
  const std::int64_t tokens = extent("tokens"), outputs = extent("outputs"), inputs = extent("inputs");
  extents.check_all_taken();
  if (outputs < 1 || inputs < 1)
    throw InvalidArgument(fmt::format("outputs and inputs must be at least 1, got {} and {}", outputs, inputs));
  std::vector<op::NamedScalar> scalars = read_scalars(fields.find("scalars"));
  std::int64_t group = 128;
  for (const op::NamedScalar& scalar : scalars) {
    if (scalar.name != "group")
      throw InvalidArgument(fmt::format("the scalar of a weight_gemm is group, got '{}'", printable(scalar.name)));
    group = read_extent(fields.at("scalars").at("group"), "group");
  }
  Fields types(fields.at("types"), "types");
  const auto type = [&](const std::string& name) { return read_type(types.at(name), "the type of " + name); };
  const DType weights = read_name(types.at("weights"), "type of weights", parse_dtype, kWeightTypes);
  if (weights != DType::s4 && weights != DType::s8 && weights != DType::e4m3)
    throw InvalidArgument(
        fmt::format("weights of a weight_gemm cannot be {}: they must be {}", name(weights), kWeightTypes));
  const std::int64_t groups = group == 0 ? 1 : ceil_div(inputs, group);
  std::vector<op::NamedTensor> tensors{{"weights", packed(0, weights == DType::s4 ? DType::u8 : weights,
                                                          {program::packed_bytes(weights, outputs, inputs)})},
                                       {"scales", packed(1, type("scales"), {groups, outputs})},
                                       {"x", packed(2, type("x"), {tokens, inputs})},
                                       {"out", packed(3, type("out"), {tokens, outputs})}};
  types.check_all_taken();
  return op::Custom::make(kernels::weight_gemm_operation(), std::move(tensors), std::move(scalars));
}

op::Problem read_problem(const Json& json, const registry::Registry& registry, GroupNumbers& numbers) {
  Fields fields(json, "the problem");
  const Json& operation = fields.at("operation");
  op::Problem problem = operation == "gemm"             ? read_gemm(fields)
                        : operation == "conv2d"         ? read_conv2d(fields)
                        : operation == "contraction"    ? read_contraction(fields)
                        : operation == "grouped_gemm"   ? read_grouped_gemm(fields, numbers)
                        : operation == "reduce_split_k" ? read_reduce_split_k(fields)
                        : operation == "weight_gemm"    ? read_weight_gemm(fields)
                                                        : read_custom(fields, find_operation(operation, registry));
  fields.check_all_taken();
  op::validate(problem).or_throw();
  return problem;
}

/// "line 1, column 22: unexpected '}'; expected string literal", without the library's name and numbers.
std::string parse_error_text(const Json::exception& error) {
  std::string text = error.what();
  for (const std::string_view begin : {"] ", "parse error at "}) {
    if (const std::size_t found = text.find(begin); found != std::string::npos) text.erase(0, found + begin.size());
  }
  return printable(text, 200);
}

Json parse_json(const std::string& text) {
  constexpr int kDeepest = 16;
  std::vector<std::set<std::string>> names;  // of the objects that are being read
  const auto is_kept = [&](int depth, Json::parse_event_t event, const Json& value) {
    if (depth > kDeepest) throw InvalidArgument(fmt::format("nested deeper than {} levels", kDeepest));
    if (event == Json::parse_event_t::object_start) names.emplace_back();
    if (event == Json::parse_event_t::object_end) names.pop_back();
    if (event == Json::parse_event_t::key && !names.back().insert(value.get<std::string>()).second)
      throw InvalidArgument(fmt::format("an object has the field '{}' twice", printable(value.get<std::string>())));
    return true;
  };
  try {
    return Json::parse(text, is_kept);
  } catch (const Json::exception& error) {
    throw InvalidArgument(fmt::format("is not JSON: {}", parse_error_text(error)));
  }
}

/// Replaces a problem by the combinations of its extents' values. @throws InvalidArgument
std::vector<Json> combinations(const Json& problem) {
  constexpr std::size_t kMostProblems = 100000;
  std::vector<Json> found{problem};
  if (!problem.is_object() || !problem.contains("extents") || !problem["extents"].is_object()) return found;
  for (const auto& [name, text] : problem["extents"].items()) {
    if (!text.is_string()) continue;
    const std::vector<std::int64_t> values =
        profile::parse_extents(text.get<std::string>(), fmt::format("the extent '{}'", printable(name)))
            .value_or_throw();
    if (found.size() * values.size() > kMostProblems)
      throw InvalidArgument(fmt::format("the extents have more than {} combinations", kMostProblems));
    std::vector<Json> longer;
    for (const Json& each : found) {
      for (const std::int64_t value : values) {
        longer.push_back(each);
        longer.back()["extents"][name] = value;
      }
    }
    found = std::move(longer);
  }
  return found;
}

/// All elements of a tensor's span, with those between its rows, as a matrix of one row.
op::Tensor flat(const op::Tensor& tensor) {
  return op::matrix(tensor.address, tensor.dtype, 1, op::span_bytes(tensor) / bytes(tensor.dtype));
}

/// Packs random weights of a weight_gemm, so that the elements past its extents are zeros.
void fill_weights(const op::Custom& problem, std::uint64_t seed) {
  const op::Tensor& packed = problem.tensor("weights");
  const std::int64_t outputs = problem.extent("outputs"), inputs = problem.extent("inputs");
  const bool is_float = packed.dtype == DType::e4m3;
  const DType type = packed.dtype == DType::u8 ? DType::s4 : packed.dtype;
  std::vector<std::int8_t> weights(static_cast<std::size_t>(outputs * inputs));
  op::fill_integers(
      op::matrix(reinterpret_cast<std::uint64_t>(weights.data()), is_float ? DType::e4m3 : DType::s8, outputs, inputs),
      -8, 7, seed);
  const std::vector<std::byte> bytes = program::pack_weights(type, outputs, inputs, weights).value_or_throw();
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  std::memcpy(reinterpret_cast<void*>(packed.address), bytes.data(), bytes.size());
}

/// Returns what `read` makes of the contents of a file. Errors in the contents begin with the path.
template <class Read>
auto of_file(const std::string& path, const Read& read) {
  const std::string text = read_input_file(path, kMaxBytes);
  try {
    return read(text);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{}: {}", printable(path), error.what()));
  }
}

}  // namespace

ProblemFile::ProblemFile(const Text& text, const registry::Registry& registry)
    : problem_(read_problem(parse_json(text.json), registry, numbers_)) {}

ProblemFile::ProblemFile(const std::string& path, const registry::Registry& registry)
    : ProblemFile(of_file(path, [&](const std::string& json) { return ProblemFile(Text{json}, registry); })) {}

std::vector<ProblemFile> ProblemFile::read_all(const std::string& path, const registry::Registry& registry) {
  return of_file(path, [&](const std::string& text) {
    const Json json = parse_json(text);
    std::vector<ProblemFile> files;
    for (const Json& problem : json.is_array() ? json.get<std::vector<Json>>() : std::vector<Json>{json}) {
      for (const Json& each : combinations(problem)) files.emplace_back(Text{each.dump()}, registry);
    }
    if (files.empty()) throw InvalidArgument("has no problems");
    return files;
  });
}

std::string ProblemFile::description() const { return op::problem_text(problem_); }

std::uint64_t ProblemFile::allocate(std::size_t size) {
  memory_.push_back(std::make_unique_for_overwrite<std::byte[]>(size + kAlignment));
  const auto address = reinterpret_cast<std::uint64_t>(memory_.back().get());
  constexpr auto kUnit = static_cast<std::uint64_t>(kAlignment);
  return round_up(address, kUnit);
}

void ProblemFile::materialize(std::uint64_t seed) {
  const std::int64_t limit = op::largest_exact_input(problem_);
  const auto* const grouped = std::get_if<op::GroupedGemm>(&problem_);
  for (const op::Operand& operand : op::operands(problem_)) {
    op::Tensor& tensor = *operand.tensor;
    const bool is_number = grouped != nullptr && (&tensor == &grouped->ends || &tensor == &grouped->leading_dimensions);
    if (tensor.address == 0 || is_number) continue;
    op::Tensor elements = tensor;
    if (tensor.is_pointer_array()) {
      const std::int64_t span = op::span_bytes(op::matrix_at(tensor, tensor.address));
      const std::int64_t step = round_up(span, kAlignment);
      const std::uint64_t first = allocate(static_cast<std::size_t>(step * tensor.batch()));
      elements = op::matrix(first, tensor.dtype, 1, step * tensor.batch() / bytes(tensor.dtype));
      tensor.address = allocate(static_cast<std::size_t>(tensor.batch()) * sizeof(std::uint64_t));
      for (std::int64_t i = 0; i < tensor.batch(); ++i)
        reinterpret_cast<std::uint64_t*>(tensor.address)[i] = first + static_cast<std::uint64_t>(i * step);
    } else {
      tensor.address = allocate(static_cast<std::size_t>(op::span_bytes(tensor)));
      elements = flat(tensor);
    }
    if (op::is_read(operand.access)) {
      op::fill_integers(elements, tensor.dtype == DType::u8 ? 0 : -limit, limit, seed++);
    } else {
      op::fill_poison(elements);
    }
  }
  const auto* const custom = std::get_if<op::Custom>(&problem_);
  if (custom != nullptr && custom->operation == kernels::weight_gemm_operation()) fill_weights(*custom, seed);
}

}  // namespace tilewright::cli
