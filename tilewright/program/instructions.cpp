#include "tilewright/program/instructions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <initializer_list>
#include <utility>

#include "tilewright/base/error.hpp"
#include "tilewright/base/target_features.hpp"

namespace tilewright::program {
namespace {

/// Groups of copies that may be pending: any count that a kernel may have in flight. PTX has no limit.
constexpr int kMaxPendingGroups = 1 << 20;
constexpr int kMaxPendingWgmma = 7;

/// "", ".v2", ".v4"
std::string_view vector_suffix(std::size_t count) {
  switch (count) {
    case 1:
      return "";
    case 2:
      return ".v2";
    case 4:
      return ".v4";
    default:
      throw InvalidArgument(fmt::format("a memory access has 1, 2 or 4 registers, got {}", count));
  }
}

/// The operand "$i" of a list that is in braces even if it has one register, as vectors and matrices are.
std::string listed(int operand, std::size_t count) {
  return count == 1 ? fmt::format("{{${}}}", operand) : fmt::format("${}", operand);
}

RegisterType type_of(const std::vector<Value>& values) {
  if (values.empty()) throw InvalidArgument("an instruction that stores needs at least one register");
  return values.front().type;
}

/// The number of registers of all values together.
std::size_t register_count(const std::vector<Value>& values) {
  std::size_t count = 0;
  for (const Value& value : values) count += static_cast<std::size_t>(value.count);
  return count;
}

Value one(std::vector<Value> outputs) { return outputs.front(); }

void check_register(const Value& value, RegisterType type, std::string_view instruction) {
  if (value.type == type && value.count == 1) return;
  throw InvalidArgument(
      fmt::format("{} takes one {} register, got {} {}", instruction, name(type), value.count, name(value.type)));
}

bool is_integer(RegisterType type) { return type == RegisterType::b32 || type == RegisterType::b64; }

/// "f32" of floating-point registers, "s32" or "u64" of integers.
std::string element_type(RegisterType type, bool is_signed) {
  if (!is_integer(type)) return std::string(name(type));
  return fmt::format("{}{}", is_signed ? 's' : 'u', bits(type));
}

/// The type of all operands of `function`, one register each. @throws InvalidArgument for several registers, for
/// several types, and for a type that is not among `types`
RegisterType common_type(std::string_view function, const std::vector<Value>& operands,
                         std::initializer_list<RegisterType> types) {
  const RegisterType type = operands.front().type;
  for (const Value& operand : operands) {
    if (operand.count != 1) {
      throw InvalidArgument(
          fmt::format("{} takes one register of each operand, got {} {}", function, operand.count, name(operand.type)));
    }
    if (operand.type != type)
      throw InvalidArgument(
          fmt::format("{} takes operands of one type, got {} and {}", function, name(type), name(operand.type)));
  }
  if (std::ranges::find(types, type) != types.end()) return type;
  std::string known;
  std::size_t left = types.size();
  for (const RegisterType each : types) {
    known += fmt::format("{}{}", known.empty() ? "" : left == 1 ? " or " : ", ", name(each));
    --left;
  }
  throw InvalidArgument(fmt::format("{} takes {} registers, got {}", function, known, name(type)));
}

constexpr auto kFloats = {RegisterType::f32, RegisterType::f64};
constexpr auto kIntegers = {RegisterType::b32, RegisterType::b64};
constexpr auto kBits = {RegisterType::b16, RegisterType::b32, RegisterType::b64};

/// The type of all operands of `function`, of floating-point or integer registers. @throws InvalidArgument for other
/// operands, and for unsigned floating-point numbers
RegisterType number_type(std::string_view function, const std::vector<Value>& operands, bool is_signed) {
  const RegisterType type =
      common_type(function, operands, {RegisterType::f32, RegisterType::f64, RegisterType::b32, RegisterType::b64});
  if (is_signed || is_integer(type)) return type;
  throw InvalidArgument(fmt::format("{} is unsigned for integers only, got {}", function, name(type)));
}

/// The result, of `type`, of the instruction that `mnemonic` begins: mnemonic $0, $1, ...;
Value pure(KernelBuilder& k, std::string mnemonic, RegisterType type, const std::vector<Value>& operands) {
  std::string text = std::move(mnemonic) + " $0";
  std::vector<Operand> all{output(type)};
  for (const Value& operand : operands) {
    text += fmt::format(", ${}", all.size());
    all.push_back(input(operand));
  }
  return one(k.instruction(text + ";", std::move(all), Effect::pure));
}

/// An instruction of f32 or f64: mnemonic.type $0, $1, ...;
Value arithmetic(KernelBuilder& k, std::string_view function, std::string_view mnemonic,
                 const std::vector<Value>& operands) {
  const RegisterType type = common_type(function, operands, kFloats);
  return pure(k, fmt::format("{}.{}", mnemonic, name(type)), type, operands);
}

/// An instruction of f32 or f64, mnemonic.type $0, $1, ...; or of b32 or b64, with `integer` in place of `mnemonic`.
/// @throws InvalidArgument for unsigned floating-point numbers
Value arithmetic(KernelBuilder& k, std::string_view function, std::string_view mnemonic, std::string_view integer,
                 const std::vector<Value>& operands, bool is_signed = true) {
  const RegisterType type = number_type(function, operands, is_signed);
  return pure(k, fmt::format("{}.{}", is_integer(type) ? integer : mnemonic, element_type(type, is_signed)), type,
              operands);
}

/// An .approx instruction of f32.
Value approximate(KernelBuilder& k, std::string_view mnemonic, const Value& a) {
  check_register(a, RegisterType::f32, mnemonic);
  return one(k.instruction(fmt::format("{} $0, $1;", mnemonic), {output(RegisterType::f32), input(a)}, Effect::pure));
}

Number compare(KernelBuilder& k, std::string_view function, std::string_view mnemonic, const Value& a, const Value& b,
               bool is_signed = true) {
  const RegisterType type = number_type(function, {a, b}, is_signed);
  const std::string text = fmt::format("{{\n.reg .pred p;\n{}.{} p, $1, $2;\nselp.u32 $0, 1, 0, p;\n}}", mnemonic,
                                       element_type(type, is_signed));
  return k.number(one(k.instruction(text, {output(RegisterType::b32), input(a), input(b)}, Effect::pure)), 2);
}

/// The type of an integer or floating-point addition to memory.
std::string_view sum_type(const Value& value) {
  if (value.count == 1 && value.type == RegisterType::b32) return "u32";
  if (value.count == 1 && (value.type == RegisterType::f32 || value.type == RegisterType::f64)) return name(value.type);
  throw InvalidArgument(fmt::format("an addition to memory takes one f32, f64 or b32 register, got {} {}", value.count,
                                    name(value.type)));
}

/// atom of `space` (global, shared) at the address $1, with the operands from $2 on; the result is what the memory had.
Value atomic(KernelBuilder& k, std::string_view space, std::string_view operation, Operand address,
             const std::vector<Value>& values) {
  std::vector<Operand> operands{output(values.front().type), std::move(address)};
  std::string text = fmt::format("atom.{}.{} $0, [$1]", space, operation);
  for (const Value& value : values) {
    text += fmt::format(", ${}", operands.size());
    operands.push_back(input(value));
  }
  return one(k.instruction(text + ";", std::move(operands)));
}

std::vector<Value> words(const std::vector<Value>& values, std::string_view operation) {
  for (const Value& value : values) check_register(value, RegisterType::b32, operation);
  return values;
}

Value load_byte(KernelBuilder& k, std::string_view space, Operand address, bool is_signed) {
  return one(k.instruction(fmt::format("ld.{}.{} $0, [$1];", space, is_signed ? "s8" : "u8"),
                           {output(RegisterType::b32), std::move(address)}));
}

void store_byte(KernelBuilder& k, std::string_view space, Operand address, const Value& value) {
  check_register(value, RegisterType::b32, "a store of one byte");
  k.instruction(fmt::format("st.{}.u8 [$0], $1;", space), {std::move(address), input(value)});
}

/// @throws InvalidArgument if the target has none of the instructions that came with TMA
void check_sm_90(const KernelBuilder& k, std::string_view instruction) {
  if (has_feature(k.target(), TargetFeature::tma)) return;
  throw InvalidArgument(fmt::format("{} needs sm_90, the target is {}", instruction, k.target().name()));
}

/// "f16" or "bf16". @throws InvalidArgument for other types
std::string_view half_name(DType type, std::string_view what) {
  if (type == DType::f16) return "f16";
  if (type == DType::bf16) return "bf16";
  throw InvalidArgument(fmt::format("{} has no {}", what, tilewright::name(type)));
}

/// The coordinates of a tensor map as operands from number `first` on, and their text "{$2, $3}".
std::string coordinate_operands(const std::vector<Number>& coordinates, std::vector<Operand>& operands) {
  if (coordinates.empty() || coordinates.size() > kMaxTensorMapRank) {
    throw InvalidArgument(
        fmt::format("a TMA copy has 1 to {} coordinates, got {}", kMaxTensorMapRank, coordinates.size()));
  }
  std::string text;
  for (const Number& coordinate : coordinates) {
    text += fmt::format("{}${}", text.empty() ? "" : ", ", operands.size());
    operands.push_back(number(coordinate));
  }
  return "{" + text + "}";
}

/// A shared address, a multiple of `bytes`, at which an instruction accesses as many. @throws InvalidArgument if they
/// are not reserved, or the address is no multiple
Operand shared_address(const KernelBuilder& k, const Number& address, std::int64_t bytes) {
  k.check_shared(address, bytes, bytes);
  return number(address);
}

std::int64_t bytes_of(RegisterType type, std::size_t count) {
  return static_cast<std::int64_t>(count) * bits(type) / 8;
}

std::int64_t bytes_of(const std::vector<Value>& values) { return bytes_of(type_of(values), register_count(values)); }

/// The address of an mbarrier.
Operand mbarrier_address(const KernelBuilder& k, const Number& barrier) { return shared_address(k, barrier, 8); }

/// A condition in a b32 register, which is not 0 if it holds.
Operand condition(const Number& holds) {
  return number(holds.lower() >= 0 && holds.upper() <= layout::NumberScope::kMaxIndex ? holds : truth(holds));
}

/// @throws InvalidArgument unless the parameter is a tensor map
Operand tensor_map(const KernelBuilder& k, int map) {
  if (const Parameter& parameter = k.parameter(map); parameter.kind != Parameter::Kind::tensor_map)
    throw InvalidArgument(fmt::format("the parameter {}, '{}', is no tensor map", map, parameter.name));
  return address_of(map);
}

void check_range(std::int64_t value, std::int64_t least, std::int64_t most, std::string_view what) {
  if (value < least || value > most)
    throw InvalidArgument(fmt::format("{} must be from {} to {}, got {}", what, least, most, value));
}

void check_range(const Number& number, std::int64_t least, std::int64_t most, std::string_view what) {
  if (number.lower() >= least && number.upper() <= most) return;
  throw InvalidArgument(fmt::format(
      "{} must be from {} to {}, got {}{}", what, least, most, to_string(number),
      number.is_static() ? std::string() : fmt::format(", which is from {} to {}", number.lower(), number.upper())));
}

void check_named_barrier(const KernelBuilder& k, const Number& id, int threads) {
  check_range(id, 1, 15, "the number of a named barrier");
  if (threads % 32 != 0 || threads < 32 || threads > k.threads()) {
    throw InvalidArgument(fmt::format(
        "a named barrier has a multiple of 32 threads, at most the {} of the kernel, got {}", k.threads(), threads));
  }
}

std::string predicated(std::string_view text, int predicate) {
  return fmt::format("{{\n.reg .pred p;\nsetp.ne.b32 p, ${}, 0;\n{}\n}}", predicate, text);
}

/// An instruction that the first lane of a warp executes when all lanes have come here; $0 is the global address.
void by_first_lane(KernelBuilder& k, std::string_view text, const Value& address) {
  k.instruction(predicated(fmt::format("bar.warp.sync 0xffffffff;\n@p {}", text), 1),
                {input(address), number(equal(k.thread() % 32, 0))});
}

}  // namespace

Operand output(RegisterType type, int count) {
  return {.kind = Operand::Kind::output, .type = type, .value = {.type = type, .count = count}};
}

Operand input(const Value& value) { return input(std::vector<Value>{value}); }

Operand input(std::vector<Value> values) {
  const RegisterType type = type_of(values);
  for (const Value& value : values) {
    if (value.type != type)
      throw InvalidArgument(
          fmt::format("the registers of an operand have one type, got {} and {}", name(type), name(value.type)));
  }
  return {.kind = Operand::Kind::input, .type = type, .inputs = std::move(values)};
}

Operand update(const Value& value) {
  return {.kind = Operand::Kind::update,
          .type = value.type,
          .value = {.type = value.type, .count = value.count},
          .inputs = {value}};
}

Operand number(const Number& number, RegisterType type) {
  return {.kind = Operand::Kind::number, .type = type, .number = number};
}

Operand immediate(const Number& number) {
  if (!number.is_static()) {
    throw InvalidArgument(
        fmt::format("an immediate operand must be known when the kernel is built, got {}", to_string(number)));
  }
  return {.kind = Operand::Kind::immediate, .number = number};
}

Operand address_of(int parameter) {
  return {.kind = Operand::Kind::address, .type = RegisterType::b64, .parameter = parameter};
}

Value load_global(KernelBuilder& k, const Value& base, const Number& offset, RegisterType type, int count) {
  return one(k.instruction(
      fmt::format("ld.global{}.{} {}, [$1];", vector_suffix(static_cast<std::size_t>(count)), name(type), "$0"),
      {output(type, count), input(global_address(k, base, offset))}));
}

Value load_global_if(KernelBuilder& k, const Number& holds, const Value& base, const Number& offset, RegisterType type,
                     int count) {
  std::string zeros;
  for (int i = 0; i < count; ++i) {
    zeros += fmt::format("@!p mov.{} $0.{}, {};\n", name(type), i,
                         type == RegisterType::f32   ? "0f00000000"
                         : type == RegisterType::f64 ? "0d0000000000000000"
                                                     : "0");
  }
  const std::string load =
      fmt::format("@p ld.global{}.{} $0, [$1];", vector_suffix(static_cast<std::size_t>(count)), name(type));
  return one(k.instruction(predicated(zeros + load, 2),
                           {output(type, count), input(global_address(k, base, offset)), condition(holds)}));
}

void store_global(KernelBuilder& k, const Value& base, const Number& offset, std::vector<Value> values) {
  const std::string text =
      fmt::format("st.global{}.{} [$0], $1;", vector_suffix(register_count(values)), name(type_of(values)));
  k.instruction(text, {input(global_address(k, base, offset)), input(std::move(values))});
}

void store_global_if(KernelBuilder& k, const Number& holds, const Value& base, const Number& offset,
                     std::vector<Value> values) {
  const std::string text =
      fmt::format("@p st.global{}.{} [$0], $1;", vector_suffix(register_count(values)), name(type_of(values)));
  k.instruction(predicated(text, 2),
                {input(global_address(k, base, offset)), input(std::move(values)), condition(holds)});
}

Value global_address(KernelBuilder& k, const Value& base, const Number& offset) {
  if (base.type != RegisterType::b64 || base.count != 1)
    throw InvalidArgument(fmt::format("a global address is one b64 register, got {} {}", base.count, name(base.type)));
  if (offset.is_static(0)) return base;
  return one(k.instruction("add.s64 $0, $1, $2;",
                           {output(RegisterType::b64), input(base), number(offset, RegisterType::b64)}, Effect::pure));
}

void add_global(KernelBuilder& k, const Value& base, const Number& offset, const Value& value) {
  k.instruction(fmt::format("red.global.add.{} [$0], $1;", sum_type(value)),
                {input(global_address(k, base, offset)), input(value)});
}

Value atomic_add(KernelBuilder& k, const Value& base, const Number& offset, const Value& value) {
  return atomic(k, "global", fmt::format("add.{}", sum_type(value)), input(global_address(k, base, offset)), {value});
}
Value atomic_max(KernelBuilder& k, const Value& base, const Number& offset, const Value& value) {
  return atomic(k, "global", "max.s32", input(global_address(k, base, offset)), words({value}, "atom.max.s32"));
}
Value atomic_cas(KernelBuilder& k, const Value& base, const Number& offset, const Value& expected, const Value& value) {
  return atomic(k, "global", "cas.b32", input(global_address(k, base, offset)),
                words({expected, value}, "atom.cas.b32"));
}
Value load_global_byte(KernelBuilder& k, const Value& base, const Number& offset, bool is_signed) {
  return load_byte(k, "global", input(global_address(k, base, offset)), is_signed);
}
void store_global_byte(KernelBuilder& k, const Value& base, const Number& offset, const Value& value) {
  store_byte(k, "global", input(global_address(k, base, offset)), value);
}

void raise_flag(KernelBuilder& k, const Value& base, const Number& offset) {
  by_first_lane(k, "st.release.gpu.global.u32 [$0], 1;", global_address(k, base, offset));
}

void wait_for_flag(KernelBuilder& k, const Value& base, const Number& offset) {
  k.instruction(
      "{\n.reg .pred is_clear;\n.reg .b32 flag;\n"
      "again:\n"
      "ld.acquire.gpu.global.u32 flag, [$0];\n"
      "setp.eq.u32 is_clear, flag, 0;\n"
      "@is_clear bra again;\n"
      "bar.warp.sync 0xffffffff;\n}",
      {input(global_address(k, base, offset))});
}

void lower_flag(KernelBuilder& k, const Value& base, const Number& offset) {
  by_first_lane(k, "st.relaxed.gpu.global.u32 [$0], 0;", global_address(k, base, offset));
}

void add_shared(KernelBuilder& k, const Number& address, const Value& value) {
  k.instruction(fmt::format("red.shared.add.{} [$0], $1;", sum_type(value)),
                {shared_address(k, address, bits(value.type) / 8), input(value)});
}

Value atomic_add_shared(KernelBuilder& k, const Number& address, const Value& value) {
  return atomic(k, "shared", fmt::format("add.{}", sum_type(value)), shared_address(k, address, bits(value.type) / 8),
                {value});
}
Value atomic_max_shared(KernelBuilder& k, const Number& address, const Value& value) {
  return atomic(k, "shared", "max.s32", shared_address(k, address, 4), words({value}, "atom.max.s32"));
}
Value atomic_cas_shared(KernelBuilder& k, const Number& address, const Value& expected, const Value& value) {
  return atomic(k, "shared", "cas.b32", shared_address(k, address, 4), words({expected, value}, "atom.cas.b32"));
}
Value load_shared_byte(KernelBuilder& k, const Number& address, bool is_signed) {
  return load_byte(k, "shared", shared_address(k, address, 1), is_signed);
}
void store_shared_byte(KernelBuilder& k, const Number& address, const Value& value) {
  store_byte(k, "shared", shared_address(k, address, 1), value);
}

Value load_shared(KernelBuilder& k, const Number& address, RegisterType type, int count) {
  return one(k.instruction(
      fmt::format("ld.shared{}.{} $0, [$1];", vector_suffix(static_cast<std::size_t>(count)), name(type)),
      {output(type, count), shared_address(k, address, bytes_of(type, static_cast<std::size_t>(count)))}));
}

void store_shared(KernelBuilder& k, const Number& address, std::vector<Value> values) {
  const std::string text =
      fmt::format("st.shared{}.{} [$0], $1;", vector_suffix(register_count(values)), name(type_of(values)));
  k.instruction(text, {shared_address(k, address, bytes_of(values)), input(values)});
}

void store_shared_at(KernelBuilder& k, const Number& address, const Number& rank, std::vector<Value> values) {
  check_sm_90(k, "mapa");
  const std::string text = fmt::format(
      "{{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, $0, $1;\n"
      "st.shared::cluster{}.{} [remote], $2;\n}}",
      vector_suffix(register_count(values)), name(type_of(values)));
  k.instruction(text, {shared_address(k, address, bytes_of(values)), number(rank), input(values)});
}

Value load_matrices(KernelBuilder& k, const Number& row_address, int count, bool transposes) {
  return one(k.instruction(fmt::format("ldmatrix.sync.aligned.m8n8.x{}{}.shared.b16 {}, [$1];", count,
                                       transposes ? ".trans" : "", listed(0, static_cast<std::size_t>(count))),
                           {output(RegisterType::b32, count), number(row_address)}));
}

void store_matrices(KernelBuilder& k, const Number& row_address, std::vector<Value> values, bool transposes) {
  check_feature(k.target(), TargetFeature::stmatrix).or_throw();
  const std::string text =
      fmt::format("stmatrix.sync.aligned.m8n8.x{}{}.shared::cta.b16 [$0], {};", register_count(values),
                  transposes ? ".trans" : "", listed(1, register_count(values)));
  k.instruction(text, {number(row_address), input(std::move(values))});
}

void synchronize(KernelBuilder& k) { k.instruction("barrier.sync.aligned 0;", {}); }

void launch_dependents(KernelBuilder& k) {
  check_feature(k.target(), TargetFeature::griddepcontrol).or_throw();
  k.instruction("griddepcontrol.launch_dependents;", {});
}

void named_barrier(KernelBuilder& k, const Number& id, int threads) {
  check_named_barrier(k, id, threads);
  k.instruction("barrier.sync.aligned $0, $1;", {id.is_static() ? immediate(id) : number(id), immediate(threads)});
}

void named_barrier_arrive(KernelBuilder& k, int id, int threads) {
  check_named_barrier(k, id, threads);
  k.instruction("barrier.arrive.aligned $0, $1;", {immediate(id), immediate(threads)});
}

void synchronize_cluster(KernelBuilder& k) {
  check_feature(k.target(), TargetFeature::clusters).or_throw();
  k.instruction("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;", {});
}

void synchronize_warp(KernelBuilder& k) { k.instruction("bar.warp.sync 0xffffffff;", {}); }

void mbarrier_init(KernelBuilder& k, const Number& barrier, const Number& arrivals) {
  if (arrivals.upper() < 1 || arrivals.lower() > kMaxArrivals) {
    throw InvalidArgument(
        fmt::format("an mbarrier counts 1 to {} arrivals, got {}", kMaxArrivals, to_string(arrivals)));
  }
  k.instruction("mbarrier.init.shared::cta.b64 [$0], $1;", {mbarrier_address(k, barrier), number(arrivals)});
}

void fence_mbarrier_init(KernelBuilder& k) {
  check_sm_90(k, "fence.mbarrier_init");
  k.instruction("fence.mbarrier_init.release.cluster;", {});
}

void mbarrier_arrive(KernelBuilder& k, const Number& barrier) {
  k.instruction("mbarrier.arrive.shared::cta.b64 _, [$0];", {mbarrier_address(k, barrier)});
}

void mbarrier_arrive_expect(KernelBuilder& k, const Number& barrier, const Number& bytes) {
  check_sm_90(k, "mbarrier.arrive.expect_tx");
  k.instruction("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;",
                {mbarrier_address(k, barrier), number(bytes)});
}

void mbarrier_arrive_at(KernelBuilder& k, const Number& barrier, const Number& rank) {
  check_sm_90(k, "mapa");
  k.instruction(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, $0, $1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}",
      {mbarrier_address(k, barrier), number(rank)});
}

