#include "tilewright/program/kernel_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "tilewright/arch/limits.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/base/target_features.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/plan/launch.hpp"

namespace tilewright::program {
namespace {

constexpr std::int64_t kMaxExtent = std::numeric_limits<std::int32_t>::max();
/// The alignment of the dynamic shared memory, which swizzle patterns and descriptors need.
constexpr std::int64_t kSharedAlignment = 1024;
/// Shared addresses are below this number, so that matrix descriptors can hold them.
constexpr std::int64_t kSharedWindow = 1 << 18;

/// Whether `text` has the operand "$index", and not only "$indexN".
bool names_operand(std::string_view text, std::size_t index) {
  const std::string name = fmt::format("${}", index);
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if (end == text.size() || text[end] < '0' || text[end] > '9') return true;
  }
  return false;
}

/// Whether one of the variables is in the expression.
bool depends_on(const Number& number, const std::vector<Number>& variables) {
  if (number.is_static()) return false;
  if (std::ranges::find(variables, number) != variables.end()) return true;
  const layout::NumberNode& node = *number.node();
  if (node.op == layout::NumberOp::variable) return false;
  return depends_on(node.a, variables) || depends_on(node.b, variables) || depends_on(node.c, variables);
}

/// @throws InvalidArgument for a loop whose condition, once it holds, always holds
void check_may_end(const Loop& loop) {
  if (!loop.condition || loop.condition->is_static(0)) return;
  std::vector<Number> changing;
  for (const Carried<Number>& carried : loop.numbers) {
    if (carried.changes()) changing.push_back(carried.inside);
  }
  if (depends_on(*loop.condition, changing)) return;
  throw InvalidArgument(
      fmt::format("the loop does not end once its condition {} holds: the body sets no cell that the condition reads "
                  "anew, as by a lambda that calls get()",
                  to_string(*loop.condition)));
}

/// Words that cannot name a function of CUDA C++.
bool is_keyword(std::string_view word) {
  constexpr std::array kWords = std::to_array<std::string_view>(
      {"alignas",  "alignof", "and",      "asm",      "auto",     "bool",    "break",     "case",      "catch",
       "char",     "class",   "const",    "continue", "decltype", "default", "delete",    "do",        "double",
       "else",     "enum",    "explicit", "export",   "extern",   "false",   "float",     "for",       "friend",
       "goto",     "if",      "inline",   "int",      "long",     "main",    "mutable",   "namespace", "new",
       "noexcept", "not",     "nullptr",  "operator", "or",       "private", "protected", "public",    "register",
       "requires", "return",  "short",    "signed",   "sizeof",   "static",  "struct",    "switch",    "template",
       "this",     "throw",   "true",     "try",      "typedef",  "typeid",  "typename",  "union",     "unsigned",
       "using",    "virtual", "void",     "volatile", "while",    "xor"});
  return std::ranges::find(kWords, word) != kWords.end();
}

/// Reads digits from `at` on, and moves it behind them; -1: there are none.
int read_index(std::string_view text, std::size_t& at) {
  constexpr int kMost = 1 << 20;
  int index = -1;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
    index = std::min(10 * std::max(index, 0) + (text[at] - '0'), kMost);
  return index;
}

/// The number of registers that an operand stands for.
int registers_of(const Operand& operand) {
  if (operand.kind == Operand::Kind::output) return operand.value.count;
  if (operand.kind != Operand::Kind::input && operand.kind != Operand::Kind::update) return 1;
  int count = 0;
  for (const Value& value : operand.inputs) count += value.count;
  return count;
}

/// @throws InvalidArgument for a "$" without a number, and for operands and registers that the instruction does not
/// have
void check_names_of_operands(std::string_view text, const std::vector<Operand>& operands) {
  for (std::size_t at = text.find('$'); at != std::string_view::npos; at = text.find('$', at)) {
    ++at;
    const int index = read_index(text, at);
    if (index < 0)
      throw InvalidArgument(fmt::format("the instruction '{}' has a $ without the number of an operand", text));
    if (index >= static_cast<int>(operands.size())) {
      throw InvalidArgument(
          fmt::format("the instruction '{}' names ${}, but has {} operands", text, index, operands.size()));
    }
    if (at + 1 >= text.size() || text[at] != '.' || text[at + 1] < '0' || text[at + 1] > '9') continue;
    ++at;
    const int element = read_index(text, at), count = registers_of(operands[static_cast<std::size_t>(index)]);
    if (element < count) continue;
    throw InvalidArgument(fmt::format("the instruction '{}' names ${}.{}, but ${} has {} register{}", text, index,
                                      element, index, count, count == 1 ? "" : "s"));
  }
}

}  // namespace

