#include "tools/cli/problem.hpp"

#include <sys/sysinfo.h>

#include <array>
#include <cstdint>
#include <optional>
#include <set>

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
                                       << 58;  // bytes between the placeholder addresses of two operands
constexpr std::int64_t kLargestOperand = std::int64_t{1} << 46;  // bytes, more than any machine's memory

// NumPy has no 8-bit floats. If the wanted type is one, a file of u8 holds their bit patterns.
void reinterpret_fp8(std::vector<NpyMatrix>& file, std::optional<DType> wanted) {
  if (!file.empty() && file.front().dtype == DType::u8 && wanted && is_fp8(*wanted)) file.front().dtype = *wanted;
}

// Whether a file of f32 may be rounded to this type.
bool is_rounded_from_f32(DType type) { return type == DType::bf16 || is_fp8(type); }

op::MatrixLayout layout_of(const OperandOptions& operand) {
  return operand.is_transposed ? op::MatrixLayout::column_major : op::MatrixLayout::row_major;
}

// Parses the "NAME=VALUE" texts of an option that may be repeated.
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

// Extents of an operand. `batch` is empty for a single matrix.
struct Extents {
  std::int64_t rows = 0, columns = 0;
  std::optional<std::int64_t> batch;
};

// The extents of the operand in a file, which holds its transpose if the operand is transposed.
Extents extents(const NpyMatrix& file, const OperandOptions& operand) {
  const op::Tensor held = operand.is_transposed ? op::transposed(file.tensor()) : file.tensor();
  const bool is_batch = held.shape.rank() == 3;
  return {held.rows(), held.columns(), is_batch ? std::optional(held.batch()) : std::nullopt};
}

op::Tensor placeholder(int index, DType type, const Extents& shape, const OperandOptions& operand) {
  const op::Tensor matrix = op::matrix(kPlaceholder * static_cast<std::uint64_t>(index + 1), type, shape.rows,
                                       shape.columns, layout_of(operand), operand.ld);
  return shape.batch ? op::batched(matrix, *shape.batch) : matrix;
}

}  // namespace

Problem::Problem(const ProblemOptions& options) : options_(options) {
  read_files();
  choose_types();
  choose_shapes();
  for (const auto& [role, operand] : {std::pair{"A", &gemm_.a}, {"B", &gemm_.b}, {"C", &gemm_.c}, {"D", &gemm_.d}}) {
    if (op::view_matrix(*operand, role) && op::span_bytes(*operand) > kLargestOperand) {
      throw InvalidArgument(fmt::format("{} of shape {} needs {} bytes, more than any memory", role,
                                        op::to_string(operand->shape), op::span_bytes(*operand)));
    }
  }
  op::validate(gemm_).or_throw();
}

void Problem::read_files() {
  const bool has_files = !options_.a.file.empty() || !options_.b.file.empty();
  const bool has_extents = options_.m || options_.n || options_.k || options_.batch;
  if (has_files && (options_.a.file.empty() || options_.b.file.empty()))
    throw InvalidArgument("--a and --b must be given together");
  if (has_files && has_extents)
    throw InvalidArgument("give either files (--a --b) or extents (--m --n --k --batch), not both");
  for (const auto& [letter, extent] : {std::pair{'m', options_.m}, {'n', options_.n}, {'k', options_.k}}) {
    if (!has_files && !extent)
      throw InvalidArgument(fmt::format("--{} is missing: give either --a and --b, or --m, --n and --k", letter));
  }
  if (has_files) {
    a_.push_back(read_npy(options_.a.file));
    b_.push_back(read_npy(options_.b.file));
  }
  if (!options_.c.file.empty()) c_.push_back(read_npy(options_.c.file));
}

