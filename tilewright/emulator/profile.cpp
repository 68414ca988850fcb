#include "tilewright/emulator/profile.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <string_view>
#include <utility>

#include "tilewright/emulator/instructions/lanes.hpp"

namespace tilewright::emulator {
namespace {

constexpr std::uint32_t kBankBytes = 4;
constexpr std::uint32_t kBanks = 32;
constexpr std::uint64_t kSharedOffset = 0xffffff;  // without the rank of a CTA of the cluster

/// The number of different blocks of `size` bytes that the lanes access.
std::uint64_t different_blocks(Mask lanes, const std::uint64_t* addresses, std::uint32_t bytes, std::uint64_t size) {
  std::vector<std::uint64_t> blocks;
  each_lane(lanes, [&](int l) {
    for (std::uint64_t block = addresses[l] / size; block <= (addresses[l] + bytes - 1) / size; ++block)
      blocks.push_back(block);
  });
  std::ranges::sort(blocks);
  return static_cast<std::uint64_t>(std::ranges::unique(blocks).begin() - blocks.begin());
}

/// The passes that some lanes take: the largest number of different words in one bank.
std::uint64_t passes(Mask lanes, const std::uint64_t* addresses, std::uint32_t bytes) {
  std::vector<std::uint64_t> words;
  each_lane(lanes, [&](int l) {
    const std::uint64_t offset = addresses[l] & kSharedOffset;
    for (std::uint64_t word = offset / kBankBytes; word <= (offset + bytes - 1) / kBankBytes; ++word)
      words.push_back(word);
  });
  std::ranges::sort(words);
  const auto rest = std::ranges::unique(words);
  words.erase(rest.begin(), rest.end());
  std::uint64_t in_bank[kBanks] = {};
  for (const std::uint64_t word : words) ++in_bank[word % kBanks];
  return *std::ranges::max_element(in_bank);
}

/// "ld.global", "mma.sync", "add.f32": the opcode and one modifier.
std::string kind_of(std::string_view opcode) {
  const std::size_t dot = opcode.find('.');
  return std::string(dot == std::string_view::npos ? opcode : opcode.substr(0, opcode.find('.', dot + 1)));
}

double mean(std::uint64_t sum, std::uint64_t count) {
  return count == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(count);
}

}  // namespace

std::span<const ProfileField> profile_fields() {
  static constexpr ProfileField kFields[] = {
      {"instructions", &ProfileCounts::instructions},
      {"active_lanes", &ProfileCounts::active_lanes},
      {"global_requests", &ProfileCounts::global_requests},
      {"global_bytes", &ProfileCounts::global_bytes},
      {"global_sectors", &ProfileCounts::global_sectors},
      {"global_lines", &ProfileCounts::global_lines},
      {"shared_requests", &ProfileCounts::shared_requests},
      {"shared_wavefronts", &ProfileCounts::shared_wavefronts},
      {"bank_conflicts", &ProfileCounts::bank_conflicts},
      {"async_copies", &ProfileCounts::async_copies},
      {"async_instructions", &ProfileCounts::async_instructions},
      {"bulk_loads", &ProfileCounts::bulk_loads},
      {"bulk_load_bytes", &ProfileCounts::bulk_load_bytes},
      {"multicast_bytes", &ProfileCounts::multicast_bytes},
      {"bulk_stores", &ProfileCounts::bulk_stores},
      {"bulk_store_bytes", &ProfileCounts::bulk_store_bytes},
      {"mbarrier_waits", &ProfileCounts::mbarrier_waits},
      {"mbarrier_retries", &ProfileCounts::mbarrier_retries},
      {"matrix_flops", &ProfileCounts::matrix_flops},
  };
  return kFields;
}

ProfileCounts& ProfileCounts::operator+=(const ProfileCounts& other) {
  for (const ProfileField& field : profile_fields()) this->*field.count += other.*field.count;
  return *this;
}

double ProfileCounts::mean_active_lanes() const { return mean(active_lanes, instructions); }
double ProfileCounts::mean_async_instructions() const { return mean(async_instructions, async_copies); }

void Profile::count_instruction(std::uint32_t code, Mask active) {
  ++counts_[code].instructions;
  counts_[code].active_lanes += static_cast<std::uint64_t>(std::popcount(active));
}

void Profile::count_global(std::uint32_t code, Mask lanes, const std::uint64_t* addresses, std::uint32_t bytes) {
  ProfileCounts& counts = counts_[code];
  ++counts.global_requests;
  counts.global_bytes += static_cast<std::uint64_t>(std::popcount(lanes)) * bytes;
  counts.global_sectors += different_blocks(lanes, addresses, bytes, 32);
  counts.global_lines += different_blocks(lanes, addresses, bytes, 128);
}

void Profile::count_shared(std::uint32_t code, Mask lanes, const std::uint64_t* addresses, std::uint32_t bytes) {
  ProfileCounts& counts = counts_[code];
  ++counts.shared_requests;
  // A pass moves 128 bytes: accesses of 8 and 16 bytes take one for each half or quarter of the warp.
  const int lanes_per_pass = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8;
  const Mask group = lanes_per_pass == 32 ? kAllLanes : (Mask{1} << lanes_per_pass) - 1;
  for (int first = 0; first < kWarpSize; first += lanes_per_pass) {
    const Mask part = lanes & group << first;
    if (part == 0) continue;
    const std::uint64_t taken = passes(part, addresses, bytes);
    counts.shared_wavefronts += taken;
    counts.bank_conflicts += taken - 1;
  }
}

void Profile::count_copy(std::uint32_t code, std::uint64_t instructions) {
  ++counts_[code].async_copies;
  counts_[code].async_instructions += instructions;
}

void Profile::count_bulk_load(std::uint32_t code, std::uint64_t bytes, int ctas) {
  ++counts_[code].bulk_loads;
  counts_[code].bulk_load_bytes += bytes;
  counts_[code].multicast_bytes += bytes * static_cast<std::uint64_t>(ctas - 1);
}

void Profile::count_bulk_store(std::uint32_t code, std::uint64_t bytes) {
  ++counts_[code].bulk_stores;
  counts_[code].bulk_store_bytes += bytes;
}

void Profile::count_wait(std::uint32_t code, bool complete) {
  ++(complete ? counts_[code].mbarrier_waits : counts_[code].mbarrier_retries);
}

void Profile::count_product(std::uint32_t code, int m, int n, int k) {
  counts_[code].matrix_flops += 2 * static_cast<std::uint64_t>(m) * static_cast<std::uint64_t>(n * k);
}

LaunchProfile summarise(const Profile& profile, const Program& program, const Module& module) {
  LaunchProfile result;
  std::map<std::string, ProfileCounts> kinds;
  std::map<std::pair<std::string, int>, ProfileCounts> lines;
  for (std::size_t i = 0; i < profile.counts().size(); ++i) {
    const ProfileCounts& counts = profile.counts()[i];
    if (counts.instructions == 0) continue;
    const ParsedInstruction& origin = *program.origins[i];
    const CodeLocation location = module.locate(origin);
    result.total += counts;
    kinds[kind_of(origin.opcode)] += counts;
    if (location.source.empty()) {
      lines[{"", location.ptx_line}] += counts;
    } else {
      lines[{location.source.front().file, location.source.front().line}] += counts;
    }
  }
  for (const auto& [name, counts] : kinds) result.kinds.push_back({name, 0, counts});
  std::ranges::stable_sort(result.kinds, std::ranges::greater(),
                           [](const ProfileRow& row) { return row.counts.instructions; });
  for (const auto& [place, counts] : lines) result.lines.push_back({place.first, place.second, counts});
  return result;
}

}  // namespace tilewright::emulator