Number NumberCell::get() const { return kernel_->number_cells_[kernel_->live(*this)].number; }

void NumberCell::set(const Number& number) const {
  const std::int64_t count = kernel_->number_cells_[kernel_->live(*this)].count;
  if (number.lower() < 0 || number.upper() >= count) {
    throw InvalidArgument(fmt::format("a cell for numbers below {} cannot have {}, which is from {} to {}{}", count,
                                      to_string(number), number.lower(), number.upper(),
                                      number.is_static() ? "" : "; set_within() takes what you know to be in range"));
  }
  set_within(number);
}

void NumberCell::set_within(const Number& number) const {
  kernel_->check_visible(number);
  kernel_->number_cells_[kernel_->live(*this)].number = number;
}

Value ValueCell::get() const { return kernel_->value_cells_[kernel_->live(*this)]; }

void ValueCell::set(const Value& value) const {
  Value& state = kernel_->value_cells_[kernel_->live(*this)];
  kernel_->check_visible(value);
  if (value.type != state.type || value.count != state.count) {
    throw InvalidArgument(fmt::format("a cell of {} {} registers cannot have {} {}", state.count, name(state.type),
                                      value.count, name(value.type)));
  }
  state = value;
}

KernelBuilder::KernelBuilder(std::string symbol, const Target& target, int threads, std::array<int, 3> cluster) {
  if (!is_identifier(symbol)) throw InvalidArgument(fmt::format("'{}' is no identifier", printable(symbol)));
  if (is_keyword(symbol)) throw InvalidArgument(fmt::format("a kernel cannot be named '{}', a word of C++", symbol));
  if (threads < 1 || threads > 1024) throw InvalidArgument(fmt::format("a CTA has 1 to 1024 threads, got {}", threads));
  const int ctas = cluster[0] * cluster[1] * cluster[2];
  if (std::min({cluster[0], cluster[1], cluster[2]}) < 1 || ctas > 16) {
    throw InvalidArgument(fmt::format("a cluster has 1 to 16 CTAs, got {}x{}x{}", cluster[0], cluster[1], cluster[2]));
  }
  if (ctas > 1) check_feature(target, TargetFeature::clusters).or_throw();
  program_.symbol = std::move(symbol);
  program_.target = target;
  program_.threads = threads;
  program_.cluster = cluster;
  program_.scope = std::make_shared<layout::NumberScope>();
  layout::NumberScope& scope = *program_.scope;
  SpecialVariables& variables = program_.variables;
  variables.thread = scope.kernel("thread", threads);
  variables.cluster_rank = ctas == 1 ? Number(0) : scope.kernel("cluster_rank", ctas);
  variables.shared = scope.kernel("shared", kSharedWindow, kSharedAlignment);
  open_.emplace_back();
  static std::atomic<std::uint32_t> kernels = 0;
  kernel_ = ++kernels;
}

/// Declared when it is used first, because its bounds are those of the grid if that has been set.
Number KernelBuilder::special(std::array<Number, 3>& variables, std::string_view name, int mode, const Number& count) {
  Number& variable = variables.at(static_cast<std::size_t>(mode));
  if (!variable.is_static()) return variable;
  // A launch with more CTAs is refused, see check_arguments().
  const bool is_bounded = has_grid_ && count.upper() <= kMaxExtent;
  variable = program_.scope->kernel(fmt::format("{}_{}", name, "xyz"[mode]), is_bounded ? count : Number(kMaxExtent));
  return variable;
}

Number KernelBuilder::block(int mode) { return special(program_.variables.block, "block", mode, grid_of(mode)); }

Number KernelBuilder::blocks(int mode) { return special(program_.variables.blocks, "blocks", mode, grid_of(mode) + 1); }

const Number& KernelBuilder::grid_of(int mode) const {
  if (mode < 0 || mode > 2) throw InvalidArgument(fmt::format("a grid has the modes 0 to 2, got {}", mode));
  return program_.grid.at(static_cast<std::size_t>(mode));
}

