#include "tilewright/program/tiled_mma.hpp"

#include <fmt/format.h>

#include <utility>

#include "tilewright/base/error.hpp"
#include "tilewright/base/target_features.hpp"

namespace tilewright::program {
namespace {

constexpr int kWarp = 32;
constexpr int kWarpsOfGroup = 4;
/// Bytes of a row of the 8x8 matrices of ldmatrix.
constexpr int kMatrixRowBytes = 16;

std::int64_t extent(const SharedTile& tile, int mode) { return size(tile.layout.mode(mode).layout); }

void check_divides(std::int64_t part, std::int64_t whole, std::string_view what) {
  if (part < 1 || whole % part != 0)
    throw InvalidArgument(fmt::format("{} of {} do not divide the tile's {}", what, part, whole));
}

/// @throws InvalidArgument unless rows of 16 bytes of the tile are contiguous along the mode that its major names
void check_contiguous(const MmaOperand& operand, std::string_view what) {
  const std::int64_t element_bits = bits(operand.tile.element);
  for (std::int64_t i = 1; i < kMatrixRowBytes * 8 / element_bits; ++i) {
    const bool is_k_major = operand.major == arch::Major::k;
    const Number offset = operand.tile.layout.at(is_k_major ? 0 : i, is_k_major ? i : 0);
    if (!offset.is_static(i)) {
      throw InvalidArgument(fmt::format("the tile of {} is {} in shared memory, which is not contiguous along {}", what,
                                        to_string(operand.tile.layout), is_k_major ? "k" : "m or n"));
    }
  }
}

/// Whether ldmatrix, which transposes elements of 16 bits only, loads fragments of the operand.
bool is_of_ldmatrix(const MmaOperand& operand) {
  return operand.major == arch::Major::k || bits(operand.tile.element) == 16;
}

/// @throws InvalidArgument unless ldmatrix loads the fragments of the operand
void check_loads_by_ldmatrix(const MmaOperand& operand, std::string_view what) {
  if (!is_of_ldmatrix(operand)) {
    throw InvalidArgument(fmt::format("ldmatrix transposes elements of 16 bits, the MN-major {} has {}", what,
                                      name(operand.tile.element)));
  }
  check_contiguous(operand, what);
}

void check_element(DType multiplied, const SharedTile& tile, std::string_view atom, std::string_view what) {
  if (tile.element == multiplied) return;
  throw InvalidArgument(
      fmt::format("{} multiplies {}, the tile of {} has {}", atom, name(multiplied), what, name(tile.element)));
}

/// The operand of wgmma that the tile is. A refusal says so if the tile has the other major.
arch::WgmmaOperand wgmma_operand_of(const MmaOperand& operand, int element_bits, std::int64_t rows,
                                    std::string_view what) {
  const Result<arch::WgmmaOperand> found = arch::wgmma_operand(operand.major, operand.tile.layout, element_bits, rows);
  if (found) return *found;
  const arch::Major other = operand.major == arch::Major::k ? arch::Major::mn : arch::Major::k;
  const bool is_other{arch::wgmma_operand(other, operand.tile.layout, element_bits, rows)};
  throw InvalidArgument(fmt::format(
      "{}: {}{}", what, found.reason(),
      is_other ? fmt::format("; the tile is {}, and its major is given as {}", name(other), name(operand.major)) : ""));
}

int register_count(const std::vector<Value>& values) {
  int count = 0;
  for (const Value& value : values) count += value.count;
  return count;
}

/// The registers of accumulators: two of f16 are in a b32.
RegisterType accumulator_type(DType type) {
  if (type == DType::f32) return RegisterType::f32;
  if (type == DType::f64) return RegisterType::f64;
  if (type == DType::s32 || type == DType::f16) return RegisterType::b32;
  throw InvalidArgument(fmt::format("accumulators are f32, f64, f16 or s32, got {}", name(type)));
}

/// Operand `index` in the text of an instruction, in braces if it has one register.
std::string listed(std::size_t index, const std::vector<Value>& registers) {
  return register_count(registers) == 1 ? fmt::format("{{${}}}", index) : fmt::format("${}", index);
}

/// @throws InvalidArgument unless the instruction reads operands of this major from shared memory
void check_major(const arch::WgmmaAtom& atom, arch::Major major, bool may_be_mn_major, DType element,
                 std::string_view what) {
  if (major == arch::Major::k || may_be_mn_major) return;
  throw InvalidArgument(fmt::format("{} reads {} K-major only: MN-major operands must have 16-bit types, got {}",
                                    atom.name, what, name(element)));
}

/// The immediates after scale-d, as in lower/cuda/wgmma.cpp.
std::string wgmma_immediates(const arch::WgmmaAtom& atom, arch::Major a, arch::Major b) {
  std::string text;
  if (atom.takes_scales) text += ", 1, 1";
  if (atom.a_may_be_mn_major) text += a == arch::Major::mn ? ", 1" : ", 0";
  if (atom.b_may_be_mn_major) text += b == arch::Major::mn ? ", 1" : ", 0";
  return text;
}

/// The upper 32 bits of the descriptor, which do not depend on the address.
std::int64_t descriptor_high(const arch::WgmmaOperand& operand) {
  return static_cast<std::int64_t>(arch::encode(operand.descriptor) >> 32);
}
/// The lower 32 bits of the descriptor of instruction (mn, k) in a tile at `address`, of which it holds bits 4 to 17.
/// In a cluster, the bits above are the rank of the CTA, which would be added to the descriptor's other fields.
Number descriptor_low(const arch::WgmmaOperand& operand, const Number& address, const Number& mn, const Number& k) {
  constexpr std::int64_t kAddressBits = 0x3ffff;
  const auto low = static_cast<std::int64_t>(arch::encode(operand.descriptor) & 0xffffffff);
  return (address & kAddressBits) / 16 + operand.offset.at(mn, k) + low;
}

}  // namespace

TiledMmaBuilder::TiledMmaBuilder(KernelBuilder& k, TiledMma mma) : kernel_(&k), mma_(std::move(mma)) {
  if (std::visit([](const auto& choice) { return choice.atom == nullptr; }, mma_.atom))
    throw InvalidArgument(
        "the product has no atom: there is no instruction of the shape and types that were looked for");
  m_ = extent(mma_.a.tile, 0);
  n_ = extent(mma_.b.tile, 0);
  k_ = extent(mma_.b.tile, 1);
  if (extent(mma_.a.tile, 1) != k_)
    throw InvalidArgument(fmt::format("the tile of A has {} of k, that of B {}", extent(mma_.a.tile, 1), k_));
  if (const auto* wgmma = std::get_if<WgmmaChoice>(&mma_.atom)) {
    check_feature(k.target(), TargetFeature::wgmma).or_throw();
    if (mma_.warps_m % kWarpsOfGroup != 0 || mma_.warps_n != 1) {
      throw InvalidArgument(
          fmt::format("wgmma takes warpgroups of 4 warps along m, got {} x {} warps", mma_.warps_m, mma_.warps_n));
    }
    const arch::WgmmaAtom& row = *wgmma->atom;
    atom_ = arch::instruction(row, wgmma->n).value_or_throw();
    const std::int64_t rows = m_ / (mma_.warps_m / kWarpsOfGroup);
    check_divides(atom_.m, rows, "instructions");
    check_divides(wgmma->n, n_, "instructions");
    count_m_ = rows / atom_.m;
    count_n_ = n_ / wgmma->n;
    check_element(row.b, mma_.b.tile, row.name, "B");
    check_major(row, mma_.b.major, row.b_may_be_mn_major, row.b, "B");
    wgmma_b_ = wgmma_operand_of(mma_.b, bits(row.b), wgmma->n, "B");
    if (row.a_source == arch::OperandSource::shared_memory) {
      check_element(row.a, mma_.a.tile, row.name, "A");
      check_major(row, mma_.a.major, row.a_may_be_mn_major, row.a, "A");
      if (mma_.convert_a) throw InvalidArgument(fmt::format("{} reads A from shared memory unconverted", row.name));
      wgmma_a_ = wgmma_operand_of(mma_.a, bits(row.a), atom_.m, "A");
    }
  } else {
    atom_ = *std::get<MmaChoice>(mma_.atom).atom;
    if (!k.target().has_features_of(atom_.min_target)) {
      throw InvalidArgument(
          fmt::format("{} needs {}, the target is {}", atom_.name, atom_.min_target.name(), k.target().name()));
    }
    check_element(atom_.a, mma_.a.tile, atom_.name, "A");
    check_element(atom_.b, mma_.b.tile, atom_.name, "B");
    check_contiguous(mma_.a, "A");
    check_contiguous(mma_.b, "B");
    if (mma_.convert_a)
      throw InvalidArgument(fmt::format("A is converted for wgmma with A in registers, {} is not", atom_.name));
    check_divides(static_cast<std::int64_t>(atom_.m) * mma_.warps_m, m_, "the rows of all warps' instructions");
    check_divides(static_cast<std::int64_t>(atom_.n) * mma_.warps_n, n_, "the columns of all warps' instructions");
    count_m_ = m_ / atom_.m / mma_.warps_m;
    count_n_ = n_ / atom_.n / mma_.warps_n;
    // ldmatrix loads 16 rows of 32 bytes: A of one instruction, or B of two.
    const bool has_fragments_of_ldmatrix =
        atom_.register_bits == 32 && atom_.k * bits(atom_.a) == 8 * 2 * kMatrixRowBytes;
    ldmatrix_a_ = has_fragments_of_ldmatrix && atom_.m == 16 && is_of_ldmatrix(mma_.a);
    ldmatrix_b_ = has_fragments_of_ldmatrix && atom_.n == 8 && count_n_ % 2 == 0 && is_of_ldmatrix(mma_.b);
    if (!ldmatrix_a_) check_loads_by_elements(mma_.a, "A");
    if (!ldmatrix_b_) check_loads_by_elements(mma_.b, "B");
  }
  check_divides(atom_.k, k_, "instructions along k");
  (void)accumulator_type(atom_.c);  // throws for other types
  if (threads() > k.threads()) {
    throw InvalidArgument(
        fmt::format("{} x {} warps multiply, the kernel has {} threads", mma_.warps_m, mma_.warps_n, k.threads()));
  }
}

void TiledMmaBuilder::check_loads_by_elements(const MmaOperand& operand, std::string_view what) const {
  const int element_bits = bits(operand.tile.element);
  if (operand.major == arch::Major::k || element_bits >= 8) return;
  throw InvalidArgument(
      fmt::format("fragments of elements of {} bits must be contiguous along k, the {} of {} is MN-major", element_bits,
                  what, atom_.name));
}

void TiledMmaBuilder::check_warp(const Number& warp) const {
  const int warps = threads() / kWarp;
  if (warp.lower() >= 0 && warp.upper() < warps) return;
  throw InvalidArgument(
      fmt::format("{} warps multiply, so that `warp` must be from 0 to {}, got {}, which is from {} to {}", warps,
                  warps - 1, to_string(warp), warp.lower(), warp.upper()));
}

void TiledMmaBuilder::check_accumulators(const Accumulators& accumulators) const {
  const auto count = static_cast<std::size_t>(count_m_ * count_n_);
  const RegisterType type = accumulator_type(atom_.c);
  const Value first = accumulators.cells.empty() ? Value{.count = 0} : accumulators.cells.front().get();
  if (accumulators.cells.size() == count && first.type == type && first.count == atom_.c_registers) return;
  throw InvalidArgument(fmt::format(
      "the accumulators are those of another product: this one has {} cells of {} {} registers, got {} of {} {}", count,
      atom_.c_registers, name(type), accumulators.cells.size(), first.count, name(first.type)));
}

Value TiledMmaBuilder::zero_registers() const {
  std::string zeros;
  for (int i = 0; i < atom_.c_registers; ++i) zeros += fmt::format("mov.b{} $0.{}, 0;", atom_.register_bits, i);
  return kernel_->instruction(zeros, {output(accumulator_type(atom_.c), atom_.c_registers)}, Effect::pure).front();
}

Accumulators TiledMmaBuilder::zeros() const {
  KernelBuilder& k = *kernel_;
  Accumulators accumulators{.cells = {}, .started = k.cell(0, 2)};
  for (std::int64_t i = 0; i < count_m_ * count_n_; ++i) {
    accumulators.cells.push_back(
        k.cell(uses_wgmma() ? k.undefined(accumulator_type(atom_.c), atom_.c_registers) : zero_registers()));
  }
  return accumulators;
}

void TiledMmaBuilder::write_unstarted(const Accumulators& accumulators) const {
  const Number started = accumulators.started.get();
  if (!uses_wgmma() || started.is_static(1)) return;
  kernel_->branch(equal(started, 0), [&] {
    for (const ValueCell& cell : accumulators.cells) cell.set(zero_registers());
  });
  accumulators.started.set(1);
}

void TiledMmaBuilder::fma(const Accumulators& accumulators, const Number& a, const Number& b,
                          const Number& warp) const {
  check_warp(warp);
  check_accumulators(accumulators);
  SharedTile::check_alignment(a, mma_.a.tile.alignment());
  SharedTile::check_alignment(b, mma_.b.tile.alignment());
  kernel_->check_shared(a, mma_.a.tile.bytes());
  kernel_->check_shared(b, mma_.b.tile.bytes());
  if (uses_wgmma()) {
    fma_by_wgmma(accumulators, a, b, warp);
  } else {
    fma_by_mma(accumulators, a, b, warp);
  }
}

void TiledMmaBuilder::fma_by_wgmma(const Accumulators& accumulators, const Number& a, const Number& b,
                                   const Number& warp) const {
  const std::int64_t steps = k_ / atom_.k;
  const Number first_m = warp / kWarpsOfGroup * count_m_;
  if (wgmma_a_) {
    issue_wgmma(accumulators, 0, steps, b, [&](std::int64_t step, std::int64_t m, std::vector<Operand>& operands) {
      operands.push_back(number(descriptor_low(*wgmma_a_, a, first_m + m, step)));
      operands.push_back(number(descriptor_high(*wgmma_a_)));
    });
    return;
  }
  if (!mma_.convert_a) check_element(atom_.a, mma_.a.tile, atom_.name, "A");
  std::vector<std::vector<Value>> fragments;
  std::size_t number = 0;
  for (const Value& loaded : load_fragments(a, warp)) {
    const auto step = static_cast<std::int64_t>(number) / count_m_, m = static_cast<std::int64_t>(number) % count_m_;
    ++number;
    fragments.push_back({loaded});
    if (!mma_.convert_a) continue;
    const Number at = (first_m + m) * atom_.m + warp % kWarpsOfGroup * 16;
    fragments.back() = {join_registers(
        *kernel_, mma_.convert_a({loaded[0], loaded[1], loaded[2], loaded[3]}, at, static_cast<int>(step)))};
  }
  fma_fragments(accumulators, fragments, b, 0);
  // The wait replaces the fragments, too, so that their registers are not written before it.
  std::vector<Operand> operands{immediate(0)};
  for (const ValueCell& cell : accumulators.cells) operands.push_back(update(cell.get()));
  for (const std::vector<Value>& fragment : fragments) operands.push_back(update(fragment.front()));
  const std::vector<Value> values = kernel_->instruction("wgmma.wait_group.sync.aligned $0;", std::move(operands));
  for (std::size_t i = 0; i < accumulators.cells.size(); ++i) accumulators.cells[i].set(values[i]);
}

std::vector<Value> TiledMmaBuilder::load_fragments(const Number& a, const Number& warp) const {
  if (!uses_wgmma() || wgmma_a_) throw InvalidArgument(fmt::format("{} does not take fragments of A", atom_.name));
  check_warp(warp);
  check_loads_by_ldmatrix(mma_.a, "A");
  std::vector<Value> fragments;
  for (std::int64_t step = 0; step < k_ / atom_.k; ++step) {
    for (std::int64_t m = 0; m < count_m_; ++m) {
      const Number row = (warp / kWarpsOfGroup * count_m_ + m) * atom_.m + warp % kWarpsOfGroup * 16;
      fragments.push_back(load_a(a, row, step));
    }
  }
  return fragments;
}

void TiledMmaBuilder::fma_fragments(const Accumulators& accumulators, const std::vector<std::vector<Value>>& fragments,
                                    const Number& b, std::int64_t first_step) const {
  if (!uses_wgmma() || wgmma_a_)
    throw InvalidArgument(fmt::format("{} does not take fragments of A from the caller", atom_.name));
  const auto count = static_cast<std::int64_t>(fragments.size());
  if (count < 1 || count % count_m_ != 0 || first_step < 0 || first_step + count / count_m_ > k_ / atom_.k) {
    throw InvalidArgument(fmt::format("{} fragments of A from step {} on, for {} rows of {} steps", count, first_step,
                                      count_m_, k_ / atom_.k));
  }
  check_accumulators(accumulators);
  for (const std::vector<Value>& fragment : fragments) {
    int registers = 0;
    for (const Value& value : fragment) registers += value.type == RegisterType::b32 ? value.count : 0;
    if (registers == kFragmentRegisters && registers == register_count(fragment)) continue;
    throw InvalidArgument(fmt::format("a fragment of A has {} b32 registers, got {} registers, {} of them b32",
                                      kFragmentRegisters, register_count(fragment), registers));
  }
  issue_wgmma(accumulators, first_step, count / count_m_, b,
              [&](std::int64_t step, std::int64_t m, std::vector<Operand>& operands) {
                operands.push_back(input(fragments[static_cast<std::size_t>((step - first_step) * count_m_ + m)]));
              });
}

void TiledMmaBuilder::issue_wgmma(
    const Accumulators& accumulators, std::int64_t first_step, std::int64_t steps, const Number& b,
    const std::function<void(std::int64_t step, std::int64_t m, std::vector<Operand>& operands)>& add_a) const {
  KernelBuilder& k = *kernel_;
  const arch::WgmmaAtom& row = *std::get<WgmmaChoice>(mma_.atom).atom;
  const std::string head =
      fmt::format("{{\n.reg .pred p;\n.reg .b64 a, b;\nmov.b64 b, {{$1, $2}};\nsetp.ne.b32 p, $3, 0;\n{}",
                  wgmma_a_ ? "mov.b64 a, {$4, $5};\n" : "");
  const std::string text = fmt::format("{}{} $0, {}, b, p{};\n}}", head, atom_.ptx, wgmma_a_ ? "a" : "$4",
                                       wgmma_immediates(row, mma_.a.major, mma_.b.major));
  wgmma_fence(k);
  for (std::int64_t step = first_step; step < first_step + steps; ++step) {
    for (std::int64_t m = 0; m < count_m_; ++m) {
      for (std::int64_t n = 0; n < count_n_; ++n) {
        const ValueCell& cell = accumulators.cells[static_cast<std::size_t>(m * count_n_ + n)];
        const Number accumulates = step == first_step ? accumulators.started.get() : Number(1);
        std::vector<Operand> operands{update(cell.get()), number(descriptor_low(*wgmma_b_, b, n, step)),
                                      number(descriptor_high(*wgmma_b_)), number(accumulates)};
        add_a(step, m, operands);
        cell.set(k.instruction(text, std::move(operands), Effect::state).front());
      }
    }
  }
  wgmma_commit(k);
  accumulators.started.set(1);
}

void TiledMmaBuilder::fma_by_mma(const Accumulators& accumulators, const Number& a, const Number& b,
                                 const Number& warp) const {
  KernelBuilder& k = *kernel_;
  const Number first_m = warp % mma_.warps_m * (count_m_ * atom_.m);
  const Number first_n = warp / mma_.warps_m * (count_n_ * atom_.n);
  // Lanes may leave the wait for a barrier at different times, and ldmatrix needs all of them: without this, rows of A
  // were missing in products of 4096x4096x4096 (H100, 2026-11-26).
  synchronize_warp(k);
  for (std::int64_t step = 0; step < k_ / atom_.k; ++step) {
    std::vector<std::vector<Value>> a_fragments, b_fragments;
    for (std::int64_t m = 0; m < count_m_; ++m) {
      const Number row = first_m + m * atom_.m;
      if (ldmatrix_a_) {
        a_fragments.push_back({load_a(a, row, step)});
      } else {
        a_fragments.push_back(load_elements(mma_.a, atom_.a_tv, atom_.m, a, row, step));
      }
    }
    for (std::int64_t n = 0; n < count_n_; n += ldmatrix_b_ ? 2 : 1) {
      const Number column = first_n + n * atom_.n;
      if (!ldmatrix_b_) {
        b_fragments.push_back(load_elements(mma_.b, atom_.b_tv, atom_.n, b, column, step));
        continue;
      }
      const std::vector<Value> pair = load_b(b, column, step);
      b_fragments.push_back({pair[0], pair[1]});
      b_fragments.push_back({pair[2], pair[3]});
    }
    for (std::int64_t m = 0; m < count_m_; ++m) {
      for (std::int64_t n = 0; n < count_n_; ++n) {
        const ValueCell& cell = accumulators.cells[static_cast<std::size_t>(m * count_n_ + n)];
        const std::vector<Value>& of_a = a_fragments[static_cast<std::size_t>(m)];
        const std::vector<Value>& of_b = b_fragments[static_cast<std::size_t>(n)];
        cell.set(k.instruction(fmt::format("{} $0, {}, {}, $0;", atom_.ptx, listed(1, of_a), listed(2, of_b)),
                               {update(cell.get()), input(of_a), input(of_b)}, Effect::state)
                     .front());
      }
    }
  }
}

std::vector<Value> TiledMmaBuilder::load_elements(const MmaOperand& operand, const layout::Layout& thread_values,
                                                  int rows, const Number& address, const Number& row,
                                                  std::int64_t step) const {
  KernelBuilder& k = *kernel_;
  const int element_bits = bits(operand.tile.element), per_register = atom_.register_bits / element_bits;
  const RegisterType type = atom_.register_bits == 64 ? RegisterType::f64 : RegisterType::b32;
  const auto registers = static_cast<int>(layout::size(thread_values.mode(1))) / per_register;
  const auto address_of = [&](int value) {
    const Number at = thread_values.at(lane(), value);  // column-major in the tile of the instruction
    return address + operand.tile.layout.at(row + at % rows, at / rows + step * atom_.k) * element_bits / 8;
  };
  std::vector<Value> fragment;
  for (int i = 0; i < registers; ++i) {
    const int first = i * per_register;
    if (per_register == 1 || operand.major == arch::Major::k) {  // the elements of a register are adjacent along k
      fragment.push_back(load_shared(k, address_of(first), type));
    } else if (element_bits == 16) {
      const Value low = load_shared(k, address_of(first), RegisterType::b16);
      const Value high = load_shared(k, address_of(first + 1), RegisterType::b16);
      fragment.push_back(
          k.instruction("mov.b32 $0, {$1, $2};", {output(RegisterType::b32), input(low), input(high)}, Effect::pure)
              .front());
    } else {
      Value word = load_shared_byte(k, address_of(first));
      for (int byte = 1; byte < per_register; ++byte) {
        const Value next = load_shared_byte(k, address_of(first + byte));
        word = bitwise_or(k, word, shift_left(k, next, to_b32(k, 8 * byte)));
      }
      fragment.push_back(word);
    }
  }
  return fragment;
}

Value TiledMmaBuilder::load_a(const Number& address, const Number& row, std::int64_t k) const {
  const std::int64_t element_bits = bits(mma_.a.tile.element);
  const std::int64_t along_k = k * atom_.k;
  const Number matrix = lane() / 8;  // (m, k): 0 (0, 0), 1 (8, 0), 2 (0, 16 bytes), 3 (8, 16 bytes)
  const bool is_k_major = mma_.a.major == arch::Major::k;
  const std::int64_t half = is_k_major ? 8 * kMatrixRowBytes / element_bits : 8;
  const Number m = row + matrix % 2 * 8 + (is_k_major ? lane() % 8 : 0);
  const Number at_k = matrix / 2 * half + along_k + (is_k_major ? 0 : lane() % 8);
  const Number at = address + mma_.a.tile.layout.at(m, at_k) * element_bits / 8;
  return load_matrices(*kernel_, at, 4, !is_k_major);
}

std::vector<Value> TiledMmaBuilder::load_b(const Number& address, const Number& column, std::int64_t k) const {
  const std::int64_t element_bits = bits(mma_.b.tile.element);
  const Number matrix = lane() / 8;  // (n, k): 0 (0, 0), 1 (0, 16 bytes), 2 (8, 0), 3 (8, 16 bytes)
  const bool is_k_major = mma_.b.major == arch::Major::k;
  const std::int64_t half = is_k_major ? 8 * kMatrixRowBytes / element_bits : 8;
  const Number n = column + matrix / 2 * 8 + (is_k_major ? lane() % 8 : 0);
  const Number at_k = matrix % 2 * half + k * atom_.k + (is_k_major ? 0 : lane() % 8);
  const Number at = address + mma_.b.tile.layout.at(n, at_k) * element_bits / 8;
  const Value loaded = load_matrices(*kernel_, at, 4, !is_k_major);
  return {loaded[0], loaded[1], loaded[2], loaded[3]};
}

AccumulatorPlace TiledMmaBuilder::place(const Number& accumulator, const Number& warp) const {
  check_warp(warp);
  const Number thread = uses_wgmma() ? warp % kWarpsOfGroup * kWarp + lane() : lane();
  const Number first_m =
      uses_wgmma() ? warp / kWarpsOfGroup * (count_m_ * atom_.m) : warp % mma_.warps_m * (count_m_ * atom_.m);
  const Number first_n = uses_wgmma() ? Number(0) : warp / mma_.warps_m * (count_n_ * atom_.n);
  const Number instruction = accumulator / values();
  const Number at = atom_.c_tv.at(thread, accumulator % values());  // column-major in the instruction's tile
  return {.row = first_m + instruction / count_n_ * atom_.m + at % atom_.m,
          .column = first_n + instruction % count_n_ * atom_.n + at / atom_.m};
}

void TiledMmaBuilder::for_each_pair(const Accumulators& accumulators, const Number& warp,
                                    const std::function<void(const AccumulatorPair&)>& visit) const {
  check_accumulators(accumulators);
  write_unstarted(accumulators);
  const bool is_f16 = atom_.c == DType::f16;
  for (std::size_t cell = 0; cell < accumulators.cells.size(); ++cell) {
    const Value value = accumulators.cells[cell].get();
    for (int i = 0; i < values(); i += 2) {
      const AccumulatorPlace at = place(static_cast<std::int64_t>(cell) * values() + i, warp);
      AccumulatorPair pair{.low = {}, .high = {}, .row = at.row, .column = at.column};
      if (is_f16) {
        const std::vector<Value> both = unpack(*kernel_, DType::f16, value[i / 2]);
        pair.low = both[0], pair.high = both[1];
      } else {
        pair.low = value[i], pair.high = value[i + 1];
      }
      visit(pair);
    }
  }
}

void TiledMmaBuilder::transform(const Accumulators& accumulators, const Number& warp,
                                const std::function<std::array<Value, 2>(const AccumulatorPair&)>& change) const {
  std::vector<Value> changed;
  for_each_pair(accumulators, warp, [&](const AccumulatorPair& pair) {
    const auto& [low, high] = change(pair);
    if (atom_.c == DType::f16) {
      changed.push_back(pack(*kernel_, DType::f16, low, high));
    } else {
      changed.push_back(low);
      changed.push_back(high);
    }
  });
  auto next = changed.begin();
  for (const ValueCell& cell : accumulators.cells) {
    cell.set(join_registers(*kernel_, {next, next + atom_.c_registers}));
    next += atom_.c_registers;
  }
}

}  // namespace tilewright::program
