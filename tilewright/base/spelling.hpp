// Finds the word that was meant by a misspelt one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tilewright {

/// The word of `known` that is most like `word`: the fewest insertions, deletions, replacements and swaps of adjacent
/// letters turn one into the other, and at most one for three letters of `word`, but two for a short word, at the most.
/// Letters count as equal in upper and lower case. Empty if there is none.
std::string closest(std::string_view word, std::span<const std::string> known);

/// ": did you mean 'relu'?", or an empty text if no known word is like `word`.
std::string suggestion(std::string_view word, std::span<const std::string> known);

}  // namespace tilewright
