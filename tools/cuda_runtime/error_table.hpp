// Names and texts of error codes.
#pragma once

namespace tilewright::cuda_runtime {

struct ErrorRow {
  int code = 0;
  const char* runtime_name = nullptr;
  const char* driver_name = nullptr;  // null where the driver has no such code
  const char* text = nullptr;
};

/// The row of "unrecognized error code" for codes that are not in the table.
const ErrorRow& error_row(int code);

}  // namespace tilewright::cuda_runtime
