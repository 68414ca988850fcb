// DLPack's table of C functions (since 1.3), by which a framework shows its tensors without any call of Python: types
// have it as __dlpack_c_exchange_api__, a capsule of the name "dlpack_exchange_api". What is declared here is that ABI.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>

namespace tilewright::python {

/// DLTensor: a view, good until control goes back to Python.
struct ExchangedTensor {
  void* data = nullptr;
  std::int32_t device_type = 0;
  std::int32_t device_id = 0;
  std::int32_t rank = 0;
  nanobind::dlpack::dtype dtype{};
  const std::int64_t* shape = nullptr;
  const std::int64_t* strides = nullptr;  // elements; null: packed
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

/// Of the object's type; null where it has none that we understand. Looked up once a type.
const ExchangeTable* exchange_table(nanobind::handle object);

}  // namespace tilewright::python
