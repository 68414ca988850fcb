#include "tools/cuda_runtime/host_watch.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <utility>

#include "tilewright/base/rounding.hpp"
#include "tilewright/base/text.hpp"

namespace tilewright::cuda_runtime {
namespace {

const std::size_t kPage = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
constexpr std::size_t kMostPagesAround = std::size_t{64} << 20;

/// The part of an allocation's state that the signal handler reads. The slot of a freed allocation is used again.
struct Slot {
  std::atomic<std::uint64_t> begin = 0, end = 0;                      // the allocation's pages
  std::atomic<std::uint64_t> protected_begin = 0, protected_end = 0;  // of these
};

/// The access that the signal handler has caught.
struct Fault {
  std::atomic<bool> is_complete = false;
  std::uint64_t address = 0;
  bool is_write = false;
  int frame_count = 0;
  std::array<void*, 24> frames{};  // the first ones are the handler's
};

std::array<Slot, 1024> slots;
std::array<Fault, 64> faults;
std::atomic<std::size_t> fault_count = 0;
/// The program's actions: the one before the first install_handler(), and the one before the last.
struct sigaction first_action {
}, last_action{};
std::atomic<bool> is_installed = false;
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "a signal handler may only use lock-free atomics");

void note_fault(std::uint64_t address, const ucontext_t& context) {
  const std::size_t number = fault_count.fetch_add(1);
  if (number >= faults.size()) return;
  Fault& fault = faults[number];
  fault.address = address;
#if defined(__x86_64__)
  constexpr long long kWriteBit = 2;
  fault.is_write = (context.uc_mcontext.gregs[REG_ERR] & kWriteBit) != 0;
#else
  static_cast<void>(context);
#endif
  // install_handler() has called it before, so that it does not load a library or allocate memory here.
  fault.frame_count = backtrace(fault.frames.data(), static_cast<int>(fault.frames.size()));
  fault.is_complete.store(true);
}

/// Does what the program does at a SIGSEGV without the watch.
void forward_fault(int signal, siginfo_t* info, void* context) {
  // A handler of the program that was installed after this one may call this one, the action before its own. Then it is
  // the turn of the first action. The frame tells such a call from the next signal after a handler that does not
  // return.
  thread_local const void *forwarded = nullptr, *frame_of_forwarded = nullptr;
  const void* const frame = __builtin_frame_address(0);
  const bool is_called_back = forwarded == info && frame < frame_of_forwarded;
  const struct sigaction& action = is_called_back ? first_action : last_action;
  if (!is_called_back) {
    forwarded = info;
    frame_of_forwarded = frame;
  }
  if ((action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction != nullptr) {
    action.sa_sigaction(signal, info, context);
  } else if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) {
    action.sa_handler(signal);
  } else {
    struct sigaction by_default {};
    by_default.sa_handler = SIG_DFL;
    sigaction(signal, &by_default, nullptr);  // the instruction executes again, and ends the program
  }
}

/// Makes the page accessible, and returns to the instruction, which executes again.
void handle_fault(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<std::uint64_t>(info->si_addr);
  thread_local std::uint64_t last = 0;
  thread_local int repeats = 0;
  for (Slot& slot : slots) {
    if (address < slot.begin.load() || address >= slot.end.load()) continue;
    const std::uint64_t begin = slot.protected_begin.load(), end = slot.protected_end.load();
    if (begin <= address && address < end) {
      mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_READ | PROT_WRITE);
      slot.protected_end.store(0);
      note_fault(address, *static_cast<const ucontext_t*>(context));
      return;
    }
    // Another thread has made the page accessible meanwhile.
    repeats = address == last ? repeats + 1 : 0;
    last = address;
    constexpr int kMostRepeats = 100;
    if (repeats < kMostRepeats) return;
  }
  forward_fault(signal, info, context);
}

/// The program may have installed a handler of its own, which then gets the signals of other addresses.
void install_handler() {
  struct sigaction now {};
  if (sigaction(SIGSEGV, nullptr, &now) != 0) return;
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == handle_fault) return;
  std::array<void*, 4> frames{};
  static_cast<void>(backtrace(frames.data(), static_cast<int>(frames.size())));
  struct sigaction action {};
  action.sa_sigaction = handle_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  last_action = now;
  if (!is_installed.exchange(true)) first_action = now;
  sigaction(SIGSEGV, &action, nullptr);
}

