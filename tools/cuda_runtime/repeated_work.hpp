// RepeatedWork finds work that would only compute again what is in memory, as the loops of benchmarks do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/emulator/footprint.hpp"

namespace tilewright::cuda_runtime {

/// Keeps the last works that have run, one after the other. A sequence of them that has run twice, and that the second
/// time has left the same bytes in memory as the first time, leaves them each time.
class RepeatedWork {
 public:
  enum class Verdict : std::uint8_t {
    run,
    defer,   // it continues a sequence that would change nothing. Only if all of the sequence follows, it need not run
    finish,  // it ends such a sequence: this one, and those that were deferred, need not run
  };
  /// `key` is the same for work with the same kernel (or function), grid, arguments and stream.
  Verdict judge(const std::string& key);
  /// Work has run, which may be repeated: its results depend on nothing but its key and memory that only such work
  /// writes. `written` is normalised.
  void note(const std::string& key, emulator::ByteRanges written);
  /// Something else has happened.
  void forget();

 private:
  struct Entry {
    std::string key;
    emulator::ByteRanges written;
  };
  static constexpr std::size_t kLongestSequence = 32;

  /// Starts to follow the sequence that begins with the last work of this key, if there is one.
  void begin_second_run(const std::string& key);
  /// Compares what the sequence has left in memory with what it had left the first time.
  void end_second_run();
  /// Returns the bytes that the last `length_` works have written.
  emulator::ByteRanges written_by_last() const;

  enum class State : std::uint8_t { looking, running, leaving_out };
  State state_ = State::looking;
  std::vector<Entry> history_;
  std::size_t length_ = 0;  // of the sequence that runs for the second time, or is left out
  std::size_t next_ = 0;    // work of that sequence
  emulator::ByteRanges written_;
  std::uint64_t contents_ = 0;        // hash of the bytes of `written_` after the sequence has run for the first time
  std::vector<std::string> refused_;  // first keys of sequences that change memory each time
};

}  // namespace tilewright::cuda_runtime