void mbarrier_wait(KernelBuilder& k, const Number& barrier, const Number& parity) {
  check_sm_90(k, "mbarrier.try_wait");
  k.instruction(
      "{\n.reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1;\n"
      "@!done bra again;\n}",
      {mbarrier_address(k, barrier), number(parity)});
}

void cp_async(KernelBuilder& k, const Number& to, const Value& base, const Number& offset, int bytes,
              const std::optional<Number>& source_bytes) {
  if (bytes != 4 && bytes != 8 && bytes != 16)
    throw InvalidArgument(fmt::format("cp.async copies 4, 8 or 16 bytes, got {}", bytes));
  const std::string_view cache = bytes == 16 ? "cg" : "ca";  // .cg is for 16 bytes only
  const Value from = global_address(k, base, offset);
  if (!source_bytes) {
    k.instruction(fmt::format("cp.async.{}.shared.global [$0], [$1], {};", cache, bytes),
                  {shared_address(k, to, bytes), input(from)});
  } else {
    k.instruction(fmt::format("cp.async.{}.shared.global [$0], [$1], {}, $2;", cache, bytes),
                  {shared_address(k, to, bytes), input(from), number(*source_bytes)});
  }
}

void cp_async_arrive(KernelBuilder& k, const Number& barrier) {
  k.instruction("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$0];", {mbarrier_address(k, barrier)});
}

