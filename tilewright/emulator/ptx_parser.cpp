// A recursive-descent parser: one function per production of the grammar.
#include "tilewright/emulator/ptx_parser.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdio>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "tilewright/base/interruption.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/emulator/ptx_lexer.hpp"

namespace tilewright::emulator {
namespace {

// Limits that keep hostile or damaged PTX from exhausting memory; far above what compilers emit.
constexpr std::uint64_t kMaxRegisters = 1U << 20;
constexpr std::uint64_t kMaxVariableBytes = 1U << 30;
constexpr int kMaxNesting = 64;

/// Splits the name of a register declared as "%f<20>": "%f12" -> ("%f", 12). A number with a leading zero does not
/// count.
std::optional<std::pair<std::string_view, std::uint64_t>> split_family(std::string_view name) {
  std::size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  if (digits == 0 || digits == name.size()) return std::nullopt;
  if (name[digits] == '0' && digits + 1 != name.size()) return std::nullopt;
  std::uint64_t number = 0;
  const auto result = std::from_chars(name.data() + digits, name.data() + name.size(), number);
  if (result.ec != std::errc()) return std::nullopt;
  return std::pair{name.substr(0, digits), number};
}

struct RegisterFamily {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

struct Scope {
  std::uint32_t parent = kNone;
  std::unordered_map<std::string_view, std::uint32_t> registers;
  std::unordered_map<std::string_view, RegisterFamily> families;
  std::unordered_map<std::string_view, std::uint32_t> variables;
  std::unordered_map<std::string_view, std::uint32_t> labels;
};

struct Linkage {
  bool linkable = false;  // another translation unit may name it
  bool external = false;  // declared, and defined elsewhere
  bool merged = false;    // all definitions are the same one
};

class Parser {
 public:
  explicit Parser(Module& module) : module_(module), lexer_(module.text) {
    advance();
    advance();
  }

  void parse() {
    while (token_.kind != Token::Kind::end) top_level();
    resolve_symbols();
  }

 private:
  // Tokens ------------------------------------------------------------------------------------------------------

  void advance() {
    check_();
    last_end_ = token_.begin + token_.text.size() + (token_.kind == Token::Kind::text ? 2 : 0);
    token_ = following_;
    following_ = lexer_.next();
  }

  [[noreturn]] void fail(std::string reason) const { refuse_ptx(token_.line, std::move(reason)); }

  [[noreturn]] void unexpected(std::string_view wanted) const {
    fail(fmt::format("expected {}, got \"{}\"", wanted,
                     token_.kind == Token::Kind::end ? "end of text" : printable(token_.text, 60)));
  }

  void expect(char c) {
    if (!token_.is(c)) unexpected(fmt::format("'{}'", c));
    advance();
  }

  bool accept(char c) {
    if (!token_.is(c)) return false;
    advance();
    return true;
  }

  bool accept(std::string_view word) {
    if (!token_.is(word)) return false;
    advance();
    return true;
  }

  std::string_view word(std::string_view what) {
    if (token_.kind != Token::Kind::word) unexpected(what);
    const std::string_view text = token_.text;
    advance();
    return text;
  }

  std::uint64_t integer() {
    if (token_.kind != Token::Kind::integer) unexpected("an integer");
    const std::uint64_t value = token_.bits;
    advance();
    return value;
  }

  int file_number() { return first_file_ + small_integer(); }

  int small_integer() { return static_cast<int>(std::min<std::uint64_t>(integer(), 1U << 30)); }

  void skip_statement() {
    while (!token_.is(';') && token_.kind != Token::Kind::end) advance();
    accept(';');
  }

  // Top level ---------------------------------------------------------------------------------------------------

