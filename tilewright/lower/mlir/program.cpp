#include "tilewright/lower/mlir/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tilewright/base/error.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/layout/number_text.hpp"
#include "tilewright/lower/ptx_text.hpp"

namespace tilewright::lower::mlir {
namespace {

using layout::Number;
using program::Operand;
using program::Parameter;
using program::RegisterType;
using program::Value;

std::string_view type_name(RegisterType type) {
  switch (type) {
    case RegisterType::b16:
      return "i16";
    case RegisterType::b32:
      return "i32";
    case RegisterType::b64:
      return "i64";
    case RegisterType::f32:
      return "f32";
    case RegisterType::f64:
      return "f64";
  }
  return "";
}

/// A character of PTX in the string of an inline_asm.
std::string escaped(char c) {
  if (c == '\n') return "\\0A";
  if (c == '"' || c == '\\') return {'\\', c};
  return std::string(1, c);
}

/// A list of SSA names with their types, as in "(%a, %b : i32, f32)".
class Arguments {
 public:
  void add(std::string_view name, std::string_view type) {
    const std::string_view separator = names_.empty() ? "" : ", ";
    names_ += fmt::format("{}{}", separator, name);
    types_ += fmt::format("{}{}", separator, type);
    declarations_ += fmt::format("{}{}: {}", separator, name, type);
  }
  /// The list of values that a branch passes.
  std::string passed() const { return names_.empty() ? "" : fmt::format("({} : {})", names_, types_); }
  /// The list of arguments that a block declares.
  std::string declared() const { return names_.empty() ? "" : fmt::format("({})", declarations_); }

 private:
  std::string names_, types_, declarations_;
};

class Printer {
 public:
  explicit Printer(const program::Program& program)
      : program_(program),
        numbers_([this](const Number& variable) { return variables_.at(variable.node()); },
                 [this](const std::string& operation) { line("{}", operation); }),
        registers_(program.counts.size()) {}

  std::string print() && {
    const auto& [x, y, z] = program_.cluster;
    text_ += "module {\n";
    if (program_.shared_bytes > 0) {
      text_ +=
          "llvm.mlir.global external @shared_memory() {addr_space = 3 : i32, alignment = 1024 : i64} : "
          "!llvm.array<0 x i8>\n";
    }
    std::string attributes = fmt::format("nvvm.kernel, nvvm.reqntid = array<i32: {}, 1, 1>, nvvm.minctasm = {} : i32",
                                         program_.threads, program_.min_ctas);
    if (x * y * z > 1) attributes += fmt::format(", nvvm.cluster_dim = array<i32: {}, {}, {}>", x, y, z);
    text_ += fmt::format(
        "llvm.func @{}(%parameters: !llvm.ptr {{llvm.byval = !llvm.array<{} x i8>, llvm.align = 64 : i64, "
        "nvvm.grid_constant}}) attributes {{{}}} {{\n",
        program_.symbol, parameter_bytes(), attributes);
    line_ = 1;
    write_variables();
    write(program_.body);
    line("llvm.return");
    text_ += "}\n}\n";
    std::string aliases;
    for (std::size_t i = 0; i < aliases_.size(); ++i) aliases += fmt::format("!results{} = {}\n", i, aliases_[i]);
    return aliases + text_;
  }

 private:
  /// The size of the struct in C++.
  std::size_t parameter_bytes() const {
    const std::size_t alignment = program_.tensor_maps.empty() ? 8 : alignof(EncodedTensorMap);
    return std::max<std::size_t>(round_up(program_.parameter_bytes, alignment), 1);
  }

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += fmt::format(" loc(\"{}.tw\":{}:1)\n", program_.symbol, line_);
  }
  void block(std::string_view name, const Arguments& arguments = {}) {
    text_ += fmt::format("^{}{}:\n", name, arguments.declared());
  }
  /// A short name for a type, which is defined before the module. It makes the text several times shorter.
  std::string alias(const std::string& type) {
    const auto found = std::find(aliases_.begin(), aliases_.end(), type);
    const auto index = found - aliases_.begin();
    if (found == aliases_.end()) aliases_.push_back(type);
    return fmt::format("!results{}", index);
  }
  std::string temporary() { return fmt::format("%t{}", next_++); }