void cp_async_commit(KernelBuilder& k) { k.instruction("cp.async.commit_group;", {}); }
void cp_async_wait(KernelBuilder& k, int pending) {
  check_range(pending, 0, kMaxPendingGroups, "the number of pending groups");
  k.instruction("cp.async.wait_group $0;", {immediate(pending)});
}

void tma_load(KernelBuilder& k, const Number& to, int map, const std::vector<Number>& coordinates,
              const Number& barrier, const std::optional<Number>& ctas, CachePolicy policy) {
  check_feature(k.target(), TargetFeature::tma).or_throw();
  std::vector<Operand> operands{number(to), tensor_map(k, map), mbarrier_address(k, barrier)};
  const std::string at = coordinate_operands(coordinates, operands);
  std::string multicast, mask;
  if (ctas) {
    multicast = ".multicast::cluster";
    mask = fmt::format(", ${}", operands.size());
    operands.push_back(number(*ctas, RegisterType::b16));
  }
  const std::size_t hint = operands.size();
  operands.push_back(number(static_cast<std::int64_t>(policy), RegisterType::b64));
  k.instruction(fmt::format("cp.async.bulk.tensor.{}d.shared::cluster.global.mbarrier::complete_tx::bytes{}"
                            ".L2::cache_hint [$0], [$1, {}], [$2]{}, ${};",
                            coordinates.size(), multicast, at, mask, hint),
                std::move(operands));
}

