#include "tilewright/lower/cuda/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/layout/number_text.hpp"
#include "tilewright/lower/ptx_text.hpp"

namespace tilewright::lower::cuda {
namespace {

using layout::Number;
using program::Operand;
using program::Parameter;
using program::RegisterType;
using program::Value;

std::string_view c_type(RegisterType type) {
  switch (type) {
    case RegisterType::b16:
      return "unsigned short";
    case RegisterType::b32:
      return "unsigned";
    case RegisterType::b64:
      return "unsigned long long";
    case RegisterType::f32:
      return "float";
    case RegisterType::f64:
      return "double";
  }
  return "";
}

/// A character of PTX in the string of an asm statement.
std::string escaped(char c) {
  if (c == '%') return "%%";
  if (c == '\n') return "\\n";
  return std::string(1, c);
}

/// Lines of C, each with the line of the listing that it comes from.
class Lines {
 public:
  explicit Lines(std::string file) : file_(std::move(file)) {}

  void at(int line) { line_ = line; }
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    if (line_ > 0 && line_ != next_) out_.line("#line {} \"{}\"", line_, file_);
    out_.line(format, std::forward<Args>(args)...);
    next_ = line_ + 1;
  }
  void indent() { out_.indent(); }
  void dedent() { out_.dedent(); }
  std::string take() && { return std::move(out_).take(); }

 private:
  SourceWriter out_;
  std::string file_;
  int line_ = 0;
  int next_ = 0;  // of the line that the compiler counts next
};

class Printer {
 public:
  explicit Printer(const program::Program& program)
      : program_(program), out_(program.symbol + ".tw"), storage_(program.counts.size()) {}

  std::string print() && {
    write_head();
    write(program_.body);
    out_.at(0);
    out_.dedent();
    out_.line("}}");
    return std::move(out_).take();
  }

 private:
  void write_head() {
    out_.line("#include \"tilewright/types.cuh\"");
    out_.line("struct Parameters {{");
    out_.indent();
    for (const Parameter& parameter : program_.parameters) {
      switch (parameter.kind) {
        case Parameter::Kind::integer:
          out_.line("unsigned {}_;", parameter.name);
          break;
        case Parameter::Kind::address:
        case Parameter::Kind::workspace:
          out_.line("unsigned long long {}_;", parameter.name);
          break;
        case Parameter::Kind::scalar:
          out_.line("float {}_;", parameter.name);
          break;
        case Parameter::Kind::tensor_map:
          out_.line("alignas(64) unsigned char {}_[128];", parameter.name);
          break;
      }
    }
    if (program_.parameters.empty()) out_.line("unsigned char empty;");
    out_.dedent();
    out_.line("}};");
    for (const Parameter& parameter : program_.parameters) {
      out_.line("static_assert(TILEWRIGHT_OFFSET_OF(Parameters, {}_) == {});", parameter.name, parameter.offset);
    }
    const auto& [x, y, z] = program_.cluster;
    const std::string cluster = x * y * z > 1 ? fmt::format("__cluster_dims__({}, {}, {}) ", x, y, z) : "";
    out_.line("extern \"C\" __global__ void {}__launch_bounds__({}, {})", cluster, program_.threads, program_.min_ctas);
    out_.line("{}(const __grid_constant__ Parameters parameters) {{", program_.symbol);
    out_.indent();
    const program::SpecialVariables& variables = program_.variables;
    define(variables.thread, "threadIdx.x");
    const std::string axes = "xyz";
    for (std::size_t mode = 0; mode < 3; ++mode) {
      define(variables.block[mode], fmt::format("blockIdx.{}", axes[mode]));
      define(variables.blocks[mode], fmt::format("gridDim.{}", axes[mode]));
    }
    if (program_.shared_bytes > 0) {
      out_.line("extern __shared__ __align__(1024) unsigned char shared_memory[];");
      out_.line("const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(shared_memory));");
    }
    define(variables.shared, "shared");
    if (x * y * z > 1) {
      out_.line("unsigned cluster_rank;");
      out_.line("asm(\"mov.u32 %0, %%cluster_ctarank;\" : \"=r\"(cluster_rank));");
    }
    if (x * y * z > 1) define(variables.cluster_rank, "cluster_rank");
    for (const Parameter& parameter : program_.parameters) {
      const std::string field = fmt::format("parameters.{}_", parameter.name);
      if (parameter.kind == Parameter::Kind::integer) define(parameter.variable, field);
      if (parameter.value.id >= 0) storage(parameter.value) = field;
    }
  }

  std::string& storage(const Value& value) { return storage_[static_cast<std::size_t>(value.id)]; }
  int whole(const Value& value) const { return program_.counts[static_cast<std::size_t>(value.id)]; }

