#include "tilewright/compile/ptx_in_cuda.hpp"

#include <charconv>
#include <optional>
#include <regex>
#include <vector>

#include "tilewright/base/text.hpp"

namespace tilewright::compile {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") + 1 - begin);
}

/// The product of the numbers in "128, 2, 1"; 0 if there is none.
int product(const std::string& numbers) {
  int all = 1;
  for (const std::string& number : split(numbers, ',')) {
    const std::string_view digits = trimmed(number);
    int value = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc()) return 0;
    all *= value;
  }
  return all;
}

/// The attributes of a CUDA kernel that give the directives between parameters and body of an entry.
Result<std::string> attributes(std::string_view directives) {
  std::string threads, ctas, cluster, registers;
  for (const std::string& each : split(std::string(directives), '\n')) {
    const std::string_view line = trimmed(each);
    const std::size_t space = std::min(line.find_first_of(" \t"), line.size());
    const std::string_view name = line.substr(0, space);
    const std::string value(trimmed(line.substr(space)));
    if (name == ".reqntid" || name == ".maxntid") {
      threads = value;
    } else if (name == ".minnctapersm") {
      ctas = value;
    } else if (name == ".reqnctapercluster") {
      cluster = value;
    } else if (name == ".maxnreg") {
      registers = value;
    } else if (!name.empty() && name != ".explicitcluster") {
      return refuse("NVRTC cannot assemble an entry with the directive {}", name);
    }
  }
  std::string text;
  if (product(threads) > 0)
    text += fmt::format("__launch_bounds__({}{}) ", product(threads), ctas.empty() ? "" : ", " + ctas);
  if (!registers.empty()) text += fmt::format("__maxnreg__({}) ", registers);
  if (!cluster.empty()) text += fmt::format("__cluster_dims__({}) ", cluster);
  return text;
}

struct SharedMemory {
  std::string name;
  std::string alignment;
};

/// The external shared memory that the lines before the entry declare.
Result<std::optional<SharedMemory>> external_shared_memory(std::string_view before) {
  static const std::regex declaration(R"(\.extern \.shared \.align (\d+) \.b8 (\w+)\[\];)");
  std::optional<SharedMemory> found;
  for (const std::string& each : split(std::string(before), '\n')) {
    const std::string line(trimmed(each.substr(0, each.find("//"))));
    std::smatch match;
    if (std::regex_match(line, match, declaration) && !found) {
      found = SharedMemory{match[2], match[1]};
    } else if (!line.empty() && !line.starts_with(".version") && !line.starts_with(".target") &&
               !line.starts_with(".address_size") && !line.starts_with(".file")) {
      return refuse("NVRTC cannot assemble a module with '{}'", printable(line, 80));
    }
  }
  return found;
}

/// The body as adjacent string literals. In assembly of CUDA C++, % is doubled and labels may not contain $.
std::string quoted(std::string_view body) {
  std::string text;
  for (const std::string& each : split(std::string(body), '\n')) {
    std::string_view line = trimmed(each);
    if (line.empty() || line.starts_with("//") || line.starts_with(".loc")) continue;
    text += "\"";
    while (!line.empty()) {
      constexpr std::string_view kLabel = "$L__";
      if (line.starts_with(kLabel)) {
        text += "L__";
        line.remove_prefix(kLabel.size());
        continue;
      }
      if (line.front() == '%') text += '%';
      if (line.front() == '"' || line.front() == '\\') text += '\\';
      text += line.front();
      line.remove_prefix(1);
    }
    text += "\\n\"\n";
  }
  return text;
}

}  // namespace

Result<std::string> ptx_in_cuda(std::string_view ptx, std::string_view symbol) {
  const std::string entry = fmt::format(".visible .entry {}(", symbol);
  const std::size_t begin = ptx.find(entry);
  if (begin == std::string_view::npos) return refuse("the PTX has no entry {}", symbol);
  const std::size_t parameters = begin + entry.size();
  const std::size_t close = ptx.find(')', parameters);
  const std::size_t open = ptx.find("\n{", parameters);
  const std::size_t end = ptx.find("\n}", parameters);
  if (close == std::string_view::npos || open == std::string_view::npos || end == std::string_view::npos ||
      close > open || open > end) {
    return refuse("the PTX of {} has no body", symbol);
  }
  const std::regex one_struct(fmt::format(R"(\.param \.align (\d+) \.b8 {}_param_0\[(\d+)\])", symbol));
  const std::string parameter(trimmed(ptx.substr(parameters, close - parameters)));
  std::smatch match;
  if (!std::regex_match(parameter, match, one_struct))
    return refuse("NVRTC can only assemble kernels whose parameters are one struct, got '{}'",
                  printable(parameter, 80));
  if (ptx.find(".entry", end) != std::string_view::npos || ptx.find(".func", end) != std::string_view::npos)
    return refuse("NVRTC can only assemble a module with one function");
  const Result<std::optional<SharedMemory>> shared = external_shared_memory(ptx.substr(0, begin));
  if (!shared) return shared.refusal();
  const Result<std::string> attribute_text = attributes(ptx.substr(close + 1, open - close - 1));
  if (!attribute_text) return attribute_text.refusal();

  // The operands of the asm statement are not used; they make NVRTC declare the parameter and the shared memory, which
  // the body names.
  std::string text =
      fmt::format("struct alignas({}) Parameters {{ char bytes[{}]; }};\n", match[1].str(), match[2].str());
  text += fmt::format("extern \"C\" __global__ void {}{}(const __grid_constant__ Parameters parameters) {{\n",
                      *attribute_text, symbol);
  std::string operand = "\"l\"(&parameters)";
  if (*shared) {
    text += fmt::format("extern __shared__ __align__({}) char {}[];\n", (*shared)->alignment, (*shared)->name);
    operand += fmt::format(", \"l\"({})", (*shared)->name);
  }
  text += fmt::format("asm volatile(\"{{\\n\"\n{}\"}}\" :: {} : \"memory\");\n}}\n",
                      quoted(ptx.substr(open + 2, end - open - 2)), operand);
  return text;
}

}  // namespace tilewright::compile