void tma_store(KernelBuilder& k, int map, const std::vector<Number>& coordinates, const Number& from) {
  check_feature(k.target(), TargetFeature::tma).or_throw();
  std::vector<Operand> operands{tensor_map(k, map), number(from)};
  const std::string at = coordinate_operands(coordinates, operands);
  k.instruction(
      fmt::format("cp.async.bulk.tensor.{}d.global.shared::cta.bulk_group [$0, {}], [$1];", coordinates.size(), at),
      std::move(operands));
}

void tma_store_commit(KernelBuilder& k) { k.instruction("cp.async.bulk.commit_group;", {}); }

void tma_store_wait_read(KernelBuilder& k, int pending) {
  check_range(pending, 0, kMaxPendingGroups, "the number of pending groups");
  k.instruction("cp.async.bulk.wait_group.read $0;", {immediate(pending)});
}

void prefetch_tensor_map(KernelBuilder& k, int map) { k.instruction("prefetch.tensormap [$0];", {tensor_map(k, map)}); }

void fence_proxy_async(KernelBuilder& k) {
  check_sm_90(k, "fence.proxy.async");
  k.instruction("fence.proxy.async.shared::cta;", {});
}

void wgmma_fence(KernelBuilder& k) {
  check_feature(k.target(), TargetFeature::wgmma).or_throw();
  k.instruction("wgmma.fence.sync.aligned;", {});
}
void wgmma_commit(KernelBuilder& k) {
  k.instruction("wgmma.commit_group.sync.aligned;", {});
  k.count_wgmma_group();
}