  /// The C expressions of the value's registers.
  std::vector<std::string> registers(const Value& value) {
    const std::string& name = storage(value);
    TILEWRIGHT_CHECK(!name.empty(), "v{} is used before it is defined", value.id);
    if (whole(value) == 1) return {name};
    std::vector<std::string> names;
    for (int i = 0; i < value.count; ++i) names.push_back(fmt::format("{}[{}]", name, value.first + i));
    return names;
  }

  /// Declares variables for the value's registers.
  void declare(const Value& value) {
    storage(value) = fmt::format("v{}", value.id);
    if (value.count == 1) {
      out_.line("{} v{};", c_type(value.type), value.id);
    } else {
      out_.line("{} v{}[{}];", c_type(value.type), value.id, value.count);
    }
  }

  void copy(const Value& to, const Value& from) {
    const std::vector<std::string> targets = registers(to), sources = registers(from);
    std::string text;
    for (std::size_t i = 0; i < targets.size(); ++i) text += fmt::format("{} = {}; ", targets[i], sources[i]);
    out_.line("{}", text);
  }

  void write(const program::Instruction& instruction) {
    std::vector<std::vector<std::string>> names(instruction.operands.size());  // "%3" of each register
    std::string outputs, inputs;
    int next = 0;
    const std::string_view early = is_sequence(instruction.text) ? "&" : "";
    const auto add = [&](std::size_t operand, std::string& list, std::string_view how, RegisterType type,
                         const std::string& text) {
      list += fmt::format("{}\"{}{}\"({})", list.empty() ? "" : ", ", how, constraint(type), text);
      names[operand].push_back(fmt::format("%{}", next++));
    };
    for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
      const Operand& operand = instruction.operands[i];
      if (operand.kind == Operand::Kind::output) {
        declare(operand.value);
        for (const std::string& text : registers(operand.value))
          add(i, outputs, fmt::format("={}", early), operand.type, text);
      } else if (operand.kind == Operand::Kind::update) {
        storage(operand.value) = storage(operand.inputs.front());
        for (const std::string& text : registers(operand.value))
          add(i, outputs, fmt::format("+{}", early), operand.type, text);
      }
    }
    if (instruction.text.empty()) return;
    for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
      const Operand& operand = instruction.operands[i];
      switch (operand.kind) {
        case Operand::Kind::input:
          for (const Value& value : operand.inputs) {
            for (const std::string& text : registers(value)) add(i, inputs, "", operand.type, text);
          }
          break;
        case Operand::Kind::number:
          add(i, inputs, "", operand.type, number_operand(operand));
          break;
        case Operand::Kind::immediate:
          names[i].push_back(fmt::format("{}", operand.number.value()));
          break;
        case Operand::Kind::address:
          add(i, inputs, "", operand.type,
              fmt::format("&parameters.{}_", program_.parameters[static_cast<std::size_t>(operand.parameter)].name));
          break;
        case Operand::Kind::output:
        case Operand::Kind::update:
          break;
      }
    }
    const bool is_pure = instruction.effect == program::Effect::pure;
    const bool is_memory = instruction.effect == program::Effect::memory;
    out_.line("asm{}(\"{}\" : {} : {}{});", is_pure ? "" : " volatile", with_operands(instruction.text, names, escaped),
              outputs, inputs, is_memory ? " : \"memory\"" : "");
  }

  /// Names a variable. The number that a loop leaves may be static instead.
  void define(const Number& variable, std::string name) {
    if (!variable.is_static()) names_[variable.node()] = std::move(name);
  }

  /// The number as a C expression, whose variables have the names that define() gave them.
  std::string text(const Number& number) const {
    return layout::c_text(number, [this](const Number& part) {
      const auto name = names_.find(part.node());
      return name == names_.end() ? std::string() : name->second;
    });
  }
  std::string number_operand(const Operand& operand) const {
    return fmt::format("static_cast<{}>({})", c_type(operand.type), text(operand.number));
  }

  void write(const program::Binding& binding) { define(binding.variable, registers(binding.value).front()); }
  void write(const program::Remark& remark) { out_.line("// {}", remark.text); }

  void write(const program::Loop& loop) {
    const std::string counter = layout::to_string(loop.counter);
    for (const program::Carried<Number>& number : loop.numbers) {
      if (!number.changes()) continue;
      const std::string name = layout::to_string(number.inside);
      out_.line("unsigned {} = {};", name, text(number.before));
    }
    for (const program::Carried<Value>& value : loop.values) {
      if (!value.changes()) continue;
      declare(value.inside);
      if (!is_undefined_.contains(value.before.id)) copy(value.inside, value.before);
    }
    out_.line("_Pragma(\"unroll 1\")");
    if (loop.condition) {
      out_.line("for (;;) {{");
    } else {
      const std::string first = text(loop.first), end = text(loop.end), step = text(loop.step);
      out_.line("for (unsigned {0} = {1}; {0} < ({2}); {0} += {3}) {{", counter, first, end, step);
    }
    out_.indent();
    if (!loop.condition) define(loop.counter, counter);
    for (const program::Carried<Number>& number : loop.numbers) {
      const std::string name = layout::to_string(number.inside);
      if (!number.changes()) out_.line("const unsigned {} = {};", name, text(number.before));
      define(number.inside, name);
    }
    for (const program::Carried<Value>& value : loop.values) {
      if (!value.changes()) storage(value.inside) = storage(value.before);
    }
    if (loop.condition) out_.line("if (({}) == 0) break;", text(*loop.condition));
    write(loop.body);
    std::vector<std::pair<std::string, std::string>> assignments;
    for (const program::Carried<Number>& number : loop.numbers) {
      if (!number.changes()) continue;
      const std::string name = layout::to_string(number.inside), next = name + "_next";
      out_.line("const unsigned {} = {};", next, text(number.after));
      assignments.emplace_back(name, next);
    }
    for (const auto& [name, next] : assignments) out_.line("{} = {};", name, next);
    advance(loop.values);
    out_.dedent();
    out_.line("}}");
    for (const program::Carried<Number>& number : loop.numbers) {
      if (number.changes()) define(number.outside, layout::to_string(number.inside));
    }
    for (const program::Carried<Value>& value : loop.values) {
      if (value.changes()) storage(value.outside) = storage(value.inside);
    }
  }

  /// Assigns the values of the next iteration. Those that are another cell's of this iteration are saved first.
  void advance(const std::vector<program::Carried<Value>>& values) {
    std::vector<std::pair<Value, Value>> copies;
    for (const program::Carried<Value>& value : values) {
      if (!value.changes() || storage(value.after) == storage(value.inside)) continue;
      copies.emplace_back(value.inside, value.after);
      const bool is_of_other_cell = std::any_of(
          values.begin(), values.end(),
          [&](const program::Carried<Value>& other) { return storage(other.inside) == storage(value.after); });
      if (!is_of_other_cell) continue;
      const std::string saved = fmt::format("v{}_next", value.inside.id);
      out_.line("{} {}[{}];", c_type(value.after.type), saved, value.after.count);
      const std::vector<std::string> registers = this->registers(value.after);
      for (std::size_t i = 0; i < registers.size(); ++i) out_.line("{}[{}] = {};", saved, i, registers[i]);
      saved_[value.inside.id] = saved;
    }
    for (const auto& [inside, after] : copies) {
      const auto saved = saved_.find(inside.id);
      if (saved == saved_.end()) {
        copy(inside, after);
        continue;
      }
      const std::vector<std::string> registers = this->registers(inside);
      for (std::size_t i = 0; i < registers.size(); ++i) out_.line("{} = {}[{}];", registers[i], saved->second, i);
    }
  }

  void write(const program::Branch& branch) {
    const std::string condition = text(branch.condition);
    for (const program::Chosen<Number>& number : branch.numbers)
      out_.line("unsigned {};", layout::to_string(number.outside));
    for (const program::Chosen<Value>& value : branch.values) declare(value.outside);
    out_.line("if (({}) != 0) {{", condition);
    write_arm(branch, true);
    if (!branch.otherwise.empty() || !branch.numbers.empty() || !branch.values.empty()) {
      out_.line("}} else {{");
      write_arm(branch, false);
    }
    out_.line("}}");
    for (const program::Chosen<Number>& number : branch.numbers)
      define(number.outside, layout::to_string(number.outside));
  }

  void write_arm(const program::Branch& branch, bool is_body) {
    out_.indent();
    write(is_body ? branch.body : branch.otherwise);
    for (const program::Chosen<Number>& number : branch.numbers) {
      out_.line("{} = {};", layout::to_string(number.outside), text(is_body ? number.body : number.otherwise));
    }
    for (const program::Chosen<Value>& value : branch.values)
      copy(value.outside, is_body ? value.body : value.otherwise);
    out_.dedent();
  }

  void write(const program::Block& block) {
    for (const program::Statement& statement : block) {
      out_.at(statement.line);
      if (const auto* instruction = std::get_if<program::Instruction>(&statement.node);
          instruction != nullptr && instruction->text.empty()) {
        is_undefined_.insert(instruction->operands.front().value.id);
      }
      std::visit([this](const auto& node) { write(node); }, statement.node);
    }
  }

  const program::Program& program_;
  Lines out_;
  std::unordered_map<const layout::NumberNode*, std::string> names_;  // of variables
  std::vector<std::string> storage_;                                  // the C variable of each definition
  std::unordered_set<std::int32_t> is_undefined_;
  std::unordered_map<std::int32_t, std::string> saved_;  // arrays of advance()
};

}  // namespace

std::string lower(const program::Program& program) { return Printer(program).print(); }

}  // namespace tilewright::lower::cuda
