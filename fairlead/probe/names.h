// Names for symbols, from the names of the inputs they were found in.
#pragma once

#include <string>
#include <string_view>

namespace fairlead {

// "input_ids", 1 -> "sequence"; "past_key_values.3.key", 2 -> "past"; "x", 1 -> "x_dim_1".
[[nodiscard]] std::string symbol_name(std::string_view leaf, std::size_t axis, std::size_t rank);

// The name with layer numbers and a last .key or .value left out: what belongs together in every
// layer.
[[nodiscard]] std::string without_numbers(std::string_view leaf);

}  // namespace fairlead