  void top_level() {
    if (accept(".version")) {
      parse_version();
    } else if (accept(".target")) {
      module_.target = std::string(word("a target"));
      while (accept(',')) module_.is_debug |= word("a target option") == "debug";
    } else if (accept(".address_size")) {
      if (integer() != 64) fail("only 64-bit addresses are supported");
    } else if (accept(".file")) {
      parse_file();
    } else if (accept(".section")) {
      skip_section();
    } else if (token_.is(".loc")) {
      parse_location();
    } else if (accept(".pragma") || accept(".alias")) {
      skip_statement();
    } else {
      parse_linkable();
    }
  }

  void parse_version() {
    if (module_.version_major != 0) begin_unit();
    // The lexer reads 9.0 as a real number, but 9.10 is not 9.1: parse its text.
    const std::string version(token_.text);
    advance();
    if (std::sscanf(version.c_str(), "%d.%d", &module_.version_major, &module_.version_minor) != 2) {
      fail(fmt::format("malformed version \"{}\"", printable(version, 20)));
    }
  }

  /// Begins the text of another translation unit, whose names are its own unless they are linkable.
  void begin_unit() {
    resolve_symbols();
    std::erase_if(module_names_, [&](const auto& each) { return !linkable_variables_.contains(each.second); });
    std::erase_if(functions_, [&](const auto& each) { return !linkable_functions_.contains(each.second); });
    first_file_ = static_cast<int>(module_.files.size());
    latest_location_.clear();
    location_ = kNone;
  }

  void parse_file() {
    const auto number = static_cast<std::size_t>(first_file_) + static_cast<std::size_t>(integer());
    if (number > 1U << 16) fail("a .file number above 65536");
    if (token_.kind != Token::Kind::text) unexpected("a file name");
    if (module_.files.size() <= number) module_.files.resize(number + 1);
    module_.files[number] = std::string(token_.text);
    advance();
    while (accept(',')) integer();
  }

  void skip_section() {
    word("a section name");
    expect('{');
    for (int depth = 1; depth > 0; advance()) {
      if (token_.kind == Token::Kind::end) unexpected("'}'");
      depth += token_.is('{') ? 1 : token_.is('}') ? -1 : 0;
    }
  }

  void parse_linkable() {
    linkage_ = Linkage();
    while (token_.is(".visible") || token_.is(".extern") || token_.is(".weak") || token_.is(".common")) {
      linkage_.linkable = true;
      linkage_.external |= token_.is(".extern");
      linkage_.merged |= token_.is(".weak") || token_.is(".common");
      advance();
    }
    if (accept(".entry")) {
      parse_function(true);
    } else if (accept(".func")) {
      parse_function(false);
    } else if (const auto space = variable_space()) {
      parse_module_variables(*space);
    } else {
      unexpected("a module-level directive");
    }
  }

  // Variables ---------------------------------------------------------------------------------------------------

  std::optional<Space> variable_space() {
    static constexpr std::pair<std::string_view, Space> kSpaces[] = {{".global", Space::global},
                                                                     {".const", Space::constant},
                                                                     {".shared", Space::shared},
                                                                     {".local", Space::local},
                                                                     {".param", Space::param}};
    for (const auto& [text, space] : kSpaces) {
      if (accept(text)) return space;
    }
    return std::nullopt;
  }

