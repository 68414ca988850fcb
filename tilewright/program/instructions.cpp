#include "tilewright/program/instructions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "tilewright/base/error.hpp"

namespace tilewright::program {
namespace {

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

Value one(std::vector<Value> outputs) { return outputs.front(); }

void check_register(const Value& value, RegisterType type, std::string_view instruction) {
  if (value.type == type && value.count == 1) return;
  throw InvalidArgument(
      fmt::format("{} takes one {} register, got {} {}", instruction, name(type), value.count, name(value.type)));
}

Value unary(KernelBuilder& k, std::string_view mnemonic, const Value& a) {
  check_register(a, RegisterType::f32, mnemonic);
  return one(k.instruction(fmt::format("{} $0, $1;", mnemonic), {output(RegisterType::f32), input(a)}, Effect::pure));
}

Value binary(KernelBuilder& k, std::string_view mnemonic, const Value& a, const Value& b) {
  check_register(a, RegisterType::f32, mnemonic);
  check_register(b, RegisterType::f32, mnemonic);
  return one(k.instruction(fmt::format("{} $0, $1, $2;", mnemonic), {output(RegisterType::f32), input(a), input(b)},
                           Effect::pure));
}

/// "f16" or "bf16". @throws InvalidArgument for other types
std::string_view half_name(DType type, std::string_view what) {
  if (type == DType::f16) return "f16";
  if (type == DType::bf16) return "bf16";
  throw InvalidArgument(fmt::format("{} takes f16 or bf16, got {}", what, tilewright::name(type)));
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

std::string predicated(std::string_view text, int predicate) {
  return fmt::format("{{\n.reg .pred p;\nsetp.ne.b32 p, ${}, 0;\n{}\n}}", predicate, text);
}

}  // namespace

Operand output(RegisterType type, int count) {
  return {.kind = Operand::Kind::output, .type = type, .value = {.type = type, .count = count}};
}

Operand input(const Value& value) { return input(std::vector<Value>{value}); }

Operand input(std::vector<Value> values) {
  const RegisterType type = type_of(values);
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
                           {output(type, count), input(global_address(k, base, offset)), number(holds)}));
}

void store_global(KernelBuilder& k, const Value& base, const Number& offset, std::vector<Value> values) {
  const std::string text = fmt::format("st.global{}.{} [$0], $1;", vector_suffix(values.size()), name(type_of(values)));
  k.instruction(text, {input(global_address(k, base, offset)), input(std::move(values))});
}

void store_global_if(KernelBuilder& k, const Number& holds, const Value& base, const Number& offset,
                     std::vector<Value> values) {
  const std::string text =
      fmt::format("@p st.global{}.{} [$0], $1;", vector_suffix(values.size()), name(type_of(values)));
  k.instruction(predicated(text, 2), {input(global_address(k, base, offset)), input(std::move(values)), number(holds)});
}

Value global_address(KernelBuilder& k, const Value& base, const Number& offset) {
  if (base.type != RegisterType::b64 || base.count != 1)
    throw InvalidArgument(fmt::format("a global address is one b64 register, got {} {}", base.count, name(base.type)));
  if (offset.is_static(0)) return base;
  return one(k.instruction("add.s64 $0, $1, $2;",
                           {output(RegisterType::b64), input(base), number(offset, RegisterType::b64)}, Effect::pure));
}

Value load_shared(KernelBuilder& k, const Number& address, RegisterType type, int count) {
  return one(
      k.instruction(fmt::format("ld.shared{}.{} $0, [$1];", vector_suffix(static_cast<std::size_t>(count)), name(type)),
                    {output(type, count), number(address)}));
}

void store_shared(KernelBuilder& k, const Number& address, std::vector<Value> values) {
  const std::string text = fmt::format("st.shared{}.{} [$0], $1;", vector_suffix(values.size()), name(type_of(values)));
  k.instruction(text, {number(address), input(std::move(values))});
}

void store_shared_at(KernelBuilder& k, const Number& address, const Number& rank, std::vector<Value> values) {
  const std::string text = fmt::format(
      "{{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, $0, $1;\n"
      "st.shared::cluster{}.{} [remote], $2;\n}}",
      vector_suffix(values.size()), name(type_of(values)));
  k.instruction(text, {number(address), number(rank), input(std::move(values))});
}

Value load_matrices(KernelBuilder& k, const Number& row_address, int count, bool transposes) {
  return one(k.instruction(fmt::format("ldmatrix.sync.aligned.m8n8.x{}{}.shared.b16 {}, [$1];", count,
                                       transposes ? ".trans" : "", listed(0, static_cast<std::size_t>(count))),
                           {output(RegisterType::b32, count), number(row_address)}));
}

void store_matrices(KernelBuilder& k, const Number& row_address, std::vector<Value> values, bool transposes) {
  const std::string text = fmt::format("stmatrix.sync.aligned.m8n8.x{}{}.shared::cta.b16 [$0], {};", values.size(),
                                       transposes ? ".trans" : "", listed(1, values.size()));
  k.instruction(text, {number(row_address), input(std::move(values))});
}

