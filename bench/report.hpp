// What a run found: a table to read and JSON to keep.
#pragma once

#include <string>
#include <vector>

#include "outcome.hpp"

namespace tilewright::bench {

/// What the figures were measured on and how: without it they mean nothing.
struct Setting {
  std::string date;  // UTC, ISO 8601
  std::string command;
  std::string gpu;
  int sm_count = 0;
  std::int64_t l2_bytes = 0;
  std::string kernel_driver;  // "580.159.04"
  std::string cuda_driver;    // CUDA version that the driver supports
  std::string cublaslt;       // version and path; empty when it was not there
  std::string compiler;       // ours
};

void print_setting(const Setting& setting);
void print_outcome(const Outcome& outcome);
/// The classes and the suite, where a problem has a class; nothing else.
void print_scores(const std::vector<Outcome>& outcomes);
/// The epilogues, where a problem has one; nothing else.
void print_epilogue_scores(const std::vector<Outcome>& outcomes);

/// @throws Error when the file cannot be written
void write_json(const std::string& path, const Setting& setting, const std::vector<Outcome>& outcomes);

}  // namespace tilewright::bench