  /// Parses what follows the state space: alignment, type, name and dimensions.
  Variable parse_variable(Space space) {
    Variable variable;
    variable.space = space;
    variable.line = token_.line;
    std::optional<PtxType> type;
    std::uint64_t vector = 1;
    std::uint64_t alignment = 0;
    while (token_.kind == Token::Kind::word && token_.text[0] == '.') {
      const std::string_view attribute = token_.text.substr(1);
      advance();
      if (attribute == "align") {
        // Behind .ptr, it is the alignment of the memory that the parameter points to.
        const std::uint64_t bytes = integer();
        if (!variable.pointer) alignment = bytes;
      } else if (attribute == "v2" || attribute == "v4") {
        vector = static_cast<std::uint64_t>(attribute[1] - '0');
      } else if (attribute == "attribute") {
        skip_parentheses();
      } else if (const auto parsed = parse_ptx_type(attribute)) {
        type = parsed;
      } else if (attribute == "ptr") {
        variable.pointer = true;
      } else if (attribute != "global" && attribute != "shared" && attribute != "const" && attribute != "local") {
        fail(fmt::format("unknown attribute .{} of a variable", printable(attribute, 40)));
      }
    }
    if (!type) unexpected("a type");
    variable.type = *type;
    variable.name = word("a variable's name");
    const auto element = static_cast<std::uint64_t>(bytes(*type)) * vector;
    variable.alignment = alignment != 0 ? alignment : element;
    if (!std::has_single_bit(variable.alignment) || variable.alignment > 4096) {
      fail(fmt::format("an alignment of {}, which must be a power of two up to 4096", variable.alignment));
    }
    variable.size = element;
    while (accept('[')) {
      const std::uint64_t extent = token_.is(']') ? 0 : integer();
      if (extent > kMaxVariableBytes)
        fail(fmt::format("array {} is too large: the limit is {} bytes", printable(variable.name, 80),
                         kMaxVariableBytes));
      variable.size *= extent;
      if (variable.size > kMaxVariableBytes)
        fail(fmt::format("array {} is too large: the limit is {} bytes", printable(variable.name, 80),
                         kMaxVariableBytes));
      expect(']');
    }
    return variable;
  }

  void skip_parentheses() {
    expect('(');
    while (!token_.is(')')) {
      if (token_.kind == Token::Kind::end) unexpected("')'");
      advance();
    }
    advance();
  }

  void parse_module_variables(Space space) {
    const auto first = static_cast<std::uint32_t>(module_.variables.size());
    std::unordered_map<std::string_view, std::uint32_t> names;
    parse_variables(space, module_.variables, names);
    for (std::uint32_t index = first; index < module_.variables.size(); ++index)
      module_.variables[index].external = linkage_.external;
    for (const auto& [name, index] : names) add_module_name(name, index);
  }

  /// A definition takes the place of a declaration, which instructions may refer to by its index.
  void add_module_name(std::string_view name, std::uint32_t index) {
    const auto [entry, is_new] = module_names_.try_emplace(name, index);
    if (linkage_.linkable) linkable_variables_.insert(entry->second);
    if (is_new) return;
    Variable& existing = module_.variables[entry->second];
    Variable& added = module_.variables[index];
    if (!linkage_.linkable || !linkable_variables_.contains(entry->second) || index + 1 != module_.variables.size()) {
      entry->second = index;
      return;
    }
    if (!existing.external && !added.external && !linkage_.merged)
      fail(fmt::format("variable {} is defined twice", printable(name, 80)));
    const std::uint64_t alignment = std::max(existing.alignment, added.alignment);
    if (existing.external && (!added.external || added.size > existing.size)) existing = std::move(added);
    existing.alignment = alignment;
    module_.variables.pop_back();
  }

  void parse_variables(Space space, std::vector<Variable>& into,
                       std::unordered_map<std::string_view, std::uint32_t>& names) {
    Variable variable = parse_variable(space);
    if (accept('<')) {  // .param .b32 p<3>: a family of variables
      const std::uint64_t count = integer();
      expect('>');
      if (count > 1024) fail("more than 1024 variables in one family");
      for (std::uint64_t i = 0; i < count; ++i) {
        Variable member = variable;
        member.name = keep(fmt::format("{}{}", variable.name, i));
        names[member.name] = static_cast<std::uint32_t>(into.size());
        into.push_back(std::move(member));
      }
      expect(';');
      return;
    }
    if (accept('=')) {
      const bool unsized = variable.size == 0;
      parse_initialiser(variable);
      const auto element = static_cast<std::uint64_t>(bytes(variable.type));
      if (unsized) variable.size = element * variable.initialisers.size();
      if (variable.initialisers.size() * element > variable.size) {
        fail(fmt::format("an initialiser of {} bytes for a variable of {}", variable.initialisers.size() * element,
                         variable.size));
      };
    }
    names[variable.name] = static_cast<std::uint32_t>(into.size());
    into.push_back(std::move(variable));
    if (token_.is(',')) fail("one declaration of several variables is not supported");
    expect(';');
  }