  /// Names a variable. The number that a loop leaves may be static instead.
  void define(const Number& variable, std::string name) {
    if (!variable.is_static()) variables_[variable.node()] = std::move(name);
  }

  void write_variables() {
    const program::SpecialVariables& variables = program_.variables;
    const auto special = [&](const Number& variable, std::string_view name, std::string_view ptx) {
      line("%{} = nvvm.read.ptx.sreg.{} : i32", name, ptx);
      define(variable, fmt::format("%{}", name));
    };
    special(variables.thread, "thread", "tid.x");
    for (std::size_t mode = 0; mode < 3; ++mode) {
      const char axis = "xyz"[mode];
      special(variables.block[mode], fmt::format("block_{}", axis), fmt::format("ctaid.{}", axis));
      special(variables.blocks[mode], fmt::format("blocks_{}", axis), fmt::format("nctaid.{}", axis));
    }
    const auto& [x, y, z] = program_.cluster;
    if (x * y * z > 1) special(variables.cluster_rank, "cluster_rank", "cluster.ctarank");
    if (program_.shared_bytes > 0) {
      line("%shared_memory = llvm.mlir.addressof @shared_memory : !llvm.ptr<3>");
      line("%shared = llvm.ptrtoint %shared_memory : !llvm.ptr<3> to i32");
      define(variables.shared, "%shared");
    }
    for (std::size_t i = 0; i < program_.parameters.size(); ++i) {
      const Parameter& parameter = program_.parameters[i];
      const std::string address = fmt::format("%parameter_{}", i), name = fmt::format("%p{}", i);
      line("{} = llvm.getelementptr %parameters[{}] : (!llvm.ptr) -> !llvm.ptr, i8", address, parameter.offset);
      switch (parameter.kind) {
        case Parameter::Kind::integer:
          line("{} = llvm.load {} : !llvm.ptr -> i32", name, address);
          define(parameter.variable, name);
          break;
        case Parameter::Kind::address:
        case Parameter::Kind::scalar:
        case Parameter::Kind::workspace:
          line("{} = llvm.load {} : !llvm.ptr -> {}", name, address, type_name(parameter.value.type));
          registers_[static_cast<std::size_t>(parameter.value.id)] = {name};
          break;
        case Parameter::Kind::tensor_map:
          line("{} = llvm.ptrtoint {} : !llvm.ptr to i64", name, address);
          break;
      }
    }
  }

  std::vector<std::string>& whole(const Value& value) { return registers_[static_cast<std::size_t>(value.id)]; }
  /// The SSA names of the value's registers.
  std::vector<std::string> names(const Value& value) {
    const std::vector<std::string>& all = whole(value);
    TILEWRIGHT_CHECK(!all.empty(), "v{} is used before it is defined", value.id);
    return {all.begin() + value.first, all.begin() + value.first + value.count};
  }

  /// Declares the names of the registers of a value that a block takes as arguments.
  void declare(const Value& value, Arguments& arguments) {
    std::vector<std::string>& all = whole(value);
    all.clear();
    for (int i = 0; i < value.count; ++i) {
      all.push_back(fmt::format("%v{}_{}", value.id, i));
      arguments.add(all.back(), type_name(value.type));
    }
  }
  void pass(const Value& value, Arguments& arguments) {
    for (const std::string& name : names(value)) arguments.add(name, type_name(value.type));
  }