void synchronize(KernelBuilder& k) { k.instruction("barrier.sync.aligned 0;", {}); }

void launch_dependents(KernelBuilder& k) { k.instruction("griddepcontrol.launch_dependents;", {}); }

void named_barrier(KernelBuilder& k, const Number& id, int threads) {
  k.instruction("barrier.sync.aligned $0, $1;", {id.is_static() ? immediate(id) : number(id), immediate(threads)});
}

void named_barrier_arrive(KernelBuilder& k, int id, int threads) {
  k.instruction("barrier.arrive.aligned $0, $1;", {immediate(id), immediate(threads)});
}

void synchronize_cluster(KernelBuilder& k) {
  k.instruction("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;", {});
}

void synchronize_warp(KernelBuilder& k) { k.instruction("bar.warp.sync 0xffffffff;", {}); }

void mbarrier_init(KernelBuilder& k, const Number& barrier, const Number& arrivals) {
  k.instruction("mbarrier.init.shared::cta.b64 [$0], $1;", {number(barrier), number(arrivals)});
}

void fence_mbarrier_init(KernelBuilder& k) { k.instruction("fence.mbarrier_init.release.cluster;", {}); }

void mbarrier_arrive(KernelBuilder& k, const Number& barrier) {
  k.instruction("mbarrier.arrive.shared::cta.b64 _, [$0];", {number(barrier)});
}

void mbarrier_arrive_expect(KernelBuilder& k, const Number& barrier, const Number& bytes) {
  k.instruction("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", {number(barrier), number(bytes)});
}

void mbarrier_arrive_at(KernelBuilder& k, const Number& barrier, const Number& rank) {
  k.instruction(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, $0, $1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}",
      {number(barrier), number(rank)});
}

void mbarrier_wait(KernelBuilder& k, const Number& barrier, const Number& parity) {
  k.instruction(
      "{\n.reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1;\n"
      "@!done bra again;\n}",
      {number(barrier), number(parity)});
}

void cp_async(KernelBuilder& k, const Number& to, const Value& base, const Number& offset, int bytes,
              const std::optional<Number>& source_bytes) {
  if (bytes != 4 && bytes != 8 && bytes != 16)
    throw InvalidArgument(fmt::format("cp.async copies 4, 8 or 16 bytes, got {}", bytes));
  const std::string_view cache = bytes == 16 ? "cg" : "ca";  // .cg is for 16 bytes only
  const Value from = global_address(k, base, offset);
  if (!source_bytes) {
    k.instruction(fmt::format("cp.async.{}.shared.global [$0], [$1], {};", cache, bytes), {number(to), input(from)});
  } else {
    k.instruction(fmt::format("cp.async.{}.shared.global [$0], [$1], {}, $2;", cache, bytes),
                  {number(to), input(from), number(*source_bytes)});
  }
}

void cp_async_arrive(KernelBuilder& k, const Number& barrier) {
  k.instruction("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$0];", {number(barrier)});
}

void cp_async_commit(KernelBuilder& k) { k.instruction("cp.async.commit_group;", {}); }
void cp_async_wait(KernelBuilder& k, int pending) { k.instruction("cp.async.wait_group $0;", {immediate(pending)}); }

void tma_load(KernelBuilder& k, const Number& to, int map, const std::vector<Number>& coordinates,
              const Number& barrier, const std::optional<Number>& ctas, CachePolicy policy) {
  std::vector<Operand> operands{number(to), address_of(map), number(barrier)};
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
  std::vector<Operand> operands{address_of(map), number(from)};
  const std::string at = coordinate_operands(coordinates, operands);
  k.instruction(
      fmt::format("cp.async.bulk.tensor.{}d.global.shared::cta.bulk_group [$0, {}], [$1];", coordinates.size(), at),
      std::move(operands));
}

void tma_store_commit(KernelBuilder& k) { k.instruction("cp.async.bulk.commit_group;", {}); }

void tma_store_wait_read(KernelBuilder& k, int pending) {
  k.instruction("cp.async.bulk.wait_group.read $0;", {immediate(pending)});
}

void prefetch_tensor_map(KernelBuilder& k, int map) { k.instruction("prefetch.tensormap [$0];", {address_of(map)}); }

void fence_proxy_async(KernelBuilder& k) { k.instruction("fence.proxy.async.shared::cta;", {}); }

void wgmma_fence(KernelBuilder& k) { k.instruction("wgmma.fence.sync.aligned;", {}); }
void wgmma_commit(KernelBuilder& k) { k.instruction("wgmma.commit_group.sync.aligned;", {}); }

void wait_for_wgmma(KernelBuilder& k, int pending, const ValueCells& accumulators) {
  std::vector<Operand> operands{immediate(pending)};
  for (const ValueCell& cell : accumulators) operands.push_back(update(cell.get()));
  const std::vector<Value> values = k.instruction("wgmma.wait_group.sync.aligned $0;", std::move(operands));
  for (std::size_t i = 0; i < accumulators.size(); ++i) accumulators[i].set(values[i]);
}