void Problem::choose_types() {
  const auto operand_type = [](std::vector<NpyMatrix>& file, const std::string& path, const std::string& type,
                               const char* option) {
    const std::optional<DType> asked = type.empty() ? std::nullopt : std::optional(parse_type(option, type));
    const DType stored = asked == DType::tf32 ? DType::f32 : asked.value_or(DType::f32);
    if (file.empty()) return stored;
    reinterpret_fp8(file, asked);
    const DType held = file.front().dtype;
    const bool converts = held == DType::f32 && is_rounded_from_f32(stored);
    if (asked && held != stored && !converts) {
      throw InvalidArgument(
          fmt::format("{} holds {}, but {} is {}: only files of f32 are converted, to bf16, tf32, e4m3 or e5m2; the "
                      "bit patterns of e4m3 and e5m2 are u8",
                      printable(path), name(held), option, name(*asked)));
    }
    return asked ? stored : held;
  };
  gemm_.a.dtype = operand_type(a_, options_.a.file, options_.dtype, "--dtype");
  gemm_.b.dtype = options_.b_dtype.empty() ? operand_type(b_, options_.b.file, options_.dtype, "--dtype")
                                           : operand_type(b_, options_.b.file, options_.b_dtype, "--b-dtype");
  gemm_.accumulator = options_.accumulator.empty() ? op::default_accumulator(gemm_.a.dtype)
                                                   : parse_type("--accumulator", options_.accumulator);
  gemm_.d.dtype =
      options_.out_dtype.empty() ? op::default_output(gemm_.a.dtype) : parse_type("--out-dtype", options_.out_dtype);
  gemm_.c.dtype = gemm_.d.dtype;
  reinterpret_fp8(c_, gemm_.c.dtype);
  if (!c_.empty() && c_.front().dtype != gemm_.d.dtype &&
      !(c_.front().dtype == DType::f32 && is_rounded_from_f32(gemm_.d.dtype))) {
    throw InvalidArgument(fmt::format("{} holds {}, but C and D are {}: convert the file or set --out-dtype",
                                      printable(options_.c.file), name(c_.front().dtype), name(gemm_.d.dtype)));
  }
  if (options_.math.empty()) {
    const bool is_tf32 = !options_.dtype.empty() && parse_dtype(options_.dtype) == DType::tf32;
    gemm_.math = is_tf32 ? op::MathOperation::multiply_add_tf32 : op::MathOperation::multiply_add;
  } else {
    gemm_.math = parse_math("--math", options_.math);
  }
  gemm_.alpha = options_.alpha;
  gemm_.beta = options_.beta;
  choose_epilogue();
  if (options_.distribution != "integer" && options_.distribution != "normal") {
    throw InvalidArgument(
        fmt::format("--distribution must be integer or normal, got '{}'", printable(options_.distribution, 40)));
  }
}

void Problem::choose_epilogue() {
  const DType compute = op::default_compute(gemm_.accumulator, gemm_.d.dtype);
  std::map<std::string, double> scalars;
  for (const auto& [name, text] : assignments("--epilogue-scalar", options_.epilogue_scalars)) {
    scalars[name] = parse_real("--epilogue-scalar " + name, text);
  }
  const bool is_name = options_.epilogue.find('=') == std::string::npos;
  gemm_.epilogue = is_name ? op::named_epilogue(options_.epilogue, gemm_.d.dtype, compute).value_or_throw()
                           : op::parse_epilogue(options_.epilogue, compute, scalars).value_or_throw();
  check_uses_scalars(gemm_.epilogue, options_.alpha, options_.beta, scalars);
}

