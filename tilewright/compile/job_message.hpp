// The format of the messages between the library and its compiler process: little-endian 64-bit integers, and texts
// preceded by their length. This file is compiled into both, so it depends on nothing but the standard library.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace tilewright::compile {

/// Limit on a message between the two processes. A larger size is damage.
inline constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{1} << 30;

/// The first number of a job's message.
enum class JobKind : std::uint64_t { nvrtc = 1, mlir = 2 };

class Encoder {
 public:
  Encoder& number(std::uint64_t value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Encoder& text(std::string_view value) {
    number(value.size());
    bytes_.append(value);
    return *this;
  }
  std::string take() && { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// After the first field that exceeds the remaining bytes, all fields read as empty and is_complete() is false.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    const std::string_view digits = take(sizeof value);
    if (!digits.empty()) std::memcpy(&value, digits.data(), sizeof value);
    return value;
  }
  std::string text() { return std::string(take(number())); }
  bool failed() const { return failed_; }
  bool is_complete() const { return !failed_ && bytes_.empty(); }

 private:
  std::string_view take(std::uint64_t size) {
    failed_ = failed_ || size > bytes_.size();
    if (failed_) return {};
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }

  std::string_view bytes_;
  bool failed_ = false;
};

}  // namespace tilewright::compile