void KernelBuilder::declare_tensor(std::string_view name, std::vector<Number> extents, std::vector<Number> strides) {
  const auto parameter = std::ranges::find(program_.parameters, name, &Parameter::name);
  if (parameter == program_.parameters.end())
    throw InvalidArgument(fmt::format("the kernel has no parameter '{}'", printable(name)));
  for (const std::vector<Number>* numbers : {&extents, &strides}) {
    for (const Number& number : *numbers) {
      check_visible(number);
      if (number.kind() > layout::NumberKind::launch) return;  // known only to the kernel, and so not compared
    }
  }
  parameter->extents = std::move(extents);
  parameter->strides = std::move(strides);
}

const Parameter& KernelBuilder::parameter(int index) const {
  if (index < 0 || static_cast<std::size_t>(index) >= program_.parameters.size()) {
    throw InvalidArgument(
        fmt::format("the kernel has {} parameters, none with the index {}", program_.parameters.size(), index));
  }
  return program_.parameters[static_cast<std::size_t>(index)];
}

std::string KernelBuilder::take_name(std::string_view name) {
  if (!is_identifier(name)) throw InvalidArgument(fmt::format("'{}' is no identifier", printable(name)));
  for (const Parameter& parameter : program_.parameters) {
    if (parameter.name == name) throw InvalidArgument(fmt::format("the kernel has two parameters named '{}'", name));
  }
  return std::string(name);
}

Parameter& KernelBuilder::add_parameter(std::string_view name, Parameter::Kind kind, std::size_t bytes,
                                        std::size_t alignment) {
  const std::size_t offset = round_up(program_.parameter_bytes, alignment);
  program_.parameters.push_back({.name = take_name(name), .kind = kind, .offset = offset});
  program_.parameter_bytes = offset + bytes;
  return program_.parameters.back();
}

void KernelBuilder::wait_for_last_kernel() {
  check_feature(program_.target, TargetFeature::griddepcontrol).or_throw();
  instruction("griddepcontrol.wait;", {});
  program_.waits_for_last_kernel = true;
}

Number KernelBuilder::launch(std::string_view name, std::int64_t divisor, std::int64_t lower, std::int64_t upper) {
  if (lower < 0 || upper > kMaxExtent || lower > upper)
    throw InvalidArgument(
        fmt::format("the integer '{}' must be from 0 to {}, got bounds {} and {}", name, kMaxExtent, lower, upper));
  Parameter& parameter = add_parameter(name, Parameter::Kind::integer, 4, 4);
  parameter.variable = program_.scope->launch(parameter.name, divisor, lower, upper);
  return parameter.variable;
}

Number KernelBuilder::computed(std::string_view name, const Number& expression) {
  if (expression.is_static()) return expression;
  if (expression.kind() != layout::NumberKind::launch) {
    throw InvalidArgument(fmt::format("'{}' cannot be computed before the launch: {} has values of the kernel", name,
                                      to_string(expression)));
  }
  const Number variable =
      launch(name, std::max<std::int64_t>(expression.divisor(), 1), std::max<std::int64_t>(expression.lower(), 0),
             std::min(expression.upper(), kMaxExtent));
  program_.parameters.back().computed = expression;
  return variable;
}

Value KernelBuilder::address(std::string_view name, std::int64_t alignment, std::optional<DType> element) {
  const Value value = define(RegisterType::b64, 1);
  Parameter& parameter = add_parameter(name, Parameter::Kind::address, 8, 8);
  parameter.value = value;
  parameter.alignment = alignment;
  parameter.element = element;
  return value;
}

WorkspaceMemory KernelBuilder::workspace(const Number& bytes) {
  static_assert(WorkspaceMemory::kFlags * sizeof(std::uint32_t) == plan::kReductionCounterBytes,
                "flags are the counters of reductions, which all kernels leave at 0");
  constexpr std::int64_t kAlignment = 256;  // of the address of a workspace
  constexpr auto kData = round_up(static_cast<std::int64_t>(plan::kWorkspaceCounterBytes), kAlignment);
  if (!program_.workspace_bytes.is_static(0)) throw InvalidArgument("a kernel has one workspace");
  if (!bytes.is_static() && bytes.kind() != layout::NumberKind::launch) {
    throw InvalidArgument(
        fmt::format("the size of the workspace depends on values of the kernel: {}", to_string(bytes)));
  }
  const Value address = define(RegisterType::b64, 1);
  add_parameter("workspace", Parameter::Kind::workspace, 8, 8).value = address;
  program_.workspace_bytes = kData + bytes;
  return {.address = address, .flags = plan::kReductionCountersFrom, .data = kData};
}

