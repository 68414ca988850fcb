#include "tilewright/arch/bulk_copy_atom.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace tilewright::arch {
namespace {

using layout::Layout;
using enum DType;

constexpr int kMaxRank = 5;
constexpr int kGranuleBytes = 16;
constexpr int kSmemAlignment = 128;

std::string_view text(Reduction reduction) {
  constexpr std::array<std::string_view, 8> kNames{"add", "min", "max", "inc", "dec", "and", "or", "xor"};
  return kNames[static_cast<std::size_t>(reduction)];
}

struct Form {
  std::string_view name;
  BulkDirection direction;
  bool is_multicast = false;
};

constexpr Form kLoad{"load", BulkDirection::global_to_shared};
constexpr Form kLoadMulticast{"load_multicast", BulkDirection::global_to_shared, true};
constexpr Form kStore{"store", BulkDirection::shared_to_global};
constexpr Form kCopyToCluster{"copy_to_cluster", BulkDirection::shared_to_cluster};
constexpr Form kPrefetch{"prefetch", BulkDirection::global_to_l2};

BulkCopyAtom row(BulkAddress address, const Form& form) {
  BulkCopyAtom atom;
  const bool is_linear = address == BulkAddress::linear;
  atom.name =
      fmt::format("{}_{}{}", is_linear ? "bulk" : "tma", form.name, address == BulkAddress::im2col ? "_im2col" : "");
  atom.address = address;
  atom.direction = form.direction;
  atom.is_multicast = form.is_multicast;
  if (!is_linear) {
    atom.min_rank = address == BulkAddress::im2col ? 3 : 1;  // batch, channels and at least one spatial mode
    atom.max_rank = kMaxRank;
  }
  return atom;
}

BulkCopyAtom reduction_row(BulkAddress address, Reduction reduction, std::vector<DType> types) {
  BulkCopyAtom atom = row(address, kStore);
  atom.name = fmt::format("{}_reduce_{}", address == BulkAddress::linear ? "bulk" : "tma", text(reduction));
  atom.reduction = reduction;
  atom.types = std::move(types);
  return atom;
}

std::vector<BulkCopyAtom> build() {
  std::vector<BulkCopyAtom> atoms;
  for (const BulkAddress address : {BulkAddress::tile, BulkAddress::im2col, BulkAddress::linear}) {
    for (const Form& form : {kLoad, kLoadMulticast, kStore, kPrefetch}) atoms.push_back(row(address, form));
  }
  atoms.push_back(row(BulkAddress::linear, kCopyToCluster));
  // Types: PTX ISA, cp.reduce.async.bulk, as far as DType has them.
  const std::vector<std::pair<Reduction, std::vector<DType>>> reductions{{Reduction::add, {s32, f16, bf16, f32, f64}},
                                                                         {Reduction::min, {s32, f16, bf16}},
                                                                         {Reduction::max, {s32, f16, bf16}},
                                                                         {Reduction::inc, {}},
                                                                         {Reduction::dec, {}},
                                                                         {Reduction::bit_and, {}},
                                                                         {Reduction::bit_or, {}},
                                                                         {Reduction::bit_xor, {}}};
  for (const auto& [reduction, types] : reductions) {
    atoms.push_back(reduction_row(BulkAddress::tile, reduction, {}));
    if (!types.empty()) atoms.push_back(reduction_row(BulkAddress::linear, reduction, types));
  }
  return atoms;
}

std::string_view spaces(BulkDirection direction) {
  switch (direction) {
    case BulkDirection::global_to_shared:
      return "shared::cluster.global";
    case BulkDirection::shared_to_global:
      return "global.shared::cta";
    case BulkDirection::shared_to_cluster:
      return "shared::cluster.shared::cta";
    case BulkDirection::global_to_l2:
      return "L2.global";
  }
  return {};
}

/// Stores in im2col mode take no offsets.
std::string_view load_mode(const BulkCopyAtom& atom) {
  if (atom.address == BulkAddress::linear) return "";
  if (atom.address == BulkAddress::tile) return ".tile";
  return atom.direction == BulkDirection::shared_to_global ? ".im2col_no_offs" : ".im2col";
}

std::string_view completion(BulkDirection direction) {
  switch (direction) {
    case BulkDirection::global_to_shared:
    case BulkDirection::shared_to_cluster:
      return ".mbarrier::complete_tx::bytes";
    case BulkDirection::shared_to_global:
      return ".bulk_group";
    case BulkDirection::global_to_l2:
      return "";
  }
  return {};
}

Support check_type(const BulkCopyAtom& atom, const std::optional<DType>& type) {
  if (atom.types.empty() && type) return refuse("{} takes no element type, got {}", atom.name, name(*type));
  if (atom.types.empty()) return {};
  if (!type) return refuse("{} needs an element type", atom.name);
  if (std::find(atom.types.begin(), atom.types.end(), *type) == atom.types.end())
    return refuse("{} has no form for {}", atom.name, name(*type));
  return {};
}

}  // namespace

