// The layout of fat binaries is not documented; it is what cuobjdump and objdump show of the output of nvcc 13.0.
#include "tools/cuda_runtime/fat_binary.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "tilewright/base/error.hpp"

namespace tilewright::cuda_runtime {
namespace {

constexpr std::uint32_t kMagic = 0xba55ed50;

struct ContainerHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint64_t bytes;  // of the entries
};

struct EntryHeader {
  std::uint16_t kind;  // 1: PTX, 2: ELF
  std::uint16_t version;
  std::uint32_t header_bytes;
  std::uint64_t bytes;  // of the payload, with padding
  std::uint32_t compressed_bytes;
  std::uint32_t options_offset;
  std::uint32_t code_version;
  std::uint32_t sm;
  std::uint32_t name_offset;
  std::uint32_t name_bytes;
  std::uint64_t flags;
  std::uint64_t reserved;
  std::uint64_t uncompressed_bytes;
};

constexpr std::uint16_t kPtxKind = 1;
constexpr std::uint64_t kLz4Flag = 0x2000;
constexpr std::uint64_t kZstdFlag = 0x8000;
constexpr std::uint64_t kMaxPtxBytes = std::uint64_t{1} << 30;

template <class T>
T read_at(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

/// Every Linux distribution has libzstd; it is loaded here, so that only programs whose PTX is compressed need it.
std::string decompress_zstd(std::string_view frame, std::size_t size) {
  using Decompress = std::size_t (*)(void*, std::size_t, const void*, std::size_t);
  static const auto decompress = [] {
    void* const library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    return library == nullptr ? nullptr : reinterpret_cast<Decompress>(dlsym(library, "ZSTD_decompress"));
  }();
  if (decompress == nullptr) {
    throw InvalidArgument(
        "the program's PTX is compressed and libzstd.so.1 was not found: install it (apt-get install libzstd1), or "
        "compile the program with nvcc -compress-mode=none");
  }
  std::string text(size, '\0');
  if (decompress(text.data(), size, frame.data(), frame.size()) != size)
    throw InvalidArgument("the program's compressed PTX is damaged");
  return text;
}

std::string decompress(const EntryHeader& header, std::string_view payload) {
  if ((header.flags & (kLz4Flag | kZstdFlag)) == 0) return std::string(payload.substr(0, payload.find('\0')));
  if (header.uncompressed_bytes > kMaxPtxBytes || header.compressed_bytes > payload.size())
    throw InvalidArgument("the program's compressed PTX is damaged");
  const std::string_view compressed = payload.substr(0, header.compressed_bytes);
  std::string text = (header.flags & kZstdFlag) != 0 ? decompress_zstd(compressed, header.uncompressed_bytes)
                                                     : decompress_lz4(compressed, header.uncompressed_bytes);
  text.resize(std::min(text.find('\0'), text.size()));
  return text;
}

/// ".target sm_90a, debug" -> "sm_90a"
std::string target_of(std::string_view ptx) {
  const std::size_t directive = ptx.find("\n.target ");
  if (directive == std::string_view::npos) return {};
  const std::size_t begin = directive + 9;
  return std::string(ptx.substr(begin, ptx.find_first_of(", \r\n", begin) - begin));
}

struct Entry {
  EntryHeader header;
  std::string_view payload;
};

/// @throws InvalidArgument
std::vector<Entry> entries_of(const void* image) {
  const auto* at = static_cast<const char*>(image);
  const auto container = read_at<ContainerHeader>(at);
  if (container.magic != kMagic) throw InvalidArgument("the image is no fat binary");
  at += container.header_bytes;
  const char* const end = at + container.bytes;
  std::vector<Entry> entries;
  while (at + sizeof(EntryHeader) <= end) {
    const auto header = read_at<EntryHeader>(at);
    if (header.header_bytes < sizeof(EntryHeader) || header.bytes > static_cast<std::uint64_t>(end - at)) break;
    entries.push_back({header, std::string_view(at + header.header_bytes, header.bytes)});
    at += header.header_bytes + header.bytes;
  }
  return entries;
}

bool has_ptx(const std::vector<Entry>& entries) {
  return std::ranges::any_of(entries, [](const Entry& each) { return each.header.kind == kPtxKind; });
}

std::optional<std::string> find_ptx(std::vector<Entry> entries, Target target) {
  std::erase_if(entries, [&](const Entry& each) {
    return each.header.kind != kPtxKind || static_cast<int>(each.header.sm) > target.sm;
  });
  std::ranges::stable_sort(entries, std::ranges::greater(), [](const Entry& each) { return each.header.sm; });
  for (const auto& [header, payload] : entries) {
    std::string ptx = decompress(header, payload);
    const std::string name = target_of(ptx);
    if (name.ends_with(fmt::format("{}", header.sm))) return ptx;  // later architectures run it, too
    const Result<Target> code = parse_target(name);
    if (code && target.runs_ptx(*code)) return ptx;
  }
  return std::nullopt;
}

InvalidArgument no_ptx(std::string_view what, const std::vector<Entry>& entries, Target target) {
  std::string others;
  for (const auto& [header, payload] : entries) {
    others += fmt::format("{}{} for sm_{}", others.empty() ? "" : ", ",
                          header.kind == kPtxKind ? "PTX" : "machine code", header.sm);
  }
  return InvalidArgument(fmt::format(
      "{} has no PTX that runs on {}, but {}: compile it with nvcc -gencode "
      "arch=compute_{},code=compute_{}",
      what, target.name(), others.empty() ? "no code" : others, target.name().substr(3), target.name().substr(3)));
}

}  // namespace

bool is_fat_binary(const void* image) { return read_at<std::uint32_t>(static_cast<const char*>(image)) == kMagic; }

std::string ptx_for(const void* image, Target target) {
  const std::vector<Entry> entries = entries_of(image);
  std::optional<std::string> ptx = find_ptx(entries, target);
  if (!ptx) throw no_ptx("the program", entries, target);
  return *std::move(ptx);
}

std::string linked_ptx_for(const void* const* parts, Target target) {
  std::string linked;
  std::vector<Entry> without;
  for (; *parts != nullptr; ++parts) {
    const std::vector<Entry> entries = entries_of(*parts);
    if (const std::optional<std::string> ptx = find_ptx(entries, target)) {
      linked += *ptx + '\n';
    } else if (!has_ptx(entries)) {
      throw no_ptx("a separately compiled part of the program", entries, target);
    } else {
      without = entries;  // libcudadevrt has PTX for the newest architecture only, and few programs need it
    }
  }
  if (linked.empty()) throw no_ptx("the program", without, target);
  return linked;
}

std::string decompress_lz4(std::string_view block, std::size_t size) {
  const auto damaged = [] { return InvalidArgument("the program's compressed PTX is damaged"); };
  std::string text;
  text.reserve(size);
  std::size_t at = 0;
  const auto next = [&] {
    if (at >= block.size()) throw damaged();
    return static_cast<unsigned char>(block[at++]);
  };
  const auto length = [&](std::size_t first) {
    if (first != 15) return first;
    for (unsigned char more = 255; more == 255;) first += more = next();
    return first;
  };
  while (true) {
    const unsigned char token = next();
    const std::size_t literals = length(token >> 4);
    if (literals > block.size() - at || literals > size - text.size()) throw damaged();
    text.append(block.substr(at, literals));
    at += literals;
    if (at == block.size()) break;
    const std::size_t low = next();
    const std::size_t offset = low | std::size_t{next()} << 8;
    const std::size_t matched = length(token & 15) + 4;
    if (offset == 0 || offset > text.size() || matched > size - text.size()) throw damaged();
    for (std::size_t i = 0; i < matched; ++i) text += text[text.size() - offset];
  }
  if (text.size() != size) throw damaged();
  return text;
}

}  // namespace tilewright::cuda_runtime