Value KernelBuilder::scalar(std::string_view name) {
  const Value value = define(RegisterType::f32, 1);
  add_parameter(name, Parameter::Kind::scalar, 4, 4).value = value;
  return value;
}

int KernelBuilder::tensor_map(std::string_view name, const TensorMap& map, std::vector<Number> extents,
                              std::vector<Number> strides, std::optional<DType> element) {
  check_feature(program_.target, TargetFeature::tma).or_throw();
  const auto rank = static_cast<std::size_t>(map.rank);
  if (extents.size() != rank || strides.size() != rank) {
    throw InvalidArgument(fmt::format("a tensor map of {} modes needs as many extents and strides, got {} and {}", rank,
                                      extents.size(), strides.size()));
  }
  for (const Number& number : extents) check_visible(number);
  for (const Number& number : strides) check_visible(number);
  add_parameter(name, Parameter::Kind::tensor_map, sizeof(EncodedTensorMap), alignof(EncodedTensorMap)).element =
      element;
  const int index = static_cast<int>(program_.parameters.size()) - 1;
  program_.tensor_maps.push_back(
      {.parameter = index, .map = map, .extents = std::move(extents), .strides = std::move(strides)});
  return index;
}

void KernelBuilder::require(const Number& holds, std::string reason, const Number& number) {
  if (holds.is_static()) {
    if (holds.value() == 0) throw InvalidArgument(fmt::format("{}, got {}", reason, to_string(number)));
    return;
  }
  program_.conditions.push_back({holds, std::move(reason), number});
}

void KernelBuilder::set_grid(const Number& x, const Number& y, const Number& z) {
  if (has_grid_) throw InvalidArgument("the grid has been set");
  for (const Number* extent : {&x, &y, &z}) {
    check_visible(*extent);
    if (extent->kind() > layout::NumberKind::launch) {
      throw InvalidArgument(
          fmt::format("the grid must be known at launch: {} has values of the kernel", to_string(*extent)));
    }
  }
  program_.grid = {x, y, z};
  has_grid_ = true;
}

SharedMemory KernelBuilder::shared(std::int64_t bytes, std::int64_t alignment) {
  if (bytes < 0 || alignment < 1 || alignment > kSharedAlignment || (alignment & (alignment - 1)) != 0) {
    throw InvalidArgument(
        fmt::format("shared memory of {} bytes at multiples of {}: the alignment must be a power of "
                    "two of at most {}",
                    bytes, alignment, kSharedAlignment));
  }
  const std::int64_t at = round_up(program_.shared_bytes, alignment);
  const std::int64_t limit = arch::limits(program_.target).smem_per_block_bytes;
  if (at + bytes > limit) {
    throw InvalidArgument(
        fmt::format("the CTA needs {} bytes of shared memory, {} has {}", at + bytes, program_.target.name(), limit));
  }
  program_.shared_bytes = at + bytes;
  if (bytes > 0) shared_regions_.push_back({at, at + bytes});
  return {program_.variables.shared + at, bytes};
}

void KernelBuilder::check_shared(const Number& address, std::int64_t bytes, std::int64_t alignment) const {
  check_visible(address);
  SharedAccess access{.offset = address - program_.variables.shared,
                      .bytes = bytes,
                      .alignment = alignment,
                      .thread = program_.variables.thread,
                      .threads = program_.threads,
                      .conditions = {}};
  if (address.is_static()) return;  // of an address that the caller has
  for (const Open& open : open_) {
    if (open.kind != Open::Kind::body && open.kind != Open::Kind::otherwise) continue;
    access.conditions.push_back({open.branch.condition, open.kind == Open::Kind::otherwise});
  }
  std::optional<std::string> reason = out_of_shared_memory(shared_regions_, access);
  if (!reason) reason = misaligned_in_shared_memory(access);
  if (reason) throw InvalidArgument(*reason);
}

Value KernelBuilder::define(RegisterType type, int count) {
  if (count < 1 || count > 256) throw InvalidArgument(fmt::format("a value has 1 to 256 registers, got {}", count));
  const auto id = static_cast<std::int32_t>(program_.counts.size());
  program_.counts.push_back(count);
  program_.types.push_back(type);
  visible_.push_back(true);
  return {id, type, 0, count, kernel_};
}

