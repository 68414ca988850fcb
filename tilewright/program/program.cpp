#include "tilewright/program/program.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/text.hpp"

namespace tilewright::program {
namespace {

/// The lines of the listing before the first statement: the kernel, one for each parameter, the grid.
int head_lines(const Program& program) { return 2 + static_cast<int>(program.parameters.size()); }

void number_lines(Block& block, int& line) {
  for (Statement& statement : block) {
    statement.line = line++;
    if (auto* loop = std::get_if<Loop>(&statement.node)) number_lines(loop->body, line);
    if (auto* branch = std::get_if<Branch>(&statement.node)) {
      number_lines(branch->body, line);
      if (branch->otherwise.empty()) continue;
      ++line;
      number_lines(branch->otherwise, line);
    }
  }
}

std::string_view kind_name(Parameter::Kind kind) {
  switch (kind) {
    case Parameter::Kind::integer:
      return "integer";
    case Parameter::Kind::address:
      return "address";
    case Parameter::Kind::scalar:
      return "f32";
    case Parameter::Kind::tensor_map:
      return "tensor map";
    case Parameter::Kind::workspace:
      return "workspace";
  }
  return "";
}

class Lister {
 public:
  explicit Lister(const Program& program) : program_(program) {}

  std::string list() && {
    const auto& [x, y, z] = program_.cluster;
    out_.line("kernel {}: {}, {} threads, cluster {}x{}x{}, {} bytes of shared memory", program_.symbol,
              program_.target.name(), program_.threads, x, y, z, program_.shared_bytes);
    for (const Parameter& parameter : program_.parameters) {
      out_.line("  parameter {}: {}{}", parameter.name, kind_name(parameter.kind),
                parameter.value.id < 0 ? std::string() : fmt::format(" {}", text(parameter.value)));
    }
    out_.line("  grid ({}, {}, {})", to_string(program_.grid[0]), to_string(program_.grid[1]),
              to_string(program_.grid[2]));
    out_.indent();
    write(program_.body);
    return std::move(out_).take();
  }

 private:
  std::string text(const Value& value) const {
    return to_string(value, program_.counts[static_cast<std::size_t>(value.id)]);
  }
  std::string defined(const Value& value) const {
    const std::string type(name(value.type));
    return value.count == 1 ? fmt::format("v{}: {}", value.id, type)
                            : fmt::format("v{}: {} x {}", value.id, type, value.count);
  }

  /// The operand in the instruction's text.
  std::string text(const Operand& operand) const {
    switch (operand.kind) {
      case Operand::Kind::output:
        return fmt::format("v{}", operand.value.id);
      case Operand::Kind::update:
        return text(operand.inputs.front());
      case Operand::Kind::input: {
        std::string texts;
        for (const Value& value : operand.inputs) texts += (texts.empty() ? "" : ", ") + text(value);
        return operand.inputs.size() == 1 ? texts : "{" + texts + "}";
      }
      case Operand::Kind::number:
      case Operand::Kind::immediate:
        return to_string(operand.number);
      case Operand::Kind::address:
        return "&" + program_.parameters[static_cast<std::size_t>(operand.parameter)].name;
    }
    return "";
  }

  void write(const Instruction& instruction) {
    std::string results;
    for (const Operand& operand : instruction.operands) {
      if (operand.kind == Operand::Kind::output || operand.kind == Operand::Kind::update)
        results += (results.empty() ? "" : ", ") + defined(operand.value);
    }
    std::string ptx;
    for (std::size_t at = 0; at < instruction.text.size(); ++at) {
      const char c = instruction.text[at];
      if (c == '$') {
        std::size_t index = 0;
        while (at + 1 < instruction.text.size() && instruction.text[at + 1] >= '0' && instruction.text[at + 1] <= '9')
          index = 10 * index + static_cast<std::size_t>(instruction.text[++at] - '0');
        ptx += text(instruction.operands[index]);
      } else {
        ptx += c == '\n' ? ' ' : c;
      }
    }
    if (ptx.empty()) ptx = "undefined";
    out_.line("{}{}{}", results, results.empty() ? "" : " = ", ptx);
  }
  void write(const Binding& binding) { out_.line("{} = {}", to_string(binding.variable), text(binding.value)); }
  void write(const Remark& remark) { out_.line("// {}", remark.text); }

  void write(const Loop& loop) {
    std::string carried;
    for (const Carried<Number>& number : loop.numbers) {
      if (!number.changes()) continue;
      carried +=
          fmt::format(", {} = {} then {}", to_string(number.inside), to_string(number.before), to_string(number.after));
    }
    for (const Carried<Value>& value : loop.values) {
      if (!value.changes()) continue;
      carried += fmt::format(", {} = {} then {}", text(value.inside), text(value.before), text(value.after));
    }
    if (loop.condition) {
      out_.line("while {}{}:", to_string(*loop.condition), carried);
    } else {
      out_.line("for {} from {} below {} step {}{}:", to_string(loop.counter), to_string(loop.first),
                to_string(loop.end), to_string(loop.step), carried);
    }
    out_.indent();
    write(loop.body);
    out_.dedent();
  }

  void write(const Branch& branch) {
    std::string results;
    for (const Chosen<Number>& number : branch.numbers) {
      results += fmt::format("; {} = {} else {}", to_string(number.outside), to_string(number.body),
                             to_string(number.otherwise));
    }
    for (const Chosen<Value>& value : branch.values)
      results += fmt::format("; {} = {} else {}", text(value.outside), text(value.body), text(value.otherwise));
    out_.line("if {}{}:", to_string(branch.condition), results);
    out_.indent();
    write(branch.body);
    out_.dedent();
    if (branch.otherwise.empty()) return;
    out_.line("else:").indent();
    write(branch.otherwise);
    out_.dedent();
  }

  void write(const Block& block) {
    for (const Statement& statement : block) std::visit([this](const auto& node) { write(node); }, statement.node);
  }

  const Program& program_;
  SourceWriter out_;
};

}  // namespace

void number_lines(Program& program) {
  int line = head_lines(program) + 1;
  number_lines(program.body, line);
}

std::string listing(const Program& program) { return Lister(program).list(); }

std::string to_string(const Program& program) {
  const std::vector<std::string> lines = split(listing(program), '\n');
  const std::size_t width = fmt::formatted_size("{}", lines.size());
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i + 1 < lines.size() || !lines[i].empty()) text += fmt::format("{:>{}}  {}\n", i + 1, width, lines[i]);
  }
  return text;
}

}  // namespace tilewright::program
