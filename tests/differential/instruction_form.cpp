// Expands the alternatives of the table, and parses its lines.
#include "instruction_form.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

#include "tilewright/base/text.hpp"

namespace tilewright::differential {

extern const std::string_view kInstructionFormsTable;

namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> all;
  for (std::string& word : split(std::string(text), ' ')) {
    if (!word.empty()) all.push_back(std::move(word));
  }
  return all;
}

/// A group of alternatives, {a,b} or {1:a,b}. Braces around registers are operands of the instruction.
struct Alternatives {
  std::size_t begin = 0, end = 0;
  char number = 0;  // of a group whose choice others share; 0: none
  std::vector<std::string> choices;
};

bool find_alternatives(const std::string& line, Alternatives& found) {
  for (std::size_t at = line.find('{'); at != std::string::npos; at = line.find('{', at + 1)) {
    const std::size_t close = line.find('}', at);
    if (close == std::string::npos) throw std::invalid_argument(fmt::format("unclosed brace: {}", line));
    std::string inside = line.substr(at + 1, close - at - 1);
    if (inside.find('%') != std::string::npos) continue;
    found = {at, close + 1, 0, {}};
    if (inside.size() > 1 && inside[1] == ':') {
      found.number = inside[0];
      inside.erase(0, 2);
    }
    found.choices = split(inside, ',');
    return true;
  }
  return false;
}

void expand(const std::string& line, std::map<char, std::size_t>& chosen, std::vector<std::string>& lines) {
  Alternatives group;
  if (!find_alternatives(line, group)) {
    lines.push_back(line);
    return;
  }
  const auto with = [&](std::size_t choice) {
    if (choice >= group.choices.size()) throw std::invalid_argument(fmt::format("too few alternatives: {}", line));
    return line.substr(0, group.begin) + group.choices[choice] + line.substr(group.end);
  };
  if (const auto shared = chosen.find(group.number); group.number != 0 && shared != chosen.end()) {
    return expand(with(shared->second), chosen, lines);
  }
  for (std::size_t choice = 0; choice < group.choices.size(); ++choice) {
    std::map<char, std::size_t> further = chosen;
    if (group.number != 0) further[group.number] = choice;
    expand(with(choice), further, lines);
  }
}

std::vector<OperandGroup> parse_groups(std::string_view text) {
  std::vector<OperandGroup> groups;
  for (const std::string& word : words(text)) {
    const std::size_t star = word.find('*');
    OperandGroup group{parse_operand_kind(word.substr(0, star)), 1, star != std::string::npos};
    if (group.is_vector) group.registers = std::stoi(word.substr(star + 1));
    groups.push_back(group);
  }
  return groups;
}

/// "3", "2^-22"
double parse_bound(const std::string& text) {
  const std::size_t caret = text.find('^');
  const double base = std::stod(text.substr(0, caret));
  return caret == std::string::npos ? base : std::pow(base, std::stod(text.substr(caret + 1)));
}

Tolerance parse_tolerance(std::string_view text) {
  Tolerance tolerance;
  for (const std::string& word : words(text)) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const double bound = parse_bound(word.substr(equals + 1));
    if (name == "ulp") {
      tolerance.ulp = bound;
    } else if (name == "abs") {
      tolerance.absolute = bound;
    } else if (name == "rel") {
      tolerance.relative = bound;
    } else if (name == "sum") {
      tolerance.of_sum = bound;
    } else {
      throw std::invalid_argument(fmt::format("unknown tolerance '{}'", word));
    }
  }
  return tolerance;
}

/// The opcode of the statement that is compared: the first that writes %d0 and is no load, else the first that is no
/// store.
std::string compared_opcode(const std::string& text) {
  std::string other;
  for (const std::string& statement : split(text, ';')) {
    const std::string_view body = trimmed(statement);
    const std::string opcode(body.substr(0, body.find(' ')));
    if (text.find('%') == std::string::npos) return opcode;
    if (body.find("%d0") != std::string_view::npos && !opcode.starts_with("ld.")) return opcode;
    if (other.empty() && !opcode.starts_with("st.")) other = opcode;
  }
  return other;
}

InstructionForm parse_form(const std::string& line) {
  const std::vector<std::string> fields = split(line, '|');
  // A '|' without spaces around it is that of a pair of destinations.
  std::vector<std::string> parts;
  for (const std::string& field : fields) {
    const bool continues = !parts.empty() && !parts.back().ends_with(' ') && !field.starts_with(' ');
    if (continues) {
      parts.back() += "|" + field;
    } else {
      parts.push_back(field);
    }
  }
  if (parts.size() != 3 && parts.size() != 4) {
    throw std::invalid_argument(fmt::format("{} fields instead of 3 or 4: {}", parts.size(), line));
  }
  InstructionForm form;
  form.destinations = parse_groups(parts[0]);
  form.sources = parse_groups(parts[1]);
  form.text = trimmed(parts[2]);
  form.opcode = compared_opcode(form.text);
  if (parts.size() == 4) form.tolerance_text = trimmed(parts[3]);
  form.tolerance = parse_tolerance(form.tolerance_text);
  return form;
}

std::vector<OperandKind> registers_of(const std::vector<OperandGroup>& groups) {
  std::vector<OperandKind> all;
  for (const OperandGroup& group : groups) all.insert(all.end(), static_cast<std::size_t>(group.registers), group.kind);
  return all;
}

}  // namespace

std::vector<OperandKind> InstructionForm::destination_registers() const { return registers_of(destinations); }
std::vector<OperandKind> InstructionForm::source_registers() const { return registers_of(sources); }

std::vector<InstructionForm> parse_forms(std::string_view table) {
  std::vector<InstructionForm> forms;
  for (const std::string& line : split(std::string(table), '\n')) {
    if (trimmed(line).empty() || line.starts_with('#')) continue;
    std::vector<std::string> lines;
    std::map<char, std::size_t> chosen;
    expand(line, chosen, lines);
    for (const std::string& each : lines) forms.push_back(parse_form(each));
  }
  return forms;
}

const std::vector<InstructionForm>& instruction_forms() {
  static const std::vector<InstructionForm> forms = parse_forms(kInstructionFormsTable);
  return forms;
}

}  // namespace tilewright::differential
