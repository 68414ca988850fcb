// The report of a run: tables for people, and a JSON file.
#pragma once

#include <string>
#include <vector>

#include "outcome.hpp"

namespace tilewright::bench {

/// The machine and the software versions with which the figures were measured.
struct Setting {
  std::string date;  // UTC, ISO 8601
  std::string command;
  std::string gpu;
  int sm_count = 0;
  std::int64_t l2_bytes = 0;
  std::string kernel_driver;  // "580.159.04"
  std::string cuda_driver;    // CUDA version that the driver supports
  std::string cublaslt;       // version and path; empty if it was not found
  std::string compiler;       // the compiler that Tilewright uses
};

void print_setting(const Setting& setting);
void print_outcome(const Outcome& outcome);
/// Prints the scores of the classes and of the suite. Prints nothing if no problem has a class.
void print_scores(const std::vector<Outcome>& outcomes);
/// Prints the scores of the epilogues. Prints nothing if no problem has an epilogue.
void print_epilogue_scores(const std::vector<Outcome>& outcomes);

/// Prints the scores of random problems (random_score.hpp), the ten smallest ratios, and the problems without a ratio.
void print_random_scores(const std::vector<Outcome>& outcomes);

/// @param as_random also writes the scores of random problems, as the member "random"
/// @throws Error if the file cannot be written
void write_json(const std::string& path, const Setting& setting, const std::vector<Outcome>& outcomes,
                bool as_random = false);

}  // namespace tilewright::bench