/// "program+0x1234": the innermost function of the program itself, or else of the library that made the access.
std::string location_of(const Fault& fault) {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  Dl_info own{};
  dladdr(reinterpret_cast<const void*>(&location_of), &own);
  std::string location;
  bool is_after_handler = false;
  for (int i = 0; i < fault.frame_count; ++i) {
    Dl_info info{};
    void* const at = fault.frames[static_cast<std::size_t>(i)];
    if (dladdr(at, &info) == 0 || info.dli_fname == nullptr) continue;
    const std::uint64_t offset = reinterpret_cast<std::uint64_t>(at) - reinterpret_cast<std::uint64_t>(info.dli_fbase);
    if (info.dli_fbase == own.dli_fbase) continue;
    const std::filesystem::path file(info.dli_fname);
    if (!std::exchange(is_after_handler, true)) continue;  // libc's return from signal handlers
    const std::string here = fmt::format("{}+{:#x}", printable(file.filename().string(), 200), offset);
    if (location.empty()) location = here;
    if (std::filesystem::equivalent(file, program, error)) return here;
  }
  return location.empty() ? "an unknown location" : location;
}

}  // namespace

std::byte* HostWatch::allocate(std::size_t bytes) {
  const std::size_t size = round_up(std::max<std::size_t>(bytes, 1), kPage);
  const std::size_t around = std::min(size, kMostPagesAround);
  void* const mapping =
      mmap(nullptr, size + 2 * around, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  auto* const memory = static_cast<std::byte*>(mapping) + around;
  const auto begin = reinterpret_cast<std::uint64_t>(memory);
  const auto unused = std::ranges::find_if(slots, [](const Slot& slot) { return slot.end.load() == 0; });
  if (unused != slots.end()) {
    unused->begin.store(begin);
    unused->end.store(begin + size);
  }
  memory_[begin] = {
      bytes, static_cast<std::byte*>(mapping), size + 2 * around, static_cast<std::size_t>(unused - slots.begin()), {},
      false};
  return memory;
}

bool HostWatch::free(std::byte* address) {
  const auto found = memory_.find(reinterpret_cast<std::uint64_t>(address));
  if (found == memory_.end()) return false;
  if (found->second.slot < slots.size()) {
    Slot& slot = slots[found->second.slot];
    slot.protected_end.store(0);
    slot.end.store(0);
  }
  munmap(found->second.mapping, found->second.mapped_bytes);
  memory_.erase(found);
  return true;
}

std::vector<HostAccess> HostWatch::unprotect() {
  std::vector<HostAccess> accesses;
  if (!is_protected_) return accesses;
  is_protected_ = false;
  for (auto& [begin, memory] : memory_) {
    if (memory.slot >= slots.size()) continue;
    Slot& slot = slots[memory.slot];
    const std::uint64_t low = slot.protected_begin.load(), high = slot.protected_end.load();
    if (low >= high) continue;
    mprotect(reinterpret_cast<void*>(low), high - low, PROT_READ | PROT_WRITE);
    slot.protected_end.store(0);
  }
  const std::size_t count = std::min(fault_count.load(), faults.size());
  for (std::size_t i = 0; i < count; ++i) {
    if (!faults[i].is_complete.load()) continue;
    const std::uint64_t address = faults[i].address;
    const auto after = memory_.upper_bound(address);
    if (after == memory_.begin()) continue;
    Memory& memory = std::prev(after)->second;
    memory.is_reported = true;
    accesses.push_back({address, faults[i].is_write, location_of(faults[i]), memory.use});
    faults[i].is_complete.store(false);
  }
  fault_count.store(0);
  return accesses;
}

void HostWatch::protect(const StreamOrder& order) {
  if (memory_.empty()) return;
  const bool is_changed = std::exchange(order_version_, order.version()) != order.version();
  for (auto& [begin, memory] : memory_) {
    if (memory.slot >= slots.size()) continue;
    if (is_changed) {
      memory.use = order.pending_use(begin, begin + memory.bytes);
      memory.is_reported = false;
    }
    if (memory.use.begin < memory.use.end && !memory.is_reported) protect(begin, memory, memory.use);
  }
}

void HostWatch::protect(std::uint64_t begin, Memory& memory, const PendingUse& use) {
  // Only pages of which the work uses all bytes, so that every access of host code to them is unordered.
  const std::uint64_t low = round_up(use.begin, kPage);
  const std::uint64_t end = begin + memory.bytes;
  const std::uint64_t high = use.end == end ? round_up(end, kPage) : use.end / kPage * kPage;
  if (low >= high) return;
  install_handler();
  Slot& slot = slots[memory.slot];
  slot.protected_begin.store(low);
  slot.protected_end.store(high);
  mprotect(reinterpret_cast<void*>(low), high - low, use.is_write ? PROT_NONE : PROT_READ);
  is_protected_ = true;
}

}  // namespace tilewright::cuda_runtime