void wait_for_wgmma(KernelBuilder& k, int pending, const ValueCells& accumulators) {
  check_range(pending, 0, kMaxPendingWgmma, "the number of pending groups of wgmma");
  std::vector<Operand> operands{immediate(pending)};
  for (const ValueCell& cell : accumulators) operands.push_back(update(cell.get()));
  const std::vector<Value> values = k.instruction("wgmma.wait_group.sync.aligned $0;", std::move(operands));
  for (std::size_t i = 0; i < accumulators.size(); ++i) accumulators[i].set(values[i]);
}

void set_registers(KernelBuilder& k, int registers, bool increases) {
  check_feature(k.target(), TargetFeature::setmaxnreg).or_throw();
  if (registers < 24 || registers > 256 || registers % 8 != 0)
    throw InvalidArgument(fmt::format("setmaxnreg takes multiples of 8 from 24 to 256, got {}", registers));
  k.instruction(fmt::format("setmaxnreg.{}.sync.aligned.u32 $0;", increases ? "inc" : "dec"), {immediate(registers)},
                Effect::state);
}

Number elect(KernelBuilder& k) {
  check_sm_90(k, "elect.sync");
  const Value elected =
      one(k.instruction("{\n.reg .pred p;\n"
                        "elect.sync _|p, 0xffffffff;\n"
                        "selp.u32 $0, 1, 0, p;\n}",
                        {output(RegisterType::b32)}, Effect::state));
  return k.number(elected, 2);
}

