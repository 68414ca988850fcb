// Reads problem files.
#include "problem.hpp"

#include <algorithm>
#include <charconv>
#include <map>

#include "tilewright/base/text.hpp"

namespace tilewright::bench {
namespace {

using Fields = std::map<std::string, std::string, std::less<>>;

Result<Fields> parse_fields(std::string_view line) {
  static constexpr std::string_view kKeys[] = {"dtype", "m", "n", "k", "a", "b", "d", "out", "acc", "math", "kernel"};
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

Support read_extent(const Fields& fields, std::string_view key, std::int64_t& extent) {
  const auto field = fields.find(key);
  if (field == fields.end()) return refuse("{} is missing", key);
  const std::string& text = field->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
  if (error != std::errc() || end != text.data() + text.size() || extent < 1) {
    return refuse("{} must be a positive number, got \"{}\"", key, printable(text));
  }
  return {};
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
  if (!parsed) return refuse("{} must be an element type, got \"{}\"", key, printable(field->second));
  dtype = *parsed;
  return {};
}

Support read_math(const Fields& fields, op::MathOperation& math) {
  const auto field = fields.find("math");
  if (field == fields.end()) return {};
  const std::optional<op::MathOperation> parsed = op::parse_math_operation(field->second);
  if (!parsed) return refuse("math is unknown: \"{}\"", printable(field->second));
  math = *parsed;
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
  return read_math(fields, problem.math);
}

std::string_view short_name(op::MatrixLayout layout) { return layout == op::MatrixLayout::row_major ? "row" : "col"; }

}  // namespace

Result<Problem> parse_problem(std::string_view line) {
  const Result<Fields> fields = parse_fields(line);
  if (!fields) return fields.refusal();
  Problem problem;
  problem.line = line;
  for (const Support& read :
       {read_types(*fields, problem), read_extent(*fields, "m", problem.m), read_extent(*fields, "n", problem.n),
        read_extent(*fields, "k", problem.k), read_layout(*fields, "a", problem.a),
        read_layout(*fields, "b", problem.b), read_layout(*fields, "d", problem.d)}) {
    if (!read) return Refusal{read.reason()};
  }
  if (const auto kernel = fields->find("kernel"); kernel != fields->end()) problem.kernel = kernel->second;
  return problem;
}

std::vector<Problem> read_problems(std::istream& file, const std::string& file_name) {
  std::vector<Problem> problems;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    line.erase(std::min(line.find('#'), line.size()));
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line.empty()) continue;
    Result<Problem> problem = parse_problem(line);
    if (!problem) throw InvalidArgument(fmt::format("{}:{}: {}", file_name, number, problem.reason()));
    problems.push_back(*std::move(problem));
  }
  return problems;
}

std::string title(const Problem& problem) {
  std::string text = fmt::format("{} {}x{}x{} {} {} {}", name(problem.dtype), problem.m, problem.n, problem.k,
                                 short_name(problem.a), short_name(problem.b), short_name(problem.d));
  if (problem.out != problem.dtype) text += fmt::format(" -> {}", name(problem.out));
  if (problem.math != op::MathOperation::multiply_add) text += fmt::format(" {}", op::name(problem.math));
  return text;
}

op::Gemm gemm(const Problem& problem, std::uint64_t a, std::uint64_t b, std::uint64_t d, int ordinal) {
  const op::MemoryDevice device{.kind = op::MemoryDevice::Kind::cuda, .ordinal = ordinal};
  op::Gemm result;
  result.a = op::matrix(a, problem.dtype, problem.m, problem.k, problem.a, 0, device);
  result.b = op::matrix(b, problem.dtype, problem.k, problem.n, problem.b, 0, device);
  result.d = op::matrix(d, problem.out, problem.m, problem.n, problem.d, 0, device);
  result.c = result.d;
  result.accumulator = problem.accumulator;
  result.math = problem.math;
  result.epilogue = op::linear_combination(op::default_compute(problem.accumulator, problem.out));
  return result;
}

}  // namespace tilewright::bench
