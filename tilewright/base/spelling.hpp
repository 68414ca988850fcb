// Finds the word that was meant by a misspelt one.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tilewright {

/// The fewest insertions, deletions, replacements and swaps of adjacent letters that turn one word into the other (the
/// optimal string alignment). Letters count as equal in upper and lower case.
std::size_t edits(std::string_view x, std::string_view y);

/// The word of `known` that the fewest edits() turn `word` into: at most one for three letters of `word`, but two for a
/// short word, at the most. Empty if there is none.
std::string closest(std::string_view word, std::span<const std::string> known);

/// ": did you mean 'relu'?", or an empty text if no known word is like `word`.
std::string suggestion(std::string_view word, std::span<const std::string> known);

}  // namespace tilewright
