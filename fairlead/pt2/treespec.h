// The names of a program's inputs and outputs, from the trees that torch.export keeps of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fairlead::pt2 {

// Paths of the leaves of a call: `input_ids`, `past_key_values.0.key`, `y.0`. `parameters` are the
// names of forward's arguments. Throws Error(kParse) where the text is no tree.
[[nodiscard]] std::vector<std::string> input_names(std::string_view in_spec,
                                                   const std::vector<std::string>& parameters);
// Paths of the leaves of a result: `logits`, `0`; a bare tensor is `output`, a cache
// `past_key_values`.
[[nodiscard]] std::vector<std::string> output_paths(std::string_view out_spec);
// Every class that a tree names beside Python's own: "transformers.cache_utils.DynamicCache".
[[nodiscard]] std::vector<std::string> tree_classes(std::string_view spec);
// Names for the file: past_key_values is `present`, and no output is called like an input.
[[nodiscard]] std::vector<std::string> output_names(const std::vector<std::string>& paths,
                                                    const std::vector<std::string>& inputs);

}  // namespace fairlead::pt2
