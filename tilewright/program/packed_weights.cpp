#include "tilewright/program/packed_weights.hpp"

#include <fmt/format.h>

#include "tilewright/arch/wgmma_atom.hpp"
#include "tilewright/base/error.hpp"
#include "tilewright/base/rounding.hpp"
#include "tilewright/layout/algebra.hpp"

namespace tilewright::program {
namespace {

using layout::concatenate;
using layout::Layout;

constexpr int kInstructionK = 16;
constexpr int kThreadBits = 16 * 8;
constexpr int kValues = 8;  // of a thread, in one fragment

/// (thread, value) -> m + 64 * k. It is the same for f16 and bf16.
Layout fragment_of_a() {
  const arch::WgmmaAtom* atom =
      arch::find_wgmma_atom(DType::bf16, DType::bf16, DType::f32, arch::OperandSource::registers);
  return arch::instruction(*atom, 8).value_or_throw().a_tv;
}

void check_extents(std::int64_t m, std::int64_t k) {
  if (m < 1 || k < 1) throw InvalidArgument(fmt::format("weights have at least 1 row and 1 column, got {} x {}", m, k));
}

/// Elements of a packed matrix by their number.
class Elements {
 public:
  explicit Elements(DType type) : is_s4_(type == DType::s4) {}

  void write(std::vector<std::byte>& bytes, std::int64_t element, std::int8_t value) const {
    const auto bits = static_cast<std::uint8_t>(value);
    if (!is_s4_) {
      bytes[static_cast<std::size_t>(element)] = std::byte{bits};
    } else {
      bytes[static_cast<std::size_t>(element / 2)] |=
          std::byte(static_cast<std::uint8_t>((bits & 15) << shift(element)));
    }
  }
  std::int8_t read(std::span<const std::byte> bytes, std::int64_t element) const {
    if (!is_s4_) return static_cast<std::int8_t>(bytes[static_cast<std::size_t>(element)]);
    const int nibble = std::to_integer<int>(bytes[static_cast<std::size_t>(element / 2)] >> shift(element)) & 15;
    return static_cast<std::int8_t>(nibble < 8 ? nibble : nibble - 16);
  }

 private:
  static int shift(std::int64_t element) { return element % 2 == 0 ? 0 : 4; }
  bool is_s4_;
};

}  // namespace

int steps_of_chunk(DType type) {
  if (type != DType::s4 && type != DType::s8 && type != DType::e4m3)
    throw InvalidArgument(fmt::format("packed weights are s4, s8 or e4m3, got {}", name(type)));
  return kThreadBits / (kValues * bits(type));
}

WeightPacking weight_packing(DType type) {
  WeightPacking packing;
  packing.type = type;
  packing.steps = steps_of_chunk(type);
  packing.chunk_k = packing.steps * kInstructionK;
  // Register j has the values 2j and 2j+1. s4: nibbles j and j + 4 of the word. 8 bits: bytes j % 2 and j % 2 + 2 of
  // word j / 2.
  packing.positions = type == DType::s4 ? Layout({4, 2}, {2, 1}) : Layout({2, 2, 2}, {2, 1, 4});
  const Layout tv = fragment_of_a();
  const Layout of_element = concatenate({composition(tv.mode(1), packing.positions),
                                         Layout(packing.steps, WeightPacking::kRows * kInstructionK), tv.mode(0)});
  packing.chunk = composition(right_inverse(of_element),
                              Layout({WeightPacking::kRows, packing.chunk_k}, {1, WeightPacking::kRows}));
  return packing;
}

Layout packed_layout(DType type, std::int64_t m, std::int64_t k) {
  check_extents(m, k);
  const WeightPacking packing = weight_packing(type);
  const std::int64_t elements = size(packing.chunk);
  const std::int64_t chunks_k = ceil_div(k, packing.chunk_k);
  const std::int64_t chunks_m = ceil_div(m, WeightPacking::kRows);
  return concatenate({concatenate({packing.chunk.mode(0), Layout(chunks_m, chunks_k * elements)}),
                      concatenate({packing.chunk.mode(1), Layout(chunks_k, elements)})});
}

std::int64_t packed_bytes(DType type, std::int64_t m, std::int64_t k) {
  check_extents(m, k);
  const std::int64_t columns = round_up(k, weight_packing(type).chunk_k);
  return layout::checked_product(round_up(m, WeightPacking::kRows), columns) * bits(type) / 8;
}

Result<std::vector<std::byte>> pack_weights(DType type, std::int64_t m, std::int64_t k,
                                            std::span<const std::int8_t> weights) {
  const Layout layout = packed_layout(type, m, k);
  if (static_cast<std::int64_t>(weights.size()) != m * k)
    return refuse("{} x {} weights are {} elements, got {}", m, k, m * k, weights.size());
  std::vector<std::byte> packed(static_cast<std::size_t>(packed_bytes(type, m, k)));
  const Elements elements(type);
  for (std::int64_t row = 0; row < m; ++row) {
    for (std::int64_t column = 0; column < k; ++column) {
      const std::int8_t weight = weights[static_cast<std::size_t>(row * k + column)];
      if (type == DType::s4 && (weight < -8 || weight > 7))
        return refuse("an s4 is from -8 to 7, got {} in row {}, column {}", weight, row, column);
      if (type == DType::e4m3 && (weight & 0x7f) == 0x7f) return refuse("NaN in row {}, column {}", row, column);
      elements.write(packed, layout(row, column), weight);
    }
  }
  return packed;
}

std::vector<std::int8_t> unpack_weights(DType type, std::int64_t m, std::int64_t k, std::span<const std::byte> packed) {
  const Layout layout = packed_layout(type, m, k);
  if (static_cast<std::int64_t>(packed.size()) != packed_bytes(type, m, k)) {
    throw InvalidArgument(fmt::format("{} x {} packed weights of {} are {} bytes, got {}", m, k, name(type),
                                      packed_bytes(type, m, k), packed.size()));
  }
  std::vector<std::int8_t> weights(static_cast<std::size_t>(m * k));
  const Elements elements(type);
  for (std::int64_t row = 0; row < m; ++row) {
    for (std::int64_t column = 0; column < k; ++column)
      weights[static_cast<std::size_t>(row * k + column)] = elements.read(packed, layout(row, column));
  }
  return weights;
}

}  // namespace tilewright::program
