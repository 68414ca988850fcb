// A .npy header or file is refused with a reason or read; a matrix that was read survives a round trip.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tilewright/base/error.hpp"
#include "tools/cli/npy.hpp"

namespace {

using namespace tilewright;

/// A file in memory, which has a path as long as the object lives.
class MemoryFile {
 public:
  MemoryFile(const void* bytes, std::size_t size) : fd_(::memfd_create("npy", 0)) {
    if (fd_ < 0 || ::write(fd_, bytes, size) != static_cast<ssize_t>(size)) std::abort();
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(fd_); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

void check_file(const std::uint8_t* data, std::size_t size, bool takes_vectors) {
  const MemoryFile file(data, size);
  cli::NpyMatrix matrix;
  try {
    matrix = cli::read_npy(file.path(), takes_vectors);
  } catch (const InvalidArgument& refused) {
    if (*refused.what() == '\0') std::abort();
    return;
  }
  if (matrix.data.size() > size || matrix.tensor().rows() < 0) std::abort();
  const auto bytes = cli::npy_bytes(matrix);
  const MemoryFile copy(bytes.data(), bytes.size());
  const cli::NpyMatrix again = cli::read_npy(copy.path(), false);
  if (again.dtype != matrix.dtype || again.shape != matrix.shape || again.data != matrix.data) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const bool takes_vectors : {false, true}) {
    const auto header = cli::parse_npy_header({reinterpret_cast<const std::byte*>(data), size}, takes_vectors);
    if (!header && header.reason().empty()) std::abort();
    if (header && header->data_offset > static_cast<std::int64_t>(size)) std::abort();
    check_file(data, size, takes_vectors);
  }
  return 0;
}
