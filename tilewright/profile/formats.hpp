// Other formats of a profile's JSON.
#pragma once

#include <string>
#include <string_view>

namespace tilewright::profile {

// `profile` is what to_json() returned. @throws InvalidArgument for another text

/// A table for people: a line for each kernel, with the problem above it.
std::string to_table(std::string_view profile);
/// A line for each kernel, with a header. Unknown numbers are empty.
std::string to_csv(std::string_view profile);
/// A test suite with a test case for each kernel, as CI services read it. Wrong results and failures are failures,
/// what did not run is skipped.
std::string to_junit(std::string_view profile);
/// The report: one HTML file, which needs no other file and no network.
std::string to_html(std::string_view profile);

}  // namespace tilewright::profile