void Problem::choose_epilogue_tensors() {
  input_paths_ = assignments("--epilogue-input", options_.epilogue_inputs);
  for (const auto& [name, file] : input_paths_) inputs_.emplace(name, read_npy(file, true));
  output_paths_ = assignments("--epilogue-output", options_.epilogue_outputs);
  std::map<std::string, std::string> dtypes = assignments("--epilogue-dtype", options_.epilogue_dtypes);
  std::set<std::string_view> read, written;
  int index = 4;  // the placeholders of A, B, C and D come first
  for (const op::EpilogueTensor& each : op::epilogue_tensors(gemm_.epilogue)) {
    const std::string name{each.label};
    (each.is_written ? written : read).insert(each.label);
    DType dtype = gemm_.epilogue.compute;
    const auto given = dtypes.extract(name);
    if (given) dtype = parse_type("--epilogue-dtype", given.mapped());
    Extents shape{each.broadcast.along_m ? gemm_.m() : 1, each.broadcast.along_n ? gemm_.n() : 1, {}};
    if (each.is_written && gemm_.d.shape.rank() == 3) shape.batch = gemm_.batch();
    if (const auto file = inputs_.find(name); file != inputs_.end()) {
      if (given && dtype != file->second.dtype) {
        throw InvalidArgument(fmt::format("--epilogue-dtype: {} holds {}, but the type of '{}' is {}",
                                          printable(input_paths_.at(name)), tilewright::name(file->second.dtype), name,
                                          tilewright::name(dtype)));
      }
      dtype = file->second.dtype;
      NpyMatrix& held = file->second;
      if (held.is_vector && each.broadcast == op::kColumnVector) held.shape = {held.shape[1], 1};
      shape = extents(held, {});
    }
    gemm_.tensors.push_back({name, placeholder(index++, dtype, shape, {})});
  }
  if (!dtypes.empty())
    throw InvalidArgument(fmt::format("--epilogue-dtype: the epilogue has no '{}'", dtypes.begin()->first));
  for (const auto& [name, file] : inputs_) {
    if (!read.contains(name))
      throw InvalidArgument(fmt::format("--epilogue-input: the epilogue does not read '{}'", name));
  }
  for (const auto& [name, file] : output_paths_) {
    if (!written.contains(name))
      throw InvalidArgument(fmt::format("--epilogue-output: the epilogue does not write '{}'", name));
  }
}

void Problem::choose_shapes() {
  const auto random_extents = [&](const std::optional<std::int64_t>& rows, const std::optional<std::int64_t>& columns) {
    return Extents{rows.value(), columns.value(), options_.batch};
  };
  const Extents a = a_.empty() ? random_extents(options_.m, options_.k) : extents(a_.front(), options_.a);
  const Extents b = b_.empty() ? random_extents(options_.k, options_.n) : extents(b_.front(), options_.b);
  Extents d{a.rows, b.columns / gemm_.epilogue.columns_per_element(), a.batch};
  // As in numpy.matmul, an operand without a batch, or with a batch of 1, is broadcast.
  if (b.batch && d.batch.value_or(1) == 1) d.batch = b.batch;
  const Extents c = c_.empty() ? d : extents(c_.front(), options_.c);
  if (!c_.empty() && !gemm_.epilogue.reads_source())
    throw InvalidArgument("--c has no effect: the epilogue does not read C");
  if (!c_.empty() && !op::reads_source(gemm_) && !options_.has_beta)
    throw InvalidArgument("--c has no effect: beta is 0 unless --beta is given");
  if (c_.empty() && !a_.empty() && op::reads_source(gemm_)) throw InvalidArgument("--c is missing: beta is not 0");
  gemm_.a = placeholder(0, gemm_.a.dtype, a, options_.a);
  gemm_.b = placeholder(1, gemm_.b.dtype, b, options_.b);
  if (op::reads_source(gemm_) || !c_.empty()) gemm_.c = placeholder(2, gemm_.c.dtype, c, options_.c);
  gemm_.d = placeholder(3, gemm_.d.dtype, d, options_.d);
  choose_epilogue_tensors();
}

void Problem::materialize() {
  std::vector<op::Tensor*> operands{&gemm_.a, &gemm_.b, &gemm_.d};
  const bool has_c = gemm_.c.address != 0;
  if (has_c) operands.push_back(&gemm_.c);
  for (op::NamedTensor& each : gemm_.tensors) operands.push_back(&each.tensor);
  std::uint64_t total = 0;
  for (const op::Tensor* operand : operands) total += static_cast<std::uint64_t>(op::span_bytes(*operand)) + kAlignment;
  struct sysinfo machine {};
  const bool is_known = sysinfo(&machine) == 0;
  if (is_known && total > machine.totalram * machine.mem_unit) {
    throw InvalidArgument(fmt::format("the matrices need {} MiB of memory, but this machine has {} MiB", total >> 20,
                                      (machine.totalram * machine.mem_unit) >> 20));
  }
  for (op::Tensor* operand : operands) {
    memory_.push_back(std::make_unique<std::byte[]>(static_cast<std::size_t>(op::span_bytes(*operand)) + kAlignment));
    const auto address = reinterpret_cast<std::uint64_t>(memory_.back().get());
    operand->address = round_up(address, kAlignment);
  }
  fill(gemm_.a, a_, options_.a, 0);
  fill(gemm_.b, b_, options_.b, 1);
  if (has_c) fill(gemm_.c, c_, options_.c, 2);
  op::fill_poison(gemm_.d);
  std::uint64_t stream = 3;
  for (const op::EpilogueTensor& each : op::epilogue_tensors(gemm_.epilogue)) {
    const op::Tensor& tensor = gemm_.tensor(each.label);
    const auto file = inputs_.find(std::string(each.label));
    if (each.is_written) {
      op::fill_poison(tensor);
    } else {
      fill(tensor, file == inputs_.end() ? std::vector<NpyMatrix>{} : std::vector{file->second}, {}, stream++);
    }
  }
}