const std::vector<BulkCopyAtom>& bulk_copy_atoms() {
  static const std::vector<BulkCopyAtom> atoms = build();
  return atoms;
}

const BulkCopyAtom* find_bulk_copy_atom(std::string_view name) {
  const std::vector<BulkCopyAtom>& atoms = bulk_copy_atoms();
  const auto found = std::find_if(atoms.begin(), atoms.end(), [&](const BulkCopyAtom& x) { return x.name == name; });
  return found == atoms.end() ? nullptr : &*found;
}

Result<std::string> ptx(const BulkCopyAtom& atom, int rank, std::optional<DType> type) {
  if (rank < atom.min_rank || rank > atom.max_rank)
    return refuse("{}: the rank must be from {} to {}, got {}", atom.name, atom.min_rank, atom.max_rank, rank);
  if (const Support support = check_type(atom, type); !support) return Refusal{support.reason()};
  std::string mnemonic = atom.reduction ? "cp.reduce.async.bulk" : "cp.async.bulk";
  if (atom.direction == BulkDirection::global_to_l2) mnemonic += ".prefetch";
  if (rank > 0) mnemonic += fmt::format(".tensor.{}d", rank);
  mnemonic += fmt::format(".{}", spaces(atom.direction));
  // The reduction is before the completion mechanism in tensor forms, and after it in linear forms.
  const std::string reduction = atom.reduction ? fmt::format(".{}", text(*atom.reduction)) : "";
  if (rank > 0) mnemonic += reduction;
  mnemonic += fmt::format("{}{}", load_mode(atom), completion(atom.direction));
  if (atom.is_multicast) mnemonic += ".multicast::cluster";
  if (rank > 0 || !type) return mnemonic;
  const bool is_half_add = *atom.reduction == Reduction::add && bits(*type) == 16;
  return mnemonic + fmt::format("{}{}.{}", reduction, is_half_add ? ".noftz" : "", name(*type));
}

Result<CopyAtom> instruction(const BulkCopyAtom& atom, int rank, int bytes, std::optional<DType> type) {
  if (bytes < kGranuleBytes || bytes % kGranuleBytes != 0)
    return refuse("{}: bytes must be a positive multiple of {}, got {}", atom.name, kGranuleBytes, bytes);
  Result<std::string> mnemonic = ptx(atom, rank, type);
  if (!mnemonic) return mnemonic.refusal();
  const Layout all_bits({1, 8 * bytes}, {0, 1});
  CopyAtom copy{.name = atom.name,
                .kind = CopyKind::bulk,
                .ptx = *std::move(mnemonic),
                .bytes = bytes,
                .alignment = rank > 0 ? kSmemAlignment : kGranuleBytes,
                .min_target = atom.min_target,
                .src = all_bits,
                .dst = all_bits};
  if (rank > 0) copy.name += fmt::format("_{}d", rank);
  if (type) copy.name += fmt::format("_{}", name(*type));
  return copy;
}

}  // namespace tilewright::arch
