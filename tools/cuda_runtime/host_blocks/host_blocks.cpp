// A library to be preloaded, whose malloc() and relatives are those of libc and remember the blocks.
#include "tools/cuda_runtime/host_blocks/host_blocks.hpp"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <map>
#include <new>

#define TILEWRIGHT_EXPORT extern "C" __attribute__((visibility("default")))

// The functions of libc under their other names.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* pointer, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
void __libc_free(void* pointer);
}

namespace {

/// The maps' own memory must not be remembered.
template <class T>
struct LibcAllocator {
  using value_type = T;
  LibcAllocator() = default;
  template <class U>
  explicit LibcAllocator(const LibcAllocator<U>&) {}
  T* allocate(std::size_t count) {
    void* const memory = __libc_malloc(count * sizeof(T));
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* pointer, std::size_t) { __libc_free(pointer); }
  bool operator==(const LibcAllocator&) const { return true; }
};

using Blocks =
    std::map<std::uint64_t, std::uint64_t, std::less<>, LibcAllocator<std::pair<const std::uint64_t, std::uint64_t>>>;

/// Some of the blocks. All bytes are zeros at first, as other libraries call malloc() before this one is initialised,
/// and there is no destructor, as they call free() after this one's end.
struct Shard {
  std::atomic_flag lock;
  bool is_made = false;
  alignas(Blocks) std::byte storage[sizeof(Blocks)];

  Blocks& blocks() {
    if (!is_made) new (storage) Blocks;
    is_made = true;
    return *std::launder(reinterpret_cast<Blocks*>(storage));
  }
};

/// Blocks are in the shard of the address range of this size that they begin in; those that are as large are in
/// `large`.
constexpr std::uint64_t kRange = std::uint64_t{1} << 20;
constinit std::array<Shard, 64> shards{};
constinit Shard large{};

Shard& shard_of(std::uint64_t address) { return shards[address / kRange % shards.size()]; }

class Lock {
 public:
  explicit Lock(Shard& shard) : shard_(shard) {
    while (shard_.lock.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~Lock() { shard_.lock.clear(std::memory_order_release); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Shard& shard_;
};

/// Whether remember() leaves out what this thread allocates. The TLS model is initial-exec, because the first access to
/// a variable of another model may call malloc().
[[gnu::tls_model("initial-exec")]] constinit thread_local bool ignores_blocks = false;

void* remember(void* pointer, std::size_t bytes) {
  if (pointer == nullptr || ignores_blocks) return pointer;
  const auto begin = reinterpret_cast<std::uint64_t>(pointer);
  Shard& shard = bytes < kRange ? shard_of(begin) : large;
  const Lock lock(shard);
  try {
    shard.blocks()[begin] = bytes;
  } catch (const std::bad_alloc&) {
    // The block is not known then.
  }
  return pointer;
}

/// Returns the size of the block; 0 if it is not known.
std::uint64_t forget(void* pointer) {
  const auto begin = reinterpret_cast<std::uint64_t>(pointer);
  for (Shard* const shard : {&shard_of(begin), &large}) {
    const Lock lock(*shard);
    Blocks& blocks = shard->blocks();
    const auto found = blocks.find(begin);
    if (found == blocks.end()) continue;
    const std::uint64_t bytes = found->second;
    blocks.erase(found);
    return bytes;
  }
  return 0;
}

bool find_in(Shard& shard, std::uint64_t address, std::uint64_t* begin, std::uint64_t* bytes) {
  const Lock lock(shard);
  const Blocks& blocks = shard.blocks();
  const auto after = blocks.upper_bound(address);
  if (after == blocks.begin()) return false;
  const auto& [low, size] = *std::prev(after);
  if (address - low >= size) return false;
  *begin = low;
  *bytes = size;
  return true;
}

/// A child must not get a lock that a thread of its parent has held.
void for_all_shards(void (*act)(Shard&)) {
  for (Shard& shard : shards) act(shard);
  act(large);
}
void lock_all() {
  for_all_shards([](Shard& shard) {
    while (shard.lock.test_and_set(std::memory_order_acquire)) {
    }
  });
}
void unlock_all() {
  for_all_shards([](Shard& shard) { shard.lock.clear(std::memory_order_release); });
}
[[gnu::constructor]] void register_for_forks() { pthread_atfork(lock_all, unlock_all, unlock_all); }

bool is_power_of_two(std::size_t number) { return number != 0 && (number & (number - 1)) == 0; }

}  // namespace

TILEWRIGHT_EXPORT bool tilewright_find_host_block(std::uint64_t address, std::uint64_t* begin, std::uint64_t* bytes) {
  return find_in(shard_of(address), address, begin, bytes) || find_in(large, address, begin, bytes) ||
         find_in(shard_of(address - kRange), address, begin, bytes);
}

TILEWRIGHT_EXPORT void tilewright_ignore_host_blocks(bool ignore) { ignores_blocks = ignore; }

TILEWRIGHT_EXPORT void* malloc(std::size_t bytes) { return remember(__libc_malloc(bytes), bytes); }
TILEWRIGHT_EXPORT void* calloc(std::size_t count, std::size_t bytes) {
  return remember(__libc_calloc(count, bytes), count * bytes);
}
TILEWRIGHT_EXPORT void free(void* pointer) {
  if (pointer == nullptr) return;
  forget(pointer);
  __libc_free(pointer);
}
TILEWRIGHT_EXPORT void* realloc(void* pointer, std::size_t bytes) {
  const std::uint64_t before = pointer == nullptr ? 0 : forget(pointer);
  void* const moved = __libc_realloc(pointer, bytes);
  if (moved != nullptr) return remember(moved, bytes);
  if (bytes != 0 && before != 0) remember(pointer, before);  // it is still there
  return moved;
}
TILEWRIGHT_EXPORT void* memalign(std::size_t alignment, std::size_t bytes) {
  return remember(__libc_memalign(alignment, bytes), bytes);
}
TILEWRIGHT_EXPORT void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }
TILEWRIGHT_EXPORT int posix_memalign(void** pointer, std::size_t alignment, std::size_t bytes) {
  if (!is_power_of_two(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  void* const memory = memalign(alignment, bytes);
  if (memory == nullptr) return ENOMEM;
  *pointer = memory;
  return 0;
}