Number broadcast(KernelBuilder& k, const Number& from) {
  const Value value = one(k.instruction("shfl.sync.idx.b32 $0, $1, 0, 31, 0xffffffff;",
                                        {output(RegisterType::b32), number(from)}, Effect::state));
  return k.number(value, from.upper() + 1, std::max<std::int64_t>(from.divisor(), 1));
}

Value constant(KernelBuilder& k, float value) {
  return one(k.instruction(fmt::format("mov.f32 $0, 0f{:08x};", std::bit_cast<std::uint32_t>(value)),
                           {output(RegisterType::f32)}, Effect::pure));
}

Value constant_f64(KernelBuilder& k, double value) {
  return one(k.instruction(fmt::format("mov.f64 $0, 0d{:016x};", std::bit_cast<std::uint64_t>(value)),
                           {output(RegisterType::f64)}, Effect::pure));
}

Value add(KernelBuilder& k, const Value& a, const Value& b) { return arithmetic(k, "add()", "add.rn", "add", {a, b}); }
Value subtract(KernelBuilder& k, const Value& a, const Value& b) {
  return arithmetic(k, "subtract()", "sub.rn", "sub", {a, b});
}
Value multiply(KernelBuilder& k, const Value& a, const Value& b) {
  return arithmetic(k, "multiply()", "mul.rn", "mul.lo", {a, b});
}
Value fma(KernelBuilder& k, const Value& a, const Value& b, const Value& c) {
  return arithmetic(k, "fma()", "fma.rn", {a, b, c});
}
Value minimum(KernelBuilder& k, const Value& a, const Value& b, bool is_signed) {
  return arithmetic(k, "minimum()", "min", "min", {a, b}, is_signed);
}
Value maximum(KernelBuilder& k, const Value& a, const Value& b, bool is_signed) {
  return arithmetic(k, "maximum()", "max", "max", {a, b}, is_signed);
}
Value divide(KernelBuilder& k, const Value& a, const Value& b) { return arithmetic(k, "divide()", "div.rn", {a, b}); }
Value square_root(KernelBuilder& k, const Value& a) { return arithmetic(k, "square_root()", "sqrt.rn", {a}); }
Value absolute(KernelBuilder& k, const Value& a) { return arithmetic(k, "absolute()", "abs", "abs", {a}); }
Number less(KernelBuilder& k, const Value& a, const Value& b, bool is_signed) {
  return compare(k, "less()", "setp.lt", a, b, is_signed);
}
Number less_equal(KernelBuilder& k, const Value& a, const Value& b, bool is_signed) {
  return compare(k, "less_equal()", "setp.le", a, b, is_signed);
}
Number equal(KernelBuilder& k, const Value& a, const Value& b) { return compare(k, "equal()", "setp.eq", a, b); }

namespace {

/// mnemonic.bN $0, $1, ...; of registers with bits.
Value bitwise(KernelBuilder& k, std::string_view function, std::string_view mnemonic,
              const std::vector<Value>& operands) {
  const RegisterType type = common_type(function, operands, kBits);
  return pure(k, fmt::format("{}.{}", mnemonic, name(type)), type, operands);
}

/// A shift of `a` by the b32 `count`.
Value shift(KernelBuilder& k, std::string_view function, const std::string& mnemonic, const Value& a,
            const Value& count) {
  const RegisterType type = common_type(function, {a}, kIntegers);
  check_register(count, RegisterType::b32, fmt::format("the distance of {}", function));
  return pure(k, mnemonic, type, {a, count});
}

/// A b32 that counts bits of a b32 or b64.
Value count_bits(KernelBuilder& k, std::string_view function, std::string_view mnemonic, const Value& a) {
  const RegisterType type = common_type(function, {a}, kIntegers);
  return pure(k, fmt::format("{}.{}", mnemonic, name(type)), RegisterType::b32, {a});
}

}  // namespace

Value multiply_high(KernelBuilder& k, const Value& a, const Value& b, bool is_signed) {
  const RegisterType type = common_type("multiply_high()", {a, b}, kIntegers);
  return pure(k, fmt::format("mul.hi.{}", element_type(type, is_signed)), type, {a, b});
}
Value bitwise_and(KernelBuilder& k, const Value& a, const Value& b) {
  return bitwise(k, "bitwise_and()", "and", {a, b});
}
Value bitwise_or(KernelBuilder& k, const Value& a, const Value& b) { return bitwise(k, "bitwise_or()", "or", {a, b}); }
Value bitwise_xor(KernelBuilder& k, const Value& a, const Value& b) {
  return bitwise(k, "bitwise_xor()", "xor", {a, b});
}
Value bitwise_not(KernelBuilder& k, const Value& a) { return bitwise(k, "bitwise_not()", "not", {a}); }
Value shift_left(KernelBuilder& k, const Value& a, const Value& count) {
  return shift(k, "shift_left()", fmt::format("shl.{}", name(a.type)), a, count);
}
Value shift_right(KernelBuilder& k, const Value& a, const Value& count, bool is_signed) {
  return shift(k, "shift_right()", fmt::format("shr.{}", element_type(a.type, is_signed)), a, count);
}
Value population_count(KernelBuilder& k, const Value& a) { return count_bits(k, "population_count()", "popc", a); }
Value leading_zeros(KernelBuilder& k, const Value& a) { return count_bits(k, "leading_zeros()", "clz", a); }
Value reverse_bits(KernelBuilder& k, const Value& a) {
  const RegisterType type = common_type("reverse_bits()", {a}, kIntegers);
  return pure(k, fmt::format("brev.{}", name(type)), type, {a});
}
Value extract_bits(KernelBuilder& k, const Value& a, int first, int count, bool is_signed) {
  const RegisterType type = common_type("extract_bits()", {a}, kIntegers);
  check_range(first, 0, bits(type) - 1, "the first bit of extract_bits()");
  check_range(count, 1, bits(type) - first, fmt::format("the number of bits of extract_bits() from bit {} on", first));
  return one(k.instruction(fmt::format("bfe.{} $0, $1, $2, $3;", element_type(type, is_signed)),
                           {output(type), input(a), immediate(first), immediate(count)}, Effect::pure));
}
Value permute_bytes(KernelBuilder& k, const Value& a, const Value& b, const Value& selectors) {
  common_type("permute_bytes()", {a, b, selectors}, {RegisterType::b32});
  return pure(k, "prmt.b32", RegisterType::b32, {a, b, selectors});
}
Value dot_bytes(KernelBuilder& k, const Value& a, const Value& b, const Value& c, bool is_signed) {
  common_type("dot_bytes()", {a, b, c}, {RegisterType::b32});
  return pure(k, is_signed ? "dp4a.s32.s32" : "dp4a.u32.u32", RegisterType::b32, {a, b, c});
}

