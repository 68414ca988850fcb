// Any file is refused or imported in bounded time and memory, and no imported kernel names another source than its row.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tilewright/cache/bundle.hpp"
#include "tilewright/compile/file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace cache = tilewright::cache;
  static const auto* const folder = new tilewright::compile::ScopedFolder("/tmp");
  const std::string path = folder->path() + "/bundle.db";
  tilewright::compile::write_file(path, {reinterpret_cast<const char*>(data), size});
  cache::StoreOptions options;
  options.on_disk = false;
  cache::Store store(options);
  const auto report = cache::import_bundle(store, path);
  if (!report) return 0;
  for (const cache::Key& key : store.keys()) {
    if (store.find(key)->source != key.source.hex()) std::abort();
  }
  if (static_cast<std::size_t>(report->kernels) < store.keys().size()) std::abort();
  return 0;
}
