// __assertfail, which assert() calls, vprintf, which printf() calls, malloc and free.
#include "tilewright/emulator/instructions/builtin.hpp"

#include <array>
#include <bit>
#include <cstdio>
#include <cstring>
#include <string>

#include "tilewright/base/interruption.hpp"
#include "tilewright/base/text.hpp"
#include "tilewright/emulator/cta.hpp"
#include "tilewright/emulator/global_shadow.hpp"
#include "tilewright/emulator/instructions/lanes.hpp"

namespace tilewright::emulator {
namespace {

/// The parameters of one lane's call.
class Arguments {
 public:
  Arguments(Warp& warp, const Instruction& in, int lane) : warp_(warp), in_(in), lane_(lane) {}

  template <class T>
  T get(std::size_t parameter) const {
    T value;
    std::memcpy(&value, local() + address(parameter), sizeof(T));
    return value;
  }
  template <class T>
  void set(std::size_t result, T value) const {
    std::memcpy(local() + address(result), &value, sizeof(value));
    warp_.cta().mark_local(warp_.index() * kWarpSize + lane_, address(result), sizeof(value), 0);
  }

  /// Reads one byte at a generic address. False when the address is not readable.
  bool read(std::uint64_t address, char& byte) const {
    const std::byte* from = nullptr;
    const std::uint64_t offset = address & ~kWindowMask;
    if ((address & kWindowMask) == kLocalWindow) {
      if (offset < warp_.program().local_bytes) from = local() + offset;
    } else if (warp_.cta().launch().regions.find(address, 1) != nullptr) {
      from = reinterpret_cast<const std::byte*>(address);
    }
    if (from != nullptr) byte = static_cast<char>(*from);
    return from != nullptr;
  }

  /// A zero-terminated string; ends early at an address that is not readable, or after 4096 characters.
  std::string text(std::uint64_t address) const {
    constexpr std::size_t kLongest = 4096;
    std::string all;
    for (char c = 0; all.size() < kLongest && read(address++, c) && c != '\0';) all += c;
    return all;
  }

 private:
  std::uint64_t address(std::size_t operand) const { return warp_.reg<std::uint64_t>(in_.op[operand])[lane_]; }
  std::byte* local() const { return warp_.cta().local(warp_.index() * kWarpSize + lane_); }

  Warp& warp_;
  const Instruction& in_;
  int lane_;
};

void execute_assertion_failure(Warp& warp, const Instruction& in, Mask lanes) {
  const int lane = std::countr_zero(lanes);
  const Arguments arguments(warp, in, lane);
  warp.fail(FindingKind::trap, in, lane, 0,
            fmt::format("assertion failed: {} ({}:{})", printable(arguments.text(arguments.get<std::uint64_t>(0))),
                        printable(arguments.text(arguments.get<std::uint64_t>(1))), arguments.get<std::uint32_t>(2)));
}

/// The packed variadic arguments of printf: each takes 4 or 8 bytes, aligned to its size.
class PackedArguments {
 public:
  PackedArguments(const Arguments& arguments, std::uint64_t address) : arguments_(arguments), at_(address) {}

