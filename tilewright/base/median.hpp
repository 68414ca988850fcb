// The median of measured values.
#pragma once

#include <vector>

namespace tilewright {

/// The middle value; for an even count, the mean of the two in the middle. @pre at least one value
double median(std::vector<double> values);

}  // namespace tilewright