Number KernelBuilder::variable(std::string_view name, const Number& count, std::int64_t divisor, std::int64_t lower) {
  const Number number = program_.scope->loop(fmt::format("{}_{}", name, variables_.size()), count, divisor, lower);
  variables_.push_back(number.node());
  visible_variables_.insert(number.node());
  return number;
}

void KernelBuilder::append(Statement statement) {
  if (is_built_) throw InvalidArgument("the kernel has been built");
  open_.back().block.push_back(std::move(statement));
}

namespace {

std::size_t find_live(const std::vector<std::int64_t>& serials, std::size_t index, std::int64_t serial) {
  if (index < serials.size() && serials[index] == serial) return index;
  throw InvalidArgument("the cell was made in a loop or branch that has ended");
}

}  // namespace

std::size_t KernelBuilder::live(const NumberCell& cell) const {
  return find_live(number_serials_, cell.index_, cell.serial_);
}
std::size_t KernelBuilder::live(const ValueCell& cell) const {
  return find_live(value_serials_, cell.index_, cell.serial_);
}

void KernelBuilder::check_visible(const Value& value) const {
  if (value.kernel != kernel_ || value.id < 0 || static_cast<std::size_t>(value.id) >= visible_.size())
    throw InvalidArgument("a value that this kernel has not defined");
  if (!visible_[static_cast<std::size_t>(value.id)])
    throw InvalidArgument(fmt::format(
        "v{} was replaced by a later value of its cell, or defined in a loop or branch that has ended; what "
        "such a body changes is kept in a cell",
        value.id));
}

void KernelBuilder::check_visible(const Number& number) const {
  if (number.is_static()) return;
  if (number.node()->scope != program_.scope.get())
    throw InvalidArgument(fmt::format("{} is a Number of another kernel", to_string(number)));
  if (number.kind() != layout::NumberKind::loop) return;
  const layout::NumberNode& node = *number.node();
  if (node.op == layout::NumberOp::variable) {
    if (!visible_variables_.contains(&node))
      throw InvalidArgument(fmt::format("{} exists only in a loop or branch that has ended", node.variable->name));
    return;
  }
  for (const Number* operand : {&node.a, &node.b, &node.c}) check_visible(*operand);
}

NumberCell KernelBuilder::cell(const Number& initial, std::int64_t count) {
  if (count < 1 || count > kMaxExtent + 1)
    throw InvalidArgument(fmt::format("a cell is for 1 to 2^31 numbers, from 0 on; got {}", count));
  number_cells_.push_back({0, count});
  number_serials_.push_back(next_serial_);
  NumberCell cell(*this, number_cells_.size() - 1, next_serial_++);
  cell.set(initial);
  return cell;
}

ValueCell KernelBuilder::cell(const Value& initial) {
  check_visible(initial);
  value_cells_.push_back(initial);
  value_serials_.push_back(next_serial_);
  return {*this, value_cells_.size() - 1, next_serial_++};
}

Value KernelBuilder::undefined(RegisterType type, int count) {
  return instruction("", {{.kind = Operand::Kind::output, .type = type, .value = {.type = type, .count = count}}},
                     Effect::pure)
      .front();
}

std::vector<Value> KernelBuilder::instruction(std::string text, std::vector<Operand> operands, Effect effect) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!text.empty() && operands[i].kind != Operand::Kind::update && !names_operand(text, i))
      throw InvalidArgument(fmt::format("the instruction '{}' does not use its operand ${}", text, i));
  }
  check_names_of_operands(text, operands);
  if (const std::size_t end = text.find_last_not_of(" \n"); end != std::string::npos) {
    if (text[end] != ';' && text[end] != '}')
      throw InvalidArgument(fmt::format("the instruction '{}' does not end with ; or }}", text));
  }
  const auto loop =
      std::find_if(open_.rbegin(), open_.rend(), [](const Open& o) { return o.kind == Open::Kind::loop; });
  std::vector<Value> defined;
  for (Operand& operand : operands) {
    for (const Value& value : operand.inputs) check_visible(value);
    if (operand.kind == Operand::Kind::number) check_visible(operand.number);
    if (operand.kind == Operand::Kind::address) (void)parameter(operand.parameter);  // throws if there is none
    if (operand.kind == Operand::Kind::update) {
      const Value& old = operand.inputs.front();
      if (operand.inputs.size() != 1 || old.count != program_.counts[static_cast<std::size_t>(old.id)])
        throw InvalidArgument(fmt::format("an instruction updates whole values, got {} of the {} registers of v{}",
                                          old.count, program_.counts[static_cast<std::size_t>(old.id)], old.id));
      if (loop != open_.rend() && old.id < loop->first_value)
        throw InvalidArgument(fmt::format(
            "v{} was defined before the loop in which an instruction updates it: make a cell of it", old.id));
    }
    if (operand.kind == Operand::Kind::output || operand.kind == Operand::Kind::update) {
      operand.value = define(operand.type, operand.value.count);
      defined.push_back(operand.value);
    }
  }
  // The old value's registers have the new value from here on.
  for (const Operand& operand : operands) {
    if (operand.kind == Operand::Kind::update) visible_[static_cast<std::size_t>(operand.inputs.front().id)] = false;
  }
  append({.node = Instruction{std::move(text), std::move(operands), effect}});
  return defined;
}

