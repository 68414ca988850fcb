// RepeatedWork finds launches that only repeat earlier ones, as those in the loops of benchmarks do.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "tilewright/emulator/footprint.hpp"

namespace tilewright::cuda_runtime {

/// Work has the same key if it has the same kernel (or library function), grid and arguments.
class RepeatedWork {
 public:
  /// How often work with this key has run since other work wrote to memory that it accesses.
  std::uint64_t runs(const std::string& key) const;
  /// Work has run. An empty key is that of work which cannot be repeated: a copy, a fill, an allocation.
  void note(const std::string& key, emulator::Footprint footprint);

 private:
  struct Entry {
    emulator::Footprint footprint;
    std::uint64_t runs = 0;
  };
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace tilewright::cuda_runtime