void set_registers(KernelBuilder& k, int registers, bool increases) {
  if (registers < 24 || registers > 256 || registers % 8 != 0)
    throw InvalidArgument(fmt::format("setmaxnreg takes multiples of 8 from 24 to 256, got {}", registers));
  k.instruction(fmt::format("setmaxnreg.{}.sync.aligned.u32 $0;", increases ? "inc" : "dec"), {immediate(registers)},
                Effect::state);
}

Number elect(KernelBuilder& k) {
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

Value add(KernelBuilder& k, const Value& a, const Value& b) { return binary(k, "add.rn.f32", a, b); }
Value subtract(KernelBuilder& k, const Value& a, const Value& b) { return binary(k, "sub.rn.f32", a, b); }
Value multiply(KernelBuilder& k, const Value& a, const Value& b) { return binary(k, "mul.rn.f32", a, b); }
Value minimum(KernelBuilder& k, const Value& a, const Value& b) { return binary(k, "min.f32", a, b); }
Value maximum(KernelBuilder& k, const Value& a, const Value& b) { return binary(k, "max.f32", a, b); }
Value reciprocal(KernelBuilder& k, const Value& a) { return unary(k, "rcp.approx.f32", a); }
Value exp2(KernelBuilder& k, const Value& a) { return unary(k, "ex2.approx.f32", a); }
Value log2(KernelBuilder& k, const Value& a) { return unary(k, "lg2.approx.f32", a); }
Value tanh(KernelBuilder& k, const Value& a) { return unary(k, "tanh.approx.f32", a); }
Value reciprocal_sqrt(KernelBuilder& k, const Value& a) { return unary(k, "rsqrt.approx.f32", a); }

Value fma(KernelBuilder& k, const Value& a, const Value& b, const Value& c) {
  for (const Value* value : {&a, &b, &c}) check_register(*value, RegisterType::f32, "fma.rn.f32");
  return one(k.instruction("fma.rn.f32 $0, $1, $2, $3;", {output(RegisterType::f32), input(a), input(b), input(c)},
                           Effect::pure));
}

Value choose(KernelBuilder& k, const Number& condition, const Value& a, const Value& b) {
  if (a.type != b.type || a.count != 1 || b.count != 1)
    throw InvalidArgument(fmt::format("choose() takes two registers of one type, got {} {} and {} {}", a.count,
                                      name(a.type), b.count, name(b.type)));
  return one(k.instruction(predicated(fmt::format("selp.{} $0, $1, $2, p;", name(a.type)), 3),
                           {output(a.type), input(a), input(b), number(condition)}, Effect::pure));
}

Value shuffle_xor(KernelBuilder& k, const Value& a, int mask) {
  if (bits(a.type) != 32 || a.count != 1)
    throw InvalidArgument(fmt::format("a shuffle moves one register of 32 bits, got {} {}", a.count, name(a.type)));
  return one(k.instruction("shfl.sync.bfly.b32 $0, $1, $2, 31, 0xffffffff;",
                           {output(a.type), input(a), immediate(mask)}, Effect::state));
}

Value to_f32(KernelBuilder& k, const Number& from) {
  return one(k.instruction("cvt.rn.f32.u32 $0, $1;", {output(RegisterType::f32), number(from)}, Effect::pure));
}

Value to_f32(KernelBuilder& k, const Value& element, DType type) {
  if (type == DType::f32) return element;
  const std::string_view half = half_name(type, "the conversion to f32");
  check_register(element, RegisterType::b16, "the conversion to f32");
  return one(k.instruction(fmt::format("cvt.f32.{} $0, $1;", half), {output(RegisterType::f32), input(element)},
                           Effect::pure));
}

Value pack(KernelBuilder& k, DType type, const Value& low, const Value& high) {
  check_register(low, RegisterType::f32, "pack()");
  check_register(high, RegisterType::f32, "pack()");
  return one(k.instruction(fmt::format("cvt.rn.{}x2.f32 $0, $2, $1;", half_name(type, "pack()")),
                           {output(RegisterType::b32), input(low), input(high)}, Effect::pure));
}

std::vector<Value> unpack(KernelBuilder& k, DType type, const Value& pair) {
  check_register(pair, RegisterType::b32, "unpack()");
  if (type == DType::bf16) {  // a bf16 is the upper half of an f32
    return k.instruction("shl.b32 $0, $2, 16;\nand.b32 $1, $2, 0xffff0000;",
                         {output(RegisterType::f32), output(RegisterType::f32), input(pair)}, Effect::pure);
  }
  half_name(type, "unpack()");
  return k.instruction(
      "{\n.reg .b16 low, high;\nmov.b32 {low, high}, $2;\ncvt.f32.f16 $0, low;\ncvt.f32.f16 $1, high;\n}",
      {output(RegisterType::f32), output(RegisterType::f32), input(pair)}, Effect::pure);
}

Value from_f32(KernelBuilder& k, DType type, const Value& value) {
  if (type == DType::f32) return value;
  check_register(value, RegisterType::f32, "from_f32()");
  return one(k.instruction(fmt::format("cvt.rn.{}.f32 $0, $1;", half_name(type, "from_f32()")),
                           {output(RegisterType::b16), input(value)}, Effect::pure));
}

}  // namespace tilewright::program
