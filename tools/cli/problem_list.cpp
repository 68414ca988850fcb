#include "tools/cli/problem_list.hpp"

#include <functional>
#include <sstream>
#include <unordered_map>

#include "tilewright/base/text.hpp"
#include "tilewright/profile/extents.hpp"
#include "tools/cli/input_file.hpp"
#include "tools/cli/number.hpp"
#include "tools/cli/problem.hpp"

namespace tilewright::cli {
namespace {

constexpr std::size_t kMaxProblems = 100000;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  if (parts.empty()) parts.emplace_back();
  return parts;
}

void set_layouts(const std::string& letters, ProblemOptions& options) {
  const bool has_letters = letters.find_first_not_of("tn") == std::string::npos;
  if (!has_letters || letters.size() < 2 || letters.size() > 3) {
    throw InvalidArgument(fmt::format(
        "--layouts takes two letters for A and B, or three with D, t for row-major and n for column-major, such as tn; "
        "got '{}'",
        printable(letters, 40)));
  }
  options.a.is_transposed = letters[0] == 'n';
  options.b.is_transposed = letters[1] == 'n';
  options.d.is_transposed = letters.size() == 3 && letters[2] == 'n';
}

bool read_layout(const std::string& value) {
  if (value != "row" && value != "col")
    throw InvalidArgument(fmt::format("a layout must be row or col, got '{}'", printable(value, 40)));
  return value == "col";
}

op::Problem problem_of_line(const std::string& line) {
  ProblemOptions options;
  const auto extent = [](std::optional<std::int64_t>& target) {
    return [&target](const std::string& value) { target = parse_integer<std::int64_t>("an extent", value, {}); };
  };
  const auto text = [](std::string& target) { return [&target](const std::string& value) { target = value; }; };
  const auto layout = [](OperandOptions& operand) {
    return [&operand](const std::string& value) { operand.is_transposed = read_layout(value); };
  };
  const auto leading = [](OperandOptions& operand) {
    return [&operand](const std::string& value) {
      operand.ld = parse_integer<std::int64_t>("a leading dimension", value, {});
    };
  };
  const auto ignored = [](const std::string&) {};
  const std::unordered_map<std::string, std::function<void(const std::string&)>> fields{
      {"m", extent(options.m)},
      {"n", extent(options.n)},
      {"k", extent(options.k)},
      {"batch", extent(options.batch)},
      {"dtype", text(options.dtype)},
      {"out", text(options.out_dtype)},
      {"acc", text(options.accumulator)},
      {"math", text(options.math)},
      {"epilogue", text(options.epilogue)},
      {"a", layout(options.a)},
      {"b", layout(options.b)},
      {"d", layout(options.d)},
      {"lda", leading(options.a)},
      {"ldb", leading(options.b)},
      {"ldd", leading(options.d)},
      {"id", ignored},
      {"class", ignored},
      {"kernel", ignored}};
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    const auto field = fields.find(word.substr(0, equals));
    if (equals == std::string::npos || field == fields.end()) {
      throw InvalidArgument(fmt::format(
          "'{}' is none of m, n, k, batch, dtype, out, acc, math, epilogue, a, b, d, lda, ldb and ldd with =VALUE",
          printable(word, 40)));
    }
    field->second(word.substr(equals + 1));
  }
  for (const auto& [letter, given] : {std::pair{'m', options.m}, {'n', options.n}, {'k', options.k}}) {
    if (!given) throw InvalidArgument(fmt::format("{}=EXTENT is missing: every line needs m, n and k", letter));
  }
  if (options.batch == 1) options.batch.reset();
  return Problem(options).gemm();
}

}  // namespace

std::vector<op::Problem> problems_of(const ProblemRanges& ranges) {
  const auto extents = [](const std::string& text, const char* option) {
    if (text.empty()) throw InvalidArgument(fmt::format("{} is missing: give --m, --n and --k", option));
    return profile::parse_extents(text, option).value_or_throw();
  };
  const std::vector<std::int64_t> m = extents(ranges.m, "--m"), n = extents(ranges.n, "--n"),
                                  k = extents(ranges.k, "--k"),
                                  batch = extents(ranges.batch.empty() ? "1" : ranges.batch, "--batch");
  const std::vector<std::string> layouts = split(ranges.layouts, ','), dtypes = split(ranges.dtypes, ',');
  std::size_t count = 1;
  for (const std::size_t length : {m.size(), n.size(), k.size(), batch.size(), layouts.size(), dtypes.size()}) {
    count *= length;
    if (count > kMaxProblems) throw InvalidArgument(fmt::format("the ranges have more than {} problems", kMaxProblems));
  }
  std::vector<op::Problem> problems;
  for (std::size_t index = 0; index < count; ++index) {
    std::size_t rest = index;  // the values taken first vary fastest
    const auto next = [&rest](const auto& values) {
      const auto& value = values[rest % values.size()];
      rest /= values.size();
      return value;
    };
    ProblemOptions options;
    options.m = next(m);
    options.n = next(n);
    options.k = next(k);
    if (const std::int64_t matrices = next(batch); matrices != 1) options.batch = matrices;
    set_layouts(next(layouts), options);
    options.dtype = next(dtypes);
    options.accumulator = ranges.accumulator;
    options.out_dtype = ranges.out_dtype;
    options.math = ranges.math;
    options.epilogue = ranges.epilogue;
    problems.emplace_back(Problem(options).gemm());
  }
  return problems;
}

std::vector<op::Problem> problems_of_list(const std::string& path) {
  constexpr std::size_t kMaxBytes = 1 << 24;
  std::istringstream lines(read_input_file(path, kMaxBytes));
  std::vector<op::Problem> problems;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      problems.push_back(problem_of_line(line));
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("{}:{}: {}", printable(path), number, error.what()));
    }
  }
  if (problems.empty()) throw InvalidArgument(fmt::format("{} has no problems", printable(path)));
  return problems;
}

}  // namespace tilewright::cli
