// Reads problem files and computes the matrices of a problem.
#include "problem.hpp"

#include <algorithm>
#include <charconv>
#include <map>

#include "problem_class.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/op/epilogue_tensors.hpp"

namespace tilewright::bench {
namespace {

using Fields = std::map<std::string, std::string, std::less<>>;

Result<Fields> parse_fields(std::string_view line) {
  static constexpr std::string_view kKeys[] = {"id",  "class", "dtype", "batch", "m",      "n",
                                               "k",   "a",     "b",     "d",     "lda",    "ldb",
                                               "ldd", "out",   "acc",   "math",  "kernel", "epilogue"};
  Fields fields;
  for (const std::string& word : split(line, ' ')) {
    if (word.empty()) continue;
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) return refuse("expected key=value, got \"{}\"", printable(word));
    const std::string key = word.substr(0, equals);
    if (std::ranges::find(kKeys, key) == std::end(kKeys)) return refuse("unknown key \"{}\"", printable(key));
    if (!fields.emplace(key, word.substr(equals + 1)).second) return refuse("key \"{}\" is given twice", key);
  }
  return fields;
}

std::string read_text(const Fields& fields, std::string_view key) {
  const auto field = fields.find(key);
  return field == fields.end() ? "" : field->second;
}

/// Leaves `extent` unchanged if the key is not given.
Support read_extent(const Fields& fields, std::string_view key, std::int64_t& extent) {
  const auto field = fields.find(key);
  if (field == fields.end()) return {};
  const std::string& text = field->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
  if (error != std::errc() || end != text.data() + text.size() || extent < 1) {
    return refuse("{} must be a positive number, got \"{}\"", key, printable(text));
  }
  return {};
}

Support read_required_extent(const Fields& fields, std::string_view key, std::int64_t& extent) {
  if (!fields.contains(key)) return refuse("{} is missing", key);
  return read_extent(fields, key, extent);
}

Support read_class(const Fields& fields, std::string& problem_class) {
  problem_class = read_text(fields, "class");
  if (problem_class.empty() || find_problem_class(problem_class) != nullptr) return {};
  std::string names;
  for (const ProblemClass& known : problem_classes())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
  return refuse("class must be one of {}, got \"{}\"", names, printable(problem_class));
}

Support read_layout(const Fields& fields, std::string_view key, op::MatrixLayout& layout) {
  const auto field = fields.find(key);
  if (field == fields.end() || field->second == "row") return {};
  if (field->second != "col") return refuse("{} must be row or col, got \"{}\"", key, printable(field->second));
  layout = op::MatrixLayout::column_major;
  return {};
}

Support read_dtype(const Fields& fields, std::string_view key, DType& dtype) {
  const auto field = fields.find(key);
  if (field == fields.end()) return {};
  const std::optional<DType> parsed = parse_dtype(field->second);
  if (!parsed || bits(*parsed) % 8 != 0)
    return refuse("{} must be an element type of whole bytes, got \"{}\"", key, printable(field->second));
  dtype = *parsed;
  return {};
}

Support read_math(const Fields& fields, Problem& problem) {
  const auto field = fields.find("math");
  if (field == fields.end()) return {};
  const std::optional<op::MathOperation> parsed = op::parse_math_operation(field->second);
  if (!parsed) return refuse("math is unknown: \"{}\"", printable(field->second));
  problem.math = *parsed;
  return {};
}

Support read_types(const Fields& fields, Problem& problem) {
  if (!fields.contains("dtype")) return refuse("dtype is missing");
  if (Support read = read_dtype(fields, "dtype", problem.dtype); !read) return read;
  if (problem.dtype == DType::tf32) {
    problem.dtype = DType::f32;
    problem.math = op::MathOperation::multiply_add_tf32;
  }
  problem.out = is_integer(problem.dtype) ? DType::s32 : problem.dtype;
  problem.accumulator = op::default_accumulator(problem.dtype);
  if (Support read = read_dtype(fields, "out", problem.out); !read) return read;
  if (Support read = read_dtype(fields, "acc", problem.accumulator); !read) return read;
  return read_math(fields, problem);
}

Support read_leading_dimension(const Fields& fields, std::string_view key, std::int64_t& ld,
                               const StoredMatrix& stored) {
  if (Support read = read_extent(fields, key, ld); !read) return read;
  const std::int64_t packed = stored.layout == op::MatrixLayout::row_major ? stored.columns : stored.rows;
  if (ld != 0 && ld < packed) return refuse("{} must be at least {}, got {}", key, packed, ld);
  return {};
}

Support read_leading_dimensions(const Fields& fields, Problem& problem) {
  if (Support read = read_leading_dimension(fields, "lda", problem.lda, stored_a(problem)); !read) return read;
  if (Support read = read_leading_dimension(fields, "ldb", problem.ldb, stored_b(problem)); !read) return read;
  return read_leading_dimension(fields, "ldd", problem.ldd, stored_d(problem));
}

/// Checks that the size of the matrix in bytes fits into 63 bits.
Support check_size(std::string_view name, const StoredMatrix& matrix) {
  std::int64_t size = tilewright::bytes(matrix.dtype);
  for (const std::int64_t factor : {matrix.batch, matrix.ld, std::max(matrix.rows, matrix.columns)}) {
    if (__builtin_mul_overflow(size, factor, &size))
      return refuse("the size of {} of {}x{}x{} in bytes needs more than 63 bits", name, matrix.batch, matrix.rows,
                    matrix.columns);
  }
  return {};
}

Support check_sizes(const Problem& problem) {
  for (const auto& [name, matrix] : {std::pair{"A", stored_a(problem)},
                                     {"B", stored_b(problem)},
                                     {"D", stored_d(problem)},
                                     {"C", stored_c(problem)}}) {
    if (Support support = check_size(name, matrix); !support) return support;
  }
  return {};
}

/// cuBLASLt's bias has one element per column of D only if D is row-major. Batches and other types are not measured.
Support check_epilogue(const Problem& problem, const EpilogueCase& epilogue) {
  const std::string_view name = epilogue.name;
  if (problem.d != op::MatrixLayout::row_major) return refuse("epilogue={} needs d=row", name);
  if (problem.batch != 1) return refuse("epilogue={} needs batch=1, got {}", name, problem.batch);
  if (!problem.problem_class.empty())
    return refuse("classes are for problems without an epilogue, but epilogue={} is given", name);
  if (!is_float(problem.out) || problem.out == DType::f64)
    return refuse("epilogue={} needs a D of a floating-point type of at most 32 bits, got {}", name,
                  tilewright::name(problem.out));
  if (graph(epilogue, DType::f32).is_gated() && problem.n % 2 != 0)
    return refuse("epilogue={} needs an even n, got {}", name, problem.n);
  return {};
}

Support read_epilogue(const Fields& fields, Problem& problem) {
  const auto field = fields.find("epilogue");
  if (field == fields.end()) return {};
  if (const EpilogueCase* const found = find_epilogue_case(field->second)) {
    if (Support support = check_epilogue(problem, *found); !support) return support;
    problem.epilogue = found;
    return {};
  }
  std::vector<std::string_view> names;
  for (const EpilogueCase& known : epilogue_cases()) names.push_back(known.name);
  return refuse("epilogue must be one of {}, got \"{}\"", fmt::join(names, ", "), printable(field->second));
}

std::string_view short_name(op::MatrixLayout layout) { return layout == op::MatrixLayout::row_major ? "row" : "col"; }

StoredMatrix stored(const Problem& problem, DType dtype, std::int64_t rows, std::int64_t columns,
                    op::MatrixLayout layout, std::int64_t ld) {
  const std::int64_t packed = layout == op::MatrixLayout::row_major ? columns : rows;
  return {dtype, problem.batch, rows, columns, layout, ld == 0 ? packed : ld};
}

/// Columns of A*B per column of D.
int columns_per_element(const Problem& problem) {
  return problem.epilogue == nullptr ? 1 : graph(problem).columns_per_element();
}

}  // namespace

