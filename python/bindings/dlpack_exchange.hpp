// DLPack's C exchange API (since DLPack 1.3): a table of C functions that describe a framework's tensors without
// calling Python. A tensor type has it as the attribute __dlpack_c_exchange_api__, a capsule named
// "dlpack_exchange_api". The structs below repeat its ABI.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>

namespace tilewright::python {

/// DLTensor. It is valid until control returns to Python.
struct ExchangedTensor {
  void* data = nullptr;
  std::int32_t device_type = 0;
  std::int32_t device_id = 0;
  std::int32_t rank = 0;
  nanobind::dlpack::dtype dtype{};
  const std::int64_t* shape = nullptr;
  const std::int64_t* strides = nullptr;  // in elements; null: row-major without gaps
  std::uint64_t byte_offset = 0;
};
static_assert(sizeof(ExchangedTensor) == 48);

/// DLPackExchangeAPI.
struct ExchangeTable {
  std::uint32_t major = 0, minor = 0;
  const ExchangeTable* previous = nullptr;
  void* allocate = nullptr;
  void* managed_from_object = nullptr;
  void* managed_to_object = nullptr;
  int (*view)(void* object, ExchangedTensor* view) = nullptr;  // may be null
  int (*current_stream)(std::int32_t device_type, std::int32_t device_id, void** stream) = nullptr;
};

/// The table of the object's type, or null if it has none of a known version. Each type is looked up once.
const ExchangeTable* exchange_table(nanobind::handle object);

}  // namespace tilewright::python