  template <class T>
  T next() {
    at_ = (at_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    char bytes[sizeof(T)] = {};
    for (char& byte : bytes) arguments_.read(at_++, byte);
    return std::bit_cast<T>(bytes);
  }

 private:
  const Arguments& arguments_;
  std::uint64_t at_;
};

template <class T>
std::string formatted(const std::string& conversion, T value) {
  char text[512];
  std::snprintf(text, sizeof(text), conversion.c_str(), value);
  return text;
}

/// Whether a width or precision has more than 4 digits. The result has at most 511 characters, but snprintf would count
/// up to the width.
bool is_excessive(std::string_view conversion) {
  std::size_t digits = 0;
  for (const char c : conversion) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    if (digits > 4) return true;
  }
  return false;
}

/// Formats one conversion, such as "%-8.3lld", with the next argument.
std::string convert(std::string conversion, const Arguments& arguments, PackedArguments& packed) {
  for (std::size_t at = 0; (at = conversion.find('*')) != std::string::npos;) {
    std::string number = std::to_string(packed.next<int>());
    // A negative precision counts as none; a negative width is the flag '-' and a width.
    if (at > 0 && conversion[at - 1] == '.' && number.starts_with('-')) {
      conversion.erase(at - 1, 2);
    } else {
      conversion.replace(at, 1, number);
    }
  }
  const char kind = conversion.back();
  if (is_excessive(conversion)) return conversion;
  const bool wide = conversion.find_first_of("lzjt") != std::string::npos;
  switch (kind) {
    case '%':
      return "%";
    case 's':
      return formatted(conversion, arguments.text(packed.next<std::uint64_t>()).c_str());
    case 'p':
      return formatted(conversion, std::bit_cast<void*>(packed.next<std::uint64_t>()));
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
    case 'c':
      return wide ? formatted(conversion, packed.next<long long>()) : formatted(conversion, packed.next<int>());
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
      return formatted(conversion, packed.next<double>());
    default:
      return conversion;
  }
}

std::string print(const std::string& format, const Arguments& arguments, PackedArguments packed) {
  std::string text;
  for (std::size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      text += format[at++];
      continue;
    }
    const std::size_t kind = format.find_first_not_of("0123456789.+-# lhzjt*", at + 1);
    if (kind == std::string::npos) return text + format.substr(at);
    text += convert(format.substr(at, kind + 1 - at), arguments, packed);
    at = kind + 1;
  }
  return text;
}

/// Prints to the host's standard output or standard error, one lane after the other.
void execute_print(Warp& warp, const Instruction& in, Mask lanes) {
  std::FILE* const to = warp.cta().launch().options.print_to_stderr ? stderr : stdout;
  for (; lanes != 0; lanes &= lanes - 1) {
    check_interruption();
    const Arguments arguments(warp, in, std::countr_zero(lanes));
    const std::string format = arguments.text(arguments.get<std::uint64_t>(0));
    const std::string text = print(format, arguments, PackedArguments(arguments, arguments.get<std::uint64_t>(1)));
    std::fwrite(text.data(), 1, text.size(), to);
    arguments.set(2, static_cast<std::uint32_t>(text.size()));
  }
}

/// Orders calls of the heap as its lock does: what a thread did with a block happens before the block is used again.
void lock_heap(Warp& warp, const Instruction& in, int lane) {
  constexpr std::uint64_t kLock = 4096;  // in no allocation
  GlobalShadow* const shadow = warp.cta().launch().global_shadow;
  LanePointers how;
  how.releases = true;
  if (shadow != nullptr) shadow->access(warp, in, lane, kLock, 4, AccessKind::strong_update, nullptr, how);
}

void execute_malloc(Warp& warp, const Instruction& in, Mask lanes) {
  for (; lanes != 0; lanes &= lanes - 1) {
    lock_heap(warp, in, std::countr_zero(lanes));
    const Arguments arguments(warp, in, std::countr_zero(lanes));
    arguments.set(1, warp.cta().launch().heap->allocate(arguments.get<std::uint64_t>(0)));
  }
}

void execute_free(Warp& warp, const Instruction& in, Mask lanes) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    lock_heap(warp, in, lane);
    const auto address = Arguments(warp, in, lane).get<std::uint64_t>(0);
    if (address == 0 || warp.cta().launch().heap->deallocate(address)) continue;
    warp.report(Severity::error, FindingKind::invalid_free, in, lane, address, [&] {
      return fmt::format("free() of {:#x}, which malloc() did not return, or which was freed before", address);
    });
  }
}

constexpr std::array kBuiltins = {
    BuiltinFunction{"__assertfail", 0, 5, &execute_assertion_failure},
    BuiltinFunction{"vprintf", 1, 2, &execute_print},
    BuiltinFunction{"malloc", 1, 1, &execute_malloc, true},
    BuiltinFunction{"free", 0, 1, &execute_free, true},
};

}  // namespace

const BuiltinFunction* find_builtin(std::string_view name) {
  for (const BuiltinFunction& builtin : kBuiltins) {
    if (builtin.name == name) return &builtin;
  }
  return nullptr;
}

}  // namespace tilewright::emulator