Value reciprocal(KernelBuilder& k, const Value& a) { return approximate(k, "rcp.approx.f32", a); }
Value exp2(KernelBuilder& k, const Value& a) { return approximate(k, "ex2.approx.f32", a); }
Value log2(KernelBuilder& k, const Value& a) { return approximate(k, "lg2.approx.f32", a); }
Value tanh(KernelBuilder& k, const Value& a) { return approximate(k, "tanh.approx.f32", a); }
Value reciprocal_sqrt(KernelBuilder& k, const Value& a) { return approximate(k, "rsqrt.approx.f32", a); }

Value choose(KernelBuilder& k, const Number& holds, const Value& a, const Value& b) {
  if (a.type != b.type || a.count != 1 || b.count != 1)
    throw InvalidArgument(fmt::format("choose() takes two registers of one type, got {} {} and {} {}", a.count,
                                      name(a.type), b.count, name(b.type)));
  return one(k.instruction(predicated(fmt::format("selp.{} $0, $1, $2, p;", name(a.type)), 3),
                           {output(a.type), input(a), input(b), condition(holds)}, Effect::pure));
}

namespace {

/// shfl.sync of one register of all lanes. `mode` is bfly, idx, up or down; `from` is the lane, mask or distance;
/// `last` the clamp operand, which ends the shuffle at lane 0 or 31. Registers of 64 bits are moved in two halves,
/// those of 16 in the low half of one of 32.
Value move_among_lanes(KernelBuilder& k, std::string_view mode, const Value& a, Operand from, int last) {
  if (a.count != 1)
    throw InvalidArgument(fmt::format("a shuffle moves one register, got {} {}", a.count, name(a.type)));
  const auto move = [&](std::string_view to, std::string_view what) {
    return fmt::format("shfl.sync.{}.b32 {}, {}, $2, {}, 0xffffffff;", mode, to, what, last);
  };
  std::string text = move("$0", "$1");
  if (bits(a.type) == 64) {
    text = fmt::format("{{\n.reg .b32 low, high;\nmov.b64 {{low, high}}, $1;\n{}\n{}\nmov.b64 $0, {{low, high}};\n}}",
                       move("low", "low"), move("high", "high"));
  } else if (bits(a.type) == 16) {
    text =
        fmt::format("{{\n.reg .b32 wide;\ncvt.u32.u16 wide, $1;\n{}\ncvt.u16.u32 $0, wide;\n}}", move("wide", "wide"));
  }
  return one(k.instruction(text, {output(a.type), input(a), std::move(from)}, Effect::state));
}

}  // namespace

Value shuffle_xor(KernelBuilder& k, const Value& a, int mask) {
  check_range(mask, 0, 31, "the mask of a shuffle");
  return move_among_lanes(k, "bfly", a, immediate(mask), 31);
}

Value shuffle(KernelBuilder& k, const Value& a, const Number& lane) {
  if (lane.is_static()) check_range(lane.value(), 0, 31, "the lane of a shuffle");
  return move_among_lanes(k, "idx", a, number(lane), 31);
}

Value shuffle_up(KernelBuilder& k, const Value& a, int delta) {
  check_range(delta, 0, 31, "the distance of a shuffle");
  return move_among_lanes(k, "up", a, immediate(delta), 0);
}
Value shuffle_down(KernelBuilder& k, const Value& a, int delta) {
  check_range(delta, 0, 31, "the distance of a shuffle");
  return move_among_lanes(k, "down", a, immediate(delta), 31);
}

Value ballot(KernelBuilder& k, const Number& holds) {
  return one(k.instruction(predicated("vote.sync.ballot.b32 $0, p, 0xffffffff;", 1),
                           {output(RegisterType::b32), condition(holds)}, Effect::state));
}

Value to_b32(KernelBuilder& k, const Number& from) {
  return one(k.instruction("mov.b32 $0, $1;", {output(RegisterType::b32), number(from)}, Effect::pure));
}

Value to_b64(KernelBuilder& k, const Number& from) {
  return one(
      k.instruction("mov.b64 $0, $1;", {output(RegisterType::b64), number(from, RegisterType::b64)}, Effect::pure));
}