Number KernelBuilder::number(const Value& value, const Number& count, std::int64_t divisor) {
  check_visible(value);
  if (value.type != RegisterType::b32 || value.count != 1)
    throw InvalidArgument(fmt::format("a Number is one b32 register, got {} {}", value.count, name(value.type)));
  const Number number = variable("r", count, divisor);
  append({.node = Binding{number, value}});
  return number;
}

void KernelBuilder::remark(std::string text) { append({.node = Remark{std::move(text)}}); }

void KernelBuilder::begin(Open::Kind kind) {
  Open open;
  open.kind = kind;
  for (const NumberState& state : number_cells_) open.numbers_before.push_back(state.number);
  open.values_before = value_cells_;
  open.first_value = static_cast<std::int32_t>(visible_.size());
  open.first_variable = variables_.size();
  open_.push_back(std::move(open));
}

/// @throws InvalidArgument if an instruction has updated the value of a cell that is older than `open`
void KernelBuilder::check_cells_are_set(const Open& open) const {
  for (std::size_t i = 0; i < open.values_before.size(); ++i) {
    if (!visible_[static_cast<std::size_t>(value_cells_[i].id)]) {
      throw InvalidArgument(fmt::format(
          "an instruction updated v{}, the value of a cell, which must be set to the result before the {} ends",
          value_cells_[i].id, open.kind == Open::Kind::loop ? "loop" : "branch"));
    }
  }
}

void KernelBuilder::hide_definitions_of(const Open& open) {
  std::fill(visible_.begin() + open.first_value, visible_.end(), false);
  for (std::size_t i = open.first_variable; i < variables_.size(); ++i) visible_variables_.erase(variables_[i]);
  number_cells_.resize(open.numbers_before.size());
  value_cells_.resize(open.values_before.size());
  number_serials_.resize(open.numbers_before.size());
  value_serials_.resize(open.values_before.size());
}

Number KernelBuilder::loop_end(const Number& end) {
  if (end.upper() <= 0) return 0;  // the loop never runs
  if (end.upper() <= kMaxExtent) return end;
  if (end.kind() == layout::NumberKind::launch) return computed(fmt::format("end_{}", program_.parameters.size()), end);
  throw InvalidArgument(
      fmt::format("a loop ends at most at 2^31 - 1, got {}, which is from {} to {}; state what you know by assume()",
                  to_string(end), end.lower(), end.upper()));
}

Number KernelBuilder::begin_loop(const Number& first, const Number& end, const Number& step) {
  for (const Number* bound : {&first, &end, &step}) check_visible(*bound);
  if (first.lower() < 0 || step.lower() < 0 || step.is_static(0)) {
    throw InvalidArgument(
        fmt::format("a loop counts up from at least 0, got first {} and step {}", to_string(first), to_string(step)));
  }
  const Number last = loop_end(end);
  begin(Open::Kind::loop);
  Open& open = open_.back();
  // A counter that is past the end needs no more than 31 bits.
  open.loop.first = first.upper() <= kMaxExtent ? first : minimum(first, kMaxExtent);
  open.loop.end = last;
  open.loop.step = step.upper() <= kMaxExtent ? step : minimum(step, kMaxExtent);
  // The counter of a loop that never runs has no number; any range serves.
  const Number count = last.upper() < 1 ? Number(1) : last;
  open.loop.counter = variable("i", count, first.is_static(0) && step.is_static() ? step.value() : 1,
                               std::min(first.lower(), count.upper() - 1));
  begin_cells_of_loop();
  return open.loop.counter;
}