  /// Nested braces only group elements: initialisers are stored flat.
  void parse_initialiser(Variable& variable) {
    if (!accept('{')) {
      variable.initialisers.push_back(parse_initialiser_element(variable.type));
      return;
    }
    if (++nesting_ > kMaxNesting) fail("an initialiser is nested too deeply");
    while (!accept('}')) {
      parse_initialiser(variable);
      if (!token_.is('}')) expect(',');
    }
    --nesting_;
  }

  Initialiser parse_initialiser_element(PtxType type) {
    if (token_.kind == Token::Kind::word) {
      if (token_.is("generic")) {
        advance();
        expect('(');
        if (++nesting_ > kMaxNesting) fail("an initialiser is nested too deeply");
        Initialiser element = parse_initialiser_element(type);
        --nesting_;
        expect(')');
        if (accept('+')) element.bits += integer();
        return element;
      }
      Initialiser element;
      element.variable = static_cast<std::uint32_t>(pending_symbols_.size());
      element.pending = true;
      pending_symbols_.push_back(token_);
      advance();
      if (accept('+')) element.bits = integer();
      if (bytes(type) != 8) fail("the address of a variable needs a 64-bit element");
      return element;
    }
    const Operand number = parse_number();
    Initialiser element;
    if (number.kind == Operand::Kind::integer) {
      element.bits = number.bits;
    } else if (type == PtxType::f64 || type == PtxType::b64) {
      element.bits = number.kind == Operand::Kind::real
                         ? number.bits
                         : std::bit_cast<std::uint64_t>(
                               static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(number.bits))));
    } else {
      element.bits = number.kind == Operand::Kind::real_f32
                         ? number.bits
                         : std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(number.bits)));
    }
    return element;
  }

  /// Called at the end of a translation unit, as initialisers and instructions may name what is declared later.
  void resolve_symbols() {
    resolve_initialisers();
    for (const auto& [operand, takes_address] : function_operands_) {
      const auto found = functions_.find(operand->name);
      if (found == functions_.end()) continue;
      operand->index = static_cast<std::uint32_t>(found->second);
      if (takes_address) module_.functions[found->second].address_taken = true;
    }
    function_operands_.clear();
  }

  void resolve_initialisers() {
    for (Variable& variable : module_.variables) {
      for (Initialiser& element : variable.initialisers) {
        if (!element.pending) continue;
        element.pending = false;
        const Token& symbol = pending_symbols_[element.variable];
        const auto found = module_names_.find(symbol.text);
        if (const auto function = functions_.find(symbol.text); function != functions_.end()) {
          element.variable = kNone;
          element.function = static_cast<std::uint32_t>(function->second);
          module_.functions[function->second].address_taken = true;
          continue;
        }
        if (found == module_names_.end()) {
          refuse_ptx(symbol.line, fmt::format("initialiser names unknown variable {}", printable(symbol.text, 80)));
        }
        element.variable = found->second;
      }
    }
  }

  // Locations ---------------------------------------------------------------------------------------------------

  void parse_location() {
    advance();
    Location location;
    location.file = file_number();
    location.line = small_integer();
    location.column = small_integer();
    if (accept(',')) {
      if (!accept("function_name")) unexpected("function_name");
      word("a label");
      if (accept('+')) integer();
      expect(',');
      if (!accept("inlined_at")) unexpected("inlined_at");
      const int file = file_number();
      const int line = small_integer();
      const int column = small_integer();
      location.inlined_at = location_of(file, line, column);
    }
    location_ = static_cast<std::uint32_t>(module_.locations.size());
    module_.locations.push_back(location);
    latest_location_[{location.file, location.line, location.column}] = location_;
  }

  /// Index of the latest .loc of that line; adds a location if there is none.
  std::uint32_t location_of(int file, int line, int column) {
    const auto [entry, inserted] = latest_location_.try_emplace({file, line, column}, kNone);
    if (inserted) {
      entry->second = static_cast<std::uint32_t>(module_.locations.size());
      module_.locations.push_back({file, line, column, kNone});
    }
    return entry->second;
  }

  // Functions ---------------------------------------------------------------------------------------------------

  void parse_function(bool entry) {
    function_ = Function{};
    function_.entry = entry;
    function_.line = token_.line;
    scopes_.assign(1, Scope{});
    scope_ = 0;
    location_ = kNone;
    const std::size_t first_operand = function_operands_.size();
    if (!entry && token_.is('(')) parse_parameters(function_.results);
    function_.name = word("a function's name");
    if (token_.is('(')) parse_parameters(function_.parameters);
    parse_function_directives();
    if (accept(';')) {
      function_.declared_only = true;
    } else {
      expect('{');
      parse_body();
      resolve_labels();
    }
    add_function(first_operand);
  }

  /// A definition replaces an earlier declaration. Of several weak definitions, the first one counts.
  void add_function(std::size_t first_operand) {
    const auto [entry, is_new] = functions_.try_emplace(function_.name, module_.functions.size());
    if (linkage_.linkable) linkable_functions_.insert(entry->second);
    if (is_new) {
      module_.functions.push_back(std::move(function_));
      return;
    }
    Function& existing = module_.functions[entry->second];
    if (!existing.declared_only && !function_.declared_only && !linkage_.merged) {
      fail(fmt::format("function {} is defined twice", printable(function_.name, 80)));
    }
    if (existing.declared_only) {
      function_.address_taken |= existing.address_taken;
      existing = std::move(function_);
    } else {
      function_operands_.resize(first_operand);  // those of the function that is dropped
    }
  }

  void parse_parameters(std::vector<std::uint32_t>& into) {
    expect('(');
    while (!accept(')')) {
      if (!accept(".param")) unexpected(".param (parameters in registers are not supported)");
      Variable parameter = parse_variable(Space::param);
      const auto index = static_cast<std::uint32_t>(function_.variables.size());
      scopes_[0].variables[parameter.name] = index;
      into.push_back(index);
      function_.variables.push_back(std::move(parameter));
      if (!token_.is(')')) expect(',');
    }
  }

  void parse_function_directives() {
    while (token_.kind == Token::Kind::word) {
      const std::string_view directive = token_.text;
      advance();
      if (directive == ".reqntid" || directive == ".maxntid" || directive == ".reqnctapercluster") {
        std::uint32_t extents[3] = {1, 1, 1};
        int rank = 0;
        do {
          if (rank == 3) fail("a directive with more than three dimensions");
          extents[rank++] = static_cast<std::uint32_t>(small_integer());
        } while (accept(','));
        if (directive == ".reqntid") std::copy(extents, extents + 3, function_.required_block);
        if (directive == ".reqnctapercluster") std::copy(extents, extents + 3, function_.required_cluster);
        if (directive == ".maxntid") {
          function_.maximum_block = static_cast<std::uint32_t>(
              std::min<std::uint64_t>(std::uint64_t{extents[0]} * extents[1] * extents[2], 1024));
        }
      } else if (directive == ".minnctapersm" || directive == ".maxnreg" || directive == ".maxclusterrank" ||
                 directive == ".maxnctapersm") {
        integer();
      } else if (directive == ".pragma") {
        skip_statement();
      } else if (directive != ".noreturn" && directive != ".explicitcluster" && directive != ".blocksareclusters") {
        fail(fmt::format("unknown function directive {}", printable(directive, 40)));
      }
    }
  }

  void parse_body() {
    int depth = 1;
    while (depth > 0) {
      if (token_.kind == Token::Kind::end) unexpected("'}'");
      if (accept('{')) {
        if (++depth > kMaxNesting) fail("blocks are nested too deeply");
        scopes_.push_back(Scope{});
        scopes_.back().parent = scope_;
        scope_ = static_cast<std::uint32_t>(scopes_.size() - 1);
      } else if (accept('}')) {
        --depth;
        if (depth > 0) scope_ = scopes_[scope_].parent;
      } else if (!accept(';')) {
        parse_statement();
      }
    }
  }

  void parse_statement() {
    if (token_.is(".loc")) return parse_location();
    if (accept(".reg")) return parse_registers();
    if (accept(".pragma")) return skip_statement();
    if (const auto space = variable_space()) {
      return parse_variables(*space, function_.variables, scopes_[scope_].variables);
    }
    if (token_.kind == Token::Kind::word && token_.text[0] != '.' && following_.is(':')) return parse_label();
    parse_instruction();
  }

  void parse_label() {
    const std::string_view label = token_.text;
    advance();
    advance();
    const auto index = static_cast<std::uint32_t>(function_.labels.size());
    if (!scopes_[scope_].labels.emplace(label, index).second) {
      fail(fmt::format("label {} is defined twice", printable(label, 80)));
    }
    function_.labels.push_back({label, static_cast<std::uint32_t>(function_.instructions.size()), {}});
    if (accept(".branchtargets")) {
      do {
        pending_targets_.push_back({index, scope_, token_.line, word("a label")});
      } while (accept(','));
      expect(';');
    } else if (token_.is(".calltargets") || token_.is(".callprototype")) {
      while (!token_.is(';')) {  // a call through a pointer finds its functions by the sizes of its operands
        if (token_.kind == Token::Kind::end) unexpected("';'");
        advance();
      }
      advance();
    }
  }

  void parse_registers() {
    if (token_.kind != Token::Kind::word || token_.text[0] != '.') unexpected("a register type");
    const auto type = parse_ptx_type(token_.text.substr(1));
    if (!type) fail(fmt::format("unknown register type {}", printable(token_.text, 40)));
    advance();
    do {
      const std::string_view register_name = word("a register's name");
      const auto first = static_cast<std::uint32_t>(function_.registers.size());
      std::uint64_t count = 1;
      if (accept('<')) {
        count = integer();
        expect('>');
        if (count + first > kMaxRegisters)
          fail(fmt::format("too many registers: the limit is {} per function", kMaxRegisters));
        scopes_[scope_].families[register_name] = {first, static_cast<std::uint32_t>(count)};
      } else {
        scopes_[scope_].registers[register_name] = first;
      }
      if (function_.registers.size() + count > kMaxRegisters)
        fail(fmt::format("too many registers: the limit is {} per function", kMaxRegisters));
      function_.registers.insert(function_.registers.end(), count, Register{*type});
    } while (accept(','));
    expect(';');
  }

  std::uint32_t find_register(std::string_view register_name) const {
    const auto family = split_family(register_name);
    for (std::uint32_t s = scope_; s != kNone; s = scopes_[s].parent) {
      const Scope& scope = scopes_[s];
      if (const auto found = scope.registers.find(register_name); found != scope.registers.end()) return found->second;
      if (!family) continue;
      const auto found = scope.families.find(family->first);
      if (found != scope.families.end() && family->second < found->second.count) {
        return found->second.first + static_cast<std::uint32_t>(family->second);
      }
    }
    return kNone;
  }

  void parse_instruction() {
    ParsedInstruction instruction;
    instruction.line = token_.line;
    instruction.location = location_;
    const std::size_t begin = token_.begin;
    if (accept('@')) {
      instruction.guard_negated = accept('!');
      const std::string_view guard = word("a predicate register");
      instruction.guard = find_register(guard);
      if (instruction.guard == kNone) fail(fmt::format("unknown predicate register {}", printable(guard, 80)));
    }
    instruction.opcode = word("an instruction");
    while (!token_.is(';')) {
      instruction.operands.push_back(parse_operand_or_pair());
      if (!token_.is(';') && !accept(',')) unexpected("',' or ';'");
    }
    instruction.text = std::string_view(module_.text).substr(begin, last_end_ - begin);
    advance();
    function_.instructions.push_back(std::move(instruction));
  }

  // Operands ----------------------------------------------------------------------------------------------------

  Operand parse_operand_or_pair() {
    Operand first = parse_operand();
    if (!accept('|')) return first;
    Operand pair;
    pair.kind = Operand::Kind::pair;
    pair.elements.push_back(std::move(first));
    pair.elements.push_back(parse_operand());
    return pair;
  }

  Operand parse_operand() {
    if (++nesting_ > kMaxNesting) fail("operands are nested too deeply");
    Operand operand = parse_one_operand();
    --nesting_;
    return operand;
  }

  Operand parse_one_operand() {
    if (accept('{')) return parse_elements(Operand::Kind::vector, '}');
    if (accept('(')) return parse_elements(Operand::Kind::list, ')');
    if (accept('[')) return parse_address();
    if (accept('!')) {
      Operand operand = parse_operand();
      operand.negated = !operand.negated;
      return operand;
    }
    if (token_.kind != Token::Kind::word) return parse_number();
    Operand operand = parse_name();
    if (token_.is('+') || token_.is('-')) operand.offset = parse_offset();
    return operand;
  }

  Operand parse_elements(Operand::Kind kind, char close) {
    Operand operand;
    operand.kind = kind;
    while (!accept(close)) {
      operand.elements.push_back(parse_operand());
      if (!token_.is(close)) expect(',');
    }
    return operand;
  }

  Operand parse_address() {
    Operand operand;
    operand.kind = Operand::Kind::address;
    operand.elements.push_back(token_.kind == Token::Kind::word ? parse_name() : parse_number());
    if (token_.is('+') || token_.is('-')) operand.offset = parse_offset();
    while (accept(',')) operand.elements.push_back(parse_operand());
    expect(']');
    return operand;
  }

  std::int64_t parse_offset() {
    bool negative = token_.is('-');
    advance();
    if (accept('-')) negative = !negative;  // "+-4"
    const std::uint64_t magnitude = integer();
    return static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
  }

  Operand parse_number() {
    const bool negative = accept('-');
    if (negative && token_.kind == Token::Kind::word) {
      Operand operand = parse_name();
      operand.negated = true;
      return operand;
    }
    Operand operand;
    operand.bits = token_.bits;
    switch (token_.kind) {
      case Token::Kind::integer:
        operand.kind = Operand::Kind::integer;
        if (negative) operand.bits = 0 - operand.bits;
        break;
      case Token::Kind::real:
        operand.kind = Operand::Kind::real;
        if (negative) operand.bits ^= std::uint64_t{1} << 63;
        break;
      case Token::Kind::real_f32:
        operand.kind = Operand::Kind::real_f32;
        if (negative) operand.bits ^= std::uint64_t{1} << 31;
        break;
      default:
        unexpected("an operand");
    }
    advance();
    return operand;
  }

  Operand parse_name() {
    Operand operand;
    operand.name = word("an operand");
    operand.scope = scope_;
    if (operand.name == "_") return operand;
    if (operand.name == "WARP_SZ") return integer_operand(32);
    operand.index = find_register(operand.name);
    if (const std::size_t dot = operand.name.rfind('.'); operand.index == kNone && dot != std::string_view::npos) {
      operand.index = find_register(operand.name.substr(0, dot));
      if (operand.index != kNone) operand.part = operand.name.substr(dot + 1);
    }
    if (operand.index != kNone) {
      operand.kind = Operand::Kind::reg;
    } else if (operand.name[0] == '%') {
      operand.kind = Operand::Kind::special;
    } else if (find_variable(operand)) {
      operand.kind = Operand::Kind::variable;
    } else {
      operand.kind = Operand::Kind::label;  // or a function: resolve_labels() decides at the end of the body
    }
    return operand;
  }

  bool find_variable(Operand& operand) const {
    for (std::uint32_t s = scope_; s != kNone; s = scopes_[s].parent) {
      const auto found = scopes_[s].variables.find(operand.name);
      if (found == scopes_[s].variables.end()) continue;
      operand.index = found->second;
      operand.local_scope = true;
      return true;
    }
    const auto found = module_names_.find(operand.name);
    if (found == module_names_.end()) return false;
    operand.index = found->second;
    return true;
  }

  std::uint32_t find_label(std::string_view label, std::uint32_t scope) const {
    for (std::uint32_t s = scope; s != kNone; s = scopes_[s].parent) {
      const auto found = scopes_[s].labels.find(label);
      if (found != scopes_[s].labels.end()) return found->second;
    }
    return kNone;
  }

  void resolve_labels() {
    for (ParsedInstruction& instruction : function_.instructions) {
      for (Operand& operand : instruction.operands) {
        if (operand.kind != Operand::Kind::label) continue;
        operand.index = find_label(operand.name, operand.scope);
        if (operand.index != kNone) continue;
        operand.kind = Operand::Kind::function;
        function_operands_.emplace_back(&operand, !instruction.opcode.starts_with("call"));
      }
    }
    for (const PendingTarget& pending : pending_targets_) {
      const std::uint32_t target = find_label(pending.target, pending.scope);
      if (target == kNone) refuse_ptx(pending.line, fmt::format("unknown label {}", printable(pending.target, 80)));
      function_.labels[pending.label].targets.push_back(target);
    }
    pending_targets_.clear();
  }

  std::string_view keep(std::string generated_name) {
    return module_.generated_names.emplace_back(std::move(generated_name));
  }

  struct PendingTarget {
    std::uint32_t label = 0;
    std::uint32_t scope = 0;
    int line = 0;
    std::string_view target;
  };

  Module& module_;
  PeriodicCheck check_;
  Lexer lexer_;
  Token token_, following_;
  std::size_t last_end_ = 0;
  int nesting_ = 0;
  std::unordered_map<std::string_view, std::uint32_t> module_names_;
  std::unordered_map<std::string_view, std::size_t> functions_;  // index in Module::functions
  std::vector<Token> pending_symbols_;
  std::vector<std::pair<Operand*, bool>> function_operands_;  // of this unit; true: it takes the function's address
  std::unordered_set<std::size_t> linkable_variables_, linkable_functions_;  // that other units may name
  Linkage linkage_;                                                          // of what is being parsed
  int first_file_ = 0;                                                       // of this unit, in Module::files
  std::vector<PendingTarget> pending_targets_;
  std::map<std::array<int, 3>, std::uint32_t> latest_location_;
  std::uint32_t location_ = kNone;
  Function function_;
  std::vector<Scope> scopes_;
  std::uint32_t scope_ = 0;
};

/// The text on one line, with single blanks and at most 160 characters.
std::string on_one_line(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (!blank) out += c;
    if (blank && !out.empty() && out.back() != ' ') out += ' ';
  }
  return printable(out, 160);
}

}  // namespace

const Function* Module::find(std::string_view function) const {
  const auto found = std::ranges::find(functions, function, &Function::name);
  return found == functions.end() ? nullptr : &*found;
}

CodeLocation Module::locate(const ParsedInstruction& instruction) const {
  constexpr std::size_t kMaxInliningDepth = 32;
  CodeLocation found{instruction.line, on_one_line(instruction.text), {}};
  for (std::uint32_t at = instruction.location; at != kNone && found.source.size() < kMaxInliningDepth;) {
    const Location& location = locations[at];
    const auto file = static_cast<std::size_t>(location.file);
    if (location.line != 0 && file < files.size()) found.source.push_back({files[file], location.line});
    at = location.inlined_at;
  }
  return found;
}

std::unique_ptr<const Module> parse_ptx(std::string_view text) {
  auto module = std::make_unique<Module>();
  module->text = std::string(text);
  Parser(*module).parse();
  return module;
}

}  // namespace tilewright::emulator