Value join_registers(KernelBuilder& k, std::vector<Value> values) {
  const RegisterType type = type_of(values);
  const auto count = static_cast<int>(register_count(values));
  std::string text;
  for (int i = 0; i < count; ++i)
    text += count == 1 ? fmt::format("mov.{} $0, $1;", name(type))
                       : fmt::format("{}mov.{} $0.{}, $1.{};", i == 0 ? "" : "\n", name(type), i, i);
  return one(k.instruction(text, {output(type, count), input(std::move(values))}, Effect::pure));
}

Value to_f32(KernelBuilder& k, const Number& from) {
  constexpr std::int64_t kU32 = 0xffffffff, kS32 = 0x7fffffff;
  const bool is_signed = from.lower() < 0;
  const bool is_wide = is_signed ? from.lower() < -kS32 || from.upper() > kS32 : from.upper() > kU32;
  const std::string text = fmt::format("cvt.rn.f32.{}{} $0, $1;", is_signed ? 's' : 'u', is_wide ? 64 : 32);
  return one(k.instruction(
      text, {output(RegisterType::f32), number(from, is_wide ? RegisterType::b64 : RegisterType::b32)}, Effect::pure));
}

namespace {

/// "e4m3x2". @throws InvalidArgument if the target does not convert this type
std::string fp8_pair(const KernelBuilder& k, DType type) {
  if (!k.target().has_features_of(Target(89))) {
    throw InvalidArgument(
        fmt::format("conversions of {} need sm_89, the target is {}", tilewright::name(type), k.target().name()));
  }
  return fmt::format("{}x2", tilewright::name(type));
}

/// "s8" and its like, integers that a b32 has in its low bits; empty for other types.
std::string_view small_integer(DType type) {
  return type == DType::s8 || type == DType::u8 || type == DType::s32 ? tilewright::name(type) : "";
}

}  // namespace

Value to_f32(KernelBuilder& k, const Value& element, DType type) {
  constexpr std::string_view kWhat = "the conversion to f32";
  const auto convert = [&](RegisterType from, const std::string& text) {
    check_register(element, from, kWhat);
    return one(k.instruction(text, {output(RegisterType::f32), input(element)}, Effect::pure));
  };
  if (type == DType::f32) return element;
  if (type == DType::f64) return convert(RegisterType::f64, "cvt.rn.f32.f64 $0, $1;");
  if (const std::string_view integer = small_integer(type); !integer.empty())
    return convert(RegisterType::b32, fmt::format("cvt.rn.f32.{} $0, $1;", integer));
  if (is_fp8(type)) {
    return convert(RegisterType::b32,
                   fmt::format("{{\n.reg .b16 bytes, low, high;\n.reg .b32 pair;\ncvt.u16.u32 bytes, $1;\n"
                               "cvt.rn.f16x2.{} pair, bytes;\nmov.b32 {{low, high}}, pair;\ncvt.f32.f16 $0, low;\n}}",
                               fp8_pair(k, type)));
  }
  return convert(RegisterType::b16, fmt::format("cvt.f32.{} $0, $1;", half_name(type, kWhat)));
}

Value pack(KernelBuilder& k, DType type, const Value& low, const Value& high) {
  check_register(low, RegisterType::f32, "pack()");
  check_register(high, RegisterType::f32, "pack()");
  const bool of_bytes = is_fp8(type);
  const std::string to = of_bytes ? "satfinite." + fp8_pair(k, type) : fmt::format("{}x2", half_name(type, "pack()"));
  return one(k.instruction(fmt::format("cvt.rn.{}.f32 $0, $2, $1;", to),
                           {output(of_bytes ? RegisterType::b16 : RegisterType::b32), input(low), input(high)},
                           Effect::pure));
}

std::vector<Value> unpack(KernelBuilder& k, DType type, const Value& pair) {
  const bool of_bytes = is_fp8(type);
  check_register(pair, of_bytes ? RegisterType::b16 : RegisterType::b32, "unpack()");
  const std::vector<Operand> operands{output(RegisterType::f32), output(RegisterType::f32), input(pair)};
  if (type == DType::bf16)  // a bf16 is the upper half of an f32
    return k.instruction("shl.b32 $0, $2, 16;\nand.b32 $1, $2, 0xffff0000;", operands, Effect::pure);
  std::string halves = "mov.b32 {low, high}, $2;";
  if (of_bytes) {
    halves = fmt::format(".reg .b32 pair;\ncvt.rn.f16x2.{} pair, $2;\nmov.b32 {{low, high}}, pair;", fp8_pair(k, type));
  } else {
    half_name(type, "unpack()");
  }
  return k.instruction(
      fmt::format("{{\n.reg .b16 low, high;\n{}\ncvt.f32.f16 $0, low;\ncvt.f32.f16 $1, high;\n}}", halves), operands,
      Effect::pure);
}

Value from_f32(KernelBuilder& k, DType type, const Value& value) {
  if (type == DType::f32) return value;
  check_register(value, RegisterType::f32, "from_f32()");
  const auto convert = [&](RegisterType to, const std::string& text) {
    return one(k.instruction(text, {output(to), input(value)}, Effect::pure));
  };
  if (type == DType::f64) return convert(RegisterType::f64, "cvt.f64.f32 $0, $1;");
  if (type == DType::s32) return convert(RegisterType::b32, "cvt.rni.s32.f32 $0, $1;");
  if (type == DType::s8 || type == DType::u8)
    return convert(RegisterType::b32, fmt::format("cvt.rni.sat.{}.f32 $0, $1;", tilewright::name(type)));
  if (is_fp8(type)) {
    return convert(RegisterType::b32,
                   fmt::format("{{\n.reg .b16 bytes;\ncvt.rn.satfinite.{}.f32 bytes, 0f00000000, $1;\n"
                               "cvt.u32.u16 $0, bytes;\n}}",
                               fp8_pair(k, type)));
  }
  return convert(RegisterType::b16, fmt::format("cvt.rn.{}.f32 $0, $1;", half_name(type, "from_f32()")));
}

}  // namespace tilewright::program