void KernelBuilder::begin_cells_of_loop() {
  Open& open = open_.back();
  for (NumberState& state : number_cells_) {
    state.number = variable("n", state.count);
    open.numbers_inside.push_back(state.number);
  }
  for (Value& value : value_cells_) {
    value = define(value.type, value.count);
    open.values_inside.push_back(value);
  }
}

void KernelBuilder::begin_while(const std::function<Number()>& condition) {
  begin(Open::Kind::loop);
  open_.back().loop.step = 1;
  begin_cells_of_loop();
  const std::size_t depth = open_.size();
  const Number holds = condition();
  if (open_.size() != depth || !open_.back().block.empty()) {
    throw InvalidArgument(
        "the condition of a loop appends no instructions: let the body set a cell to what they compute, and give the "
        "loop a condition of that cell");
  }
  check_visible(holds);
  open_.back().loop.condition = holds;
}

void KernelBuilder::end_loop() {
  if (open_.back().kind != Open::Kind::loop) throw InvalidArgument("end_loop() without a loop that is open");
  Open open = std::move(open_.back());
  open_.pop_back();
  std::vector<Number> numbers;
  for (const NumberState& state : number_cells_) numbers.push_back(state.number);
  const std::vector<Value> values = value_cells_;
  check_cells_are_set(open);
  hide_definitions_of(open);
  Loop& loop = open.loop;
  loop.body = std::move(open.block);
  const bool always_runs = holds(less(loop.first, loop.end));
  for (std::size_t i = 0; i < open.numbers_before.size(); ++i) {
    const bool keeps = numbers[i] == open.numbers_inside[i];
    // A number that each iteration sets to the same integer is that integer after a loop that runs at least once.
    const bool is_known = numbers[i].is_static() && (always_runs || numbers[i] == open.numbers_before[i]);
    const Number outside = keeps      ? open.numbers_before[i]
                           : is_known ? numbers[i]
                                      : variable("n", number_cells_[i].count);
    loop.numbers.push_back(
        {.before = open.numbers_before[i], .inside = open.numbers_inside[i], .after = numbers[i], .outside = outside});
    number_cells_[i].number = outside;
  }
  for (std::size_t i = 0; i < open.values_before.size(); ++i) {
    const Value& before = open.values_before[i];
    const bool changes = values[i] != open.values_inside[i];
    const Value outside = changes ? define(before.type, before.count) : before;
    loop.values.push_back({.before = before, .inside = open.values_inside[i], .after = values[i], .outside = outside});
    value_cells_[i] = outside;
  }
  check_may_end(loop);
  append({.node = std::move(loop)});
}

void KernelBuilder::begin_branch(const Number& condition) {
  check_visible(condition);
  begin(Open::Kind::body);
  open_.back().branch.condition = condition;
}

void KernelBuilder::end_arm(Open& open) {
  Arm& arm = open.kind == Open::Kind::body ? open.body : open.otherwise;
  arm.block = std::move(open.block);
  open.block.clear();
  check_cells_are_set(open);
  for (std::size_t i = 0; i < open.numbers_before.size(); ++i) {
    arm.numbers.push_back(number_cells_[i].number);
    number_cells_[i].number = open.numbers_before[i];
  }
  for (std::size_t i = 0; i < open.values_before.size(); ++i) {
    arm.values.push_back(value_cells_[i]);
    value_cells_[i] = open.values_before[i];
    arm.updates.push_back(!visible_[static_cast<std::size_t>(value_cells_[i].id)]);
  }
  for (const Value& before : open.values_before) {
    visible_[static_cast<std::size_t>(before.id)] = true;
  }
  hide_definitions_of(open);
}

void KernelBuilder::begin_otherwise() {
  if (open_.back().kind != Open::Kind::body) throw InvalidArgument("begin_otherwise() without a branch that is open");
  end_arm(open_.back());
  open_.back().kind = Open::Kind::otherwise;
}