std::int64_t StoredMatrix::batch_stride() const {
  return ld * (layout == op::MatrixLayout::row_major ? rows : columns);
}

std::size_t StoredMatrix::bytes() const {
  return static_cast<std::size_t>(batch * batch_stride() * tilewright::bytes(dtype));
}

std::int64_t StoredMatrix::index(std::int64_t matrix, std::int64_t row, std::int64_t column) const {
  const bool is_row_major = layout == op::MatrixLayout::row_major;
  return matrix * batch_stride() + (is_row_major ? row * ld + column : column * ld + row);
}

StoredMatrix stored_a(const Problem& problem) {
  return stored(problem, problem.dtype, problem.m, problem.k, problem.a, problem.lda);
}

StoredMatrix stored_b(const Problem& problem) {
  return stored(problem, problem.dtype, problem.k, problem.n, problem.b, problem.ldb);
}

StoredMatrix stored_d(const Problem& problem) {
  return stored(problem, problem.out, problem.m, problem.n / columns_per_element(problem), problem.d, problem.ldd);
}

StoredMatrix stored_c(const Problem& problem) {
  return stored(problem, case_type(CaseType::wide, problem.out), problem.m, problem.n, problem.d, 0);
}

bool is_plain_in_d(const Problem& problem) { return columns_per_element(problem) == 1; }