  void write(const program::Instruction& instruction) {
    if (instruction.text.empty()) {
      const Value& value = instruction.operands.front().value;
      const std::string name = fmt::format("%v{}", value.id);
      line("{} = llvm.mlir.undef : {}", name, type_name(value.type));
      whole(value).assign(static_cast<std::size_t>(value.count), name);
      return;
    }
    std::vector<std::vector<std::string>> texts(instruction.operands.size());  // "$3" of each register
    std::string constraints, inputs, input_types;
    std::vector<std::pair<Value, int>> outputs;  // each value and its first register
    std::vector<std::string_view> output_types;
    int next = 0;
    const auto constrain = [&](const std::string& text) { constraints += (constraints.empty() ? "" : ",") + text; };
    const std::string_view output_prefix = is_sequence(instruction.text) ? "=&" : "=";
    for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
      const Operand& operand = instruction.operands[i];
      const bool is_update = operand.kind == Operand::Kind::update;
      if (operand.kind != Operand::Kind::output && !is_update) continue;
      outputs.emplace_back(operand.value, next);
      for (int j = 0; j < operand.value.count; ++j) {
        constrain(fmt::format("{}{}", output_prefix, constraint(operand.type)));
        output_types.push_back(type_name(operand.type));
        texts[i].push_back(fmt::format("${}", next++));
      }
    }
    const auto add_input = [&](const std::string& name, RegisterType type, const std::string& how) {
      constrain(how);
      inputs += (inputs.empty() ? "" : ", ") + name;
      input_types += fmt::format("{}{}", input_types.empty() ? "" : ", ", type_name(type));
    };
    for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
      const Operand& operand = instruction.operands[i];
      const auto add = [&](const std::string& name) {
        add_input(name, operand.type, std::string(1, constraint(operand.type)));
        texts[i].push_back(fmt::format("${}", next++));
      };
      switch (operand.kind) {
        case Operand::Kind::input:
          for (const Value& value : operand.inputs) {
            for (const std::string& name : names(value)) add(name);
          }
          break;
        case Operand::Kind::number:
          add(number(operand));
          break;
        case Operand::Kind::immediate:
          texts[i].push_back(fmt::format("{}", operand.number.value()));
          break;
        case Operand::Kind::address:
          add(fmt::format("%p{}", operand.parameter));
          break;
        case Operand::Kind::output:
        case Operand::Kind::update:
          break;
      }
    }
    // Inputs that are tied to outputs come last; they have no number of their own in the text.
    for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
      const Operand& operand = instruction.operands[i];
      if (operand.kind != Operand::Kind::update) continue;
      const std::vector<std::string> old = names(operand.inputs.front());
      for (std::size_t j = 0; j < old.size(); ++j) add_input(old[j], operand.type, texts[i][j].substr(1));
    }
    if (instruction.effect == program::Effect::memory) constrain("~{memory}");
    const std::string assembly =
        fmt::format("llvm.inline_asm {}asm_dialect = att \"{}\", \"{}\" {} : ({}) -> ",
                    instruction.effect == program::Effect::pure ? "" : "has_side_effects ",
                    with_operands(instruction.text, texts, escaped), constraints, inputs, input_types);
    if (outputs.empty()) {
      line("{}()", assembly);
      return;
    }
    if (output_types.size() == 1) {
      const std::string name = fmt::format("%v{}", outputs.front().first.id);
      line("{} = {}{}", name, assembly, output_types.front());
      whole(outputs.front().first) = {name};
      return;
    }
    std::string type;
    for (const std::string_view each : output_types) type += fmt::format("{}{}", type.empty() ? "" : ", ", each);
    type = alias(fmt::format("!llvm.struct<({})>", type));
    const std::string result = temporary();
    line("{} = {}{}", result, assembly, type);
    for (const auto& [value, first] : outputs) {
      std::vector<std::string>& all = whole(value);
      for (int i = 0; i < value.count; ++i) {
        all.push_back(fmt::format("%v{}_{}", value.id, i));
        line("{} = llvm.extractvalue {}[{}] : {}", all.back(), result, first + i, type);
      }
    }
  }

  std::string number(const Operand& operand) { return low_bits(operand.number, program::bits(operand.type)); }

  /// The low bits of a number: those of a register, or all that matter of a number that an author knows to be smaller
  /// than its bounds say.
  std::string low_bits(const Number& number, int width) {
    const int own = layout::width_of(number);
    if (own <= width) return numbers_.value(number, width);
    const std::string wide = numbers_.value(number, own), name = temporary();
    line("{} = llvm.trunc {} : i{} to i{}", name, wide, own, width);
    return name;
  }

  void write(const program::Binding& binding) { define(binding.variable, names(binding.value).front()); }
  void write(const program::Remark&) {}

  void write(const program::Loop& loop) {
    const int label = next_++;
    const std::string counter = fmt::format("%counter{}", label);
    Arguments first, head;
    // An end that may be negative has 64 bits and is compared with its sign.
    const int end_bits = layout::width_of(loop.end);
    std::string end, step;
    if (!loop.condition) {
      first.add(numbers_.value(loop.first, 32), "i32");
      head.add(counter, "i32");
      end = numbers_.value(loop.end, end_bits), step = numbers_.value(loop.step, 32);
    }
    for (const program::Carried<Number>& carried : loop.numbers) {
      const std::string before = low_bits(carried.before, 32);
      if (!carried.changes()) {
        define(carried.inside, before);
        continue;
      }
      const std::string name = temporary();
      first.add(before, "i32");
      head.add(name, "i32");
      define(carried.inside, name);
      define(carried.outside, name);
    }
    for (const program::Carried<Value>& carried : loop.values) {
      if (!carried.changes()) {
        whole(carried.inside) = names(carried.before);
        continue;
      }
      pass(carried.before, first);
      declare(carried.inside, head);
      whole(carried.outside) = whole(carried.inside);
    }
    if (!loop.condition) define(loop.counter, counter);
    line("llvm.br ^head{}{}", label, first.passed());
    block(fmt::format("head{}", label), head);
    if (loop.condition) {
      line("llvm.cond_br {0}, ^body{1}, ^exit{1}", numbers_.condition(*loop.condition), label);
    } else if (end_bits == 32) {
      line("%continues{} = llvm.icmp \"ult\" {}, {} : i32", label, counter, end);
    } else {
      line("%wide{} = llvm.zext {} : i32 to i64", label, counter);
      line("%continues{0} = llvm.icmp \"slt\" %wide{0}, {1} : i64", label, end);
    }
    if (!loop.condition) line("llvm.cond_br %continues{0}, ^body{0}, ^exit{0}", label);
    block(fmt::format("body{}", label));
    numbers_.enter_region();
    const int at = line_;
    write(loop.body);
    line_ = at;
    Arguments next;
    if (!loop.condition) {
      const std::string increased = temporary();
      line("{} = llvm.add {}, {} : i32", increased, counter, step);
      next.add(increased, "i32");
    }
    for (const program::Carried<Number>& carried : loop.numbers) {
      if (carried.changes()) next.add(low_bits(carried.after, 32), "i32");
    }
    for (const program::Carried<Value>& carried : loop.values) {
      if (carried.changes()) pass(carried.after, next);
    }
    numbers_.leave_region();
    line("llvm.br ^head{}{}", label, next.passed());
    block(fmt::format("exit{}", label));
  }

  void write(const program::Branch& branch) {
    const int label = next_++;
    const int at = line_;
    line("llvm.cond_br {0}, ^then{1}, ^else{1}", numbers_.condition(branch.condition), label);
    for (const bool is_body : {true, false}) {
      block(fmt::format("{}{}", is_body ? "then" : "else", label));
      numbers_.enter_region();
      write(is_body ? branch.body : branch.otherwise);
      line_ = at;
      Arguments results;
      for (const program::Chosen<Number>& chosen : branch.numbers)
        results.add(low_bits(is_body ? chosen.body : chosen.otherwise, 32), "i32");
      for (const program::Chosen<Value>& chosen : branch.values)
        pass(is_body ? chosen.body : chosen.otherwise, results);
      numbers_.leave_region();
      line("llvm.br ^end{}{}", label, results.passed());
    }
    Arguments results;
    for (const program::Chosen<Number>& chosen : branch.numbers) {
      const std::string name = temporary();
      results.add(name, "i32");
      define(chosen.outside, name);
    }
    for (const program::Chosen<Value>& chosen : branch.values) declare(chosen.outside, results);
    block(fmt::format("end{}", label), results);
  }

  void write(const program::Block& statements) {
    for (const program::Statement& statement : statements) {
      line_ = statement.line;
      std::visit([this](const auto& node) { write(node); }, statement.node);
    }
  }

  const program::Program& program_;
  std::string text_;
  std::vector<std::string> aliases_;
  int line_ = 1;
  int next_ = 0;
  std::unordered_map<const layout::NumberNode*, std::string> variables_;
  layout::ArithPrinter numbers_;
  std::vector<std::vector<std::string>> registers_;  // the SSA names of each definition's registers
};

}  // namespace

std::string lower(const program::Program& program) { return Printer(program).print(); }

}  // namespace tilewright::lower::mlir