void Problem::fill(const op::Tensor& tensor, const std::vector<NpyMatrix>& file, const OperandOptions& operand,
                   std::uint64_t stream) const {
  const std::uint64_t seed = options_.seed * 4 + stream;
  const std::int64_t limit = op::exact_integer_limit(gemm_.a.dtype, gemm_.accumulator, gemm_.k());
  if (!file.empty()) {
    const op::Tensor held = file.front().tensor();
    op::copy_elements(operand.is_transposed ? op::transposed(held) : held, tensor);
  } else if (options_.distribution == "normal") {
    op::fill_normal(tensor, is_integer(tensor.dtype) ? 16.0 : 1.0, seed);
  } else {
    op::fill_integers(tensor, tensor.dtype == DType::u8 ? 0 : -limit, limit == 1 ? 1 : limit - 1, seed);
  }
}

namespace {

// The matrix as a .npy file stores it: bf16 widened to f32, 8-bit floats as bit patterns.
NpyMatrix to_npy(const op::Tensor& tensor) {
  NpyMatrix matrix{tensor.dtype == DType::bf16 ? DType::f32 : tensor.dtype, tensor.shape, {}};
  const std::int64_t elements = tensor.batch() * tensor.rows() * tensor.columns();
  matrix.data.resize(static_cast<std::size_t>(elements * bytes(matrix.dtype)));
  op::copy_elements(tensor, matrix.tensor());
  if (is_fp8(matrix.dtype)) matrix.dtype = DType::u8;
  return matrix;
}

}  // namespace

NpyMatrix Problem::output() const { return to_npy(options_.d.is_transposed ? op::transposed(gemm_.d) : gemm_.d); }

std::vector<std::pair<std::string, NpyMatrix>> Problem::epilogue_outputs() const {
  std::vector<std::pair<std::string, NpyMatrix>> all;
  for (const auto& [name, file] : output_paths_) all.emplace_back(file, to_npy(gemm_.tensor(name)));
  return all;
}

std::vector<NamedFile> Problem::output_files() const {
  std::vector<NamedFile> all;
  for (const auto& [name, file] : output_paths_) all.push_back({"--epilogue-output " + name, file});
  return all;
}

std::vector<NamedFile> Problem::input_files() const {
  std::vector<NamedFile> all;
  for (const auto& [option, file] :
       {std::pair{"--a", options_.a.file}, {"--b", options_.b.file}, {"--c", options_.c.file}}) {
    if (!file.empty()) all.push_back({option, file});
  }
  for (const auto& [name, file] : input_paths_) all.push_back({"--epilogue-input " + name, file});
  return all;
}

std::string to_string(const op::Gemm& gemm) {
  const auto operand = [](const op::Tensor& tensor) {
    return fmt::format("{} {}", name(tensor.dtype), op::name(op::view_matrix(tensor, "operand")->layout));
  };
  const std::string batch = gemm.d.shape.rank() == 3 ? fmt::format("{} of ", gemm.batch()) : "";
  return fmt::format("{}{}x{}x{}: {} * {} -> {}, {} accumulated in {}, {}, alpha {}, beta {}", batch, gemm.m(),
                     gemm.n(), gemm.k(), operand(gemm.a), operand(gemm.b), operand(gemm.d), op::name(gemm.math),
                     name(gemm.accumulator), gemm.epilogue.name, gemm.alpha, gemm.beta);
}

}  // namespace tilewright::cli