void KernelBuilder::end_branch() {
  const bool has_one_arm = open_.back().kind == Open::Kind::body;
  if (has_one_arm) begin_otherwise();
  if (open_.back().kind != Open::Kind::otherwise) throw InvalidArgument("end_branch() without a branch that is open");
  end_arm(open_.back());
  Open open = std::move(open_.back());
  open_.pop_back();
  Branch& branch = open.branch;
  branch.body = std::move(open.body.block);
  branch.otherwise = std::move(open.otherwise.block);
  ended_ = {};
  if (has_one_arm) {
    ended_.first_outside = visible_.size();
    ended_.visible_before = visible_;
    ended_.numbers_before = open.numbers_before;
    ended_.values_before = open.values_before;
    ended_.numbers_body = open.body.numbers;
    ended_.values_body = open.body.values;
    ended_.updates_body = open.body.updates;
  }
  for (std::size_t i = 0; i < open.numbers_before.size(); ++i) {
    const Number &body = open.body.numbers[i], &otherwise = open.otherwise.numbers[i];
    if (body == otherwise) {
      number_cells_[i].number = body;
      continue;
    }
    const Number outside = variable("n", number_cells_[i].count);
    branch.numbers.push_back({.body = body, .otherwise = otherwise, .outside = outside});
    number_cells_[i].number = outside;
  }
  for (std::size_t i = 0; i < open.values_before.size(); ++i) {
    const Value &before = open.values_before[i], &body = open.body.values[i], &otherwise = open.otherwise.values[i];
    if (open.body.updates[i] || open.otherwise.updates[i]) visible_[static_cast<std::size_t>(before.id)] = false;
    if (body == otherwise) {
      value_cells_[i] = body;
      continue;
    }
    const Value outside = define(before.type, before.count);
    branch.values.push_back({.body = body, .otherwise = otherwise, .outside = outside});
    value_cells_[i] = outside;
  }
  append({.node = std::move(branch)});
  if (!has_one_arm) return;
  ended_.depth = open_.size();
  ended_.statements = open_.back().block.size();
  ended_.definitions = visible_.size();
  ended_.variables = variables_.size();
  for (const NumberState& state : number_cells_) ended_.numbers_after.push_back(state.number);
  ended_.values_after = value_cells_;
}

void KernelBuilder::reopen_otherwise() {
  std::vector<Number> numbers;
  for (const NumberState& state : number_cells_) numbers.push_back(state.number);
  const bool is_last = ended_.depth == open_.size() && ended_.statements == open_.back().block.size() &&
                       ended_.definitions == visible_.size() && ended_.variables == variables_.size() &&
                       ended_.numbers_after == numbers && ended_.values_after == value_cells_;
  if (!is_last) throw InvalidArgument("the other arm of a branch must directly follow the end of its first arm");
  Ended ended = std::move(ended_);
  ended_ = {};
  auto branch = std::get<Branch>(std::move(open_.back().block.back().node));
  open_.back().block.pop_back();
  // The branch's results, which nothing has used yet, are defined again when it ends.
  for (std::size_t i = 0; i < number_cells_.size(); ++i) number_cells_[i].number = ended.numbers_before[i];
  value_cells_ = std::move(ended.values_before);
  visible_ = std::move(ended.visible_before);
  program_.counts.resize(ended.first_outside);
  program_.types.resize(ended.first_outside);
  for (const Chosen<Number>& chosen : branch.numbers) visible_variables_.erase(chosen.outside.node());
  begin(Open::Kind::otherwise);
  Open& open = open_.back();
  open.branch.condition = branch.condition;
  open.body = {std::move(branch.body), std::move(ended.numbers_body), std::move(ended.values_body),
               std::move(ended.updates_body)};
}

void KernelBuilder::loop(const Number& first, const Number& end, const Number& step,
                         const std::function<void(const Number&)>& body) {
  body(begin_loop(first, end, step));
  end_loop();
}

void KernelBuilder::loop_while(const std::function<Number()>& condition, const std::function<void()>& body) {
  begin_while(condition);
  body();
  end_loop();
}

void KernelBuilder::branch(const Number& condition, const std::function<void()>& body,
                           const std::function<void()>& otherwise) {
  if (condition.is_static()) {
    if (condition.value() != 0) {
      body();
    } else if (otherwise) {
      otherwise();
    }
    return;
  }
  begin_branch(condition);
  body();
  if (otherwise) {
    begin_otherwise();
    otherwise();
  }
  end_branch();
}

Program KernelBuilder::build() {
  if (open_.size() != 1) throw InvalidArgument(fmt::format("{} loops or branches are still open", open_.size() - 1));
  if (is_built_) throw InvalidArgument("the kernel has been built");
  is_built_ = true;
  for (int mode = 0; mode < 3; ++mode) block(mode), blocks(mode);  // printers declare all of them
  Program program = program_;
  program.body = std::move(open_.back().block);
  open_.back().block.clear();
  number_lines(program);
  return program;
}

}  // namespace tilewright::program