bool is_product_in_d(const Problem& problem) {
  return is_plain_in_d(problem) && case_type(CaseType::wide, problem.out) == problem.out;
}

StoredMatrix stored_product(const Problem& problem) {
  return is_product_in_d(problem) ? stored_d(problem) : stored_c(problem);
}

std::vector<StoredTensor> stored_tensors(const Problem& problem) {
  if (problem.epilogue == nullptr) return {};
  const op::Epilogue epilogue = graph(problem);
  const std::vector<op::EpilogueTensor> of_graph = op::epilogue_tensors(epilogue);
  std::vector<StoredTensor> tensors;
  for (const CaseTensor& row : problem.epilogue->tensors) {
    const auto found = std::ranges::find(of_graph, row.label, &op::EpilogueTensor::label);
    TILEWRIGHT_CHECK(found != of_graph.end(), "epilogue {} has no tensor '{}'", problem.epilogue->name, row.label);
    const std::int64_t rows = found->broadcast.along_m ? problem.m : 1,
                       columns = found->broadcast.along_n ? problem.n : 1;
    tensors.push_back({row,
                       stored(problem, case_type(row.type, problem.out), rows, columns, op::MatrixLayout::row_major, 0),
                       found->is_written, found->is_written && found->broadcast != op::kFull});
  }
  return tensors;
}

op::Epilogue graph(const Problem& problem) {
  const DType compute = op::default_compute(problem.accumulator, problem.out);
  return problem.epilogue == nullptr ? op::linear_combination(compute) : graph(*problem.epilogue, compute);
}

Problem plain(const Problem& problem) {
  Problem product = problem;
  product.epilogue = nullptr;
  if (!is_plain_in_d(problem)) product.ldd = 0;
  return product;
}

Result<Problem> parse_problem(std::string_view line) {
  const Result<Fields> fields = parse_fields(line);
  if (!fields) return fields.refusal();
  Problem problem;
  problem.line = line;
  problem.id = read_text(*fields, "id");
  problem.kernel = read_text(*fields, "kernel");
  for (const Support& read :
       {read_class(*fields, problem.problem_class), read_types(*fields, problem),
        read_required_extent(*fields, "m", problem.m), read_required_extent(*fields, "n", problem.n),
        read_required_extent(*fields, "k", problem.k), read_extent(*fields, "batch", problem.batch),
        read_layout(*fields, "a", problem.a), read_layout(*fields, "b", problem.b),
        read_layout(*fields, "d", problem.d), read_epilogue(*fields, problem),
        read_leading_dimensions(*fields, problem)}) {
    if (!read) return Refusal{read.reason()};
  }
  if (const Support sizes = check_sizes(problem); !sizes) return sizes.refusal();
  return problem;
}

std::vector<Problem> read_problems(std::istream& file, const std::string& file_name) {
  std::vector<Problem> problems;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    line.erase(std::min(line.find('#'), line.size()));
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line.empty()) continue;
    const auto refuse_line = [&](const std::string& reason) {
      throw InvalidArgument(fmt::format("{}:{}: {}", file_name, number, reason));
    };
    Result<Problem> problem = parse_problem(line);
    if (!problem) refuse_line(problem.reason());
    if (!problem->id.empty() && std::ranges::find(problems, problem->id, &Problem::id) != problems.end())
      refuse_line(fmt::format("id \"{}\" is given twice", printable(problem->id)));
    problems.push_back(*std::move(problem));
  }
  return problems;
}

std::string title(const Problem& problem) {
  std::string text = fmt::format("{} ", name(problem.dtype));
  if (problem.batch != 1) text += fmt::format("{}x ", problem.batch);
  text += fmt::format("{}x{}x{} {} {} {}", problem.m, problem.n, problem.k, short_name(problem.a),
                      short_name(problem.b), short_name(problem.d));
  if (problem.out != problem.dtype) text += fmt::format(" -> {}", name(problem.out));
  if (problem.math != op::MathOperation::multiply_add) text += fmt::format(" {}", op::name(problem.math));
  if (problem.lda != 0 || problem.ldb != 0 || problem.ldd != 0)
    text += fmt::format(", ld {} {} {}", stored_a(problem).ld, stored_b(problem).ld, stored_d(problem).ld);
  if (problem.epilogue != nullptr) text += fmt::format(", {}", problem.epilogue->name);
  return text;
}

double operations(const Problem& problem) {
  return 2.0 * static_cast<double>(problem.batch) * static_cast<double>(problem.m) * static_cast<double>(problem.n) *
         static_cast<double>(problem.k);
}

}  // namespace tilewright::bench
