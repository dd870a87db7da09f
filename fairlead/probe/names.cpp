// A table of the names that inputs have in practice.
#include "fairlead/probe/names.h"

#include <cctype>

namespace fairlead {
namespace {

struct Row {
  std::string_view stem;  // the leaf's name starts with it
  std::size_t axis;
  std::size_t rank;  // 0: any
  std::string_view name;
};

constexpr Row kRows[] = {
    {"past_key_values", 2, 4, "past"},
    {"decoder_input_ids", 1, 2, "decoder_sequence"},
    {"decoder_attention_mask", 1, 2, "decoder_sequence"},
    {"decoder_inputs_embeds", 1, 3, "decoder_sequence"},
    {"decoder_position_ids", 1, 2, "decoder_sequence"},
    {"encoder_outputs", 1, 3, "encoder_sequence"},
    {"encoder_hidden_states", 1, 3, "encoder_sequence"},
    {"encoder_attention_mask", 1, 2, "encoder_sequence"},
    {"input_ids", 1, 2, "sequence"},
    {"inputs_embeds", 1, 3, "sequence"},
    {"attention_mask", 1, 2, "sequence"},
    {"position_ids", 1, 2, "sequence"},
    {"token_type_ids", 1, 2, "sequence"},
    {"hidden_states", 1, 3, "sequence"},
    {"cache_position", 0, 1, "sequence"},
    {"pixel_values", 2, 4, "height"},
    {"pixel_values", 3, 4, "width"},
    {"pixel_mask", 1, 3, "height"},
    {"pixel_mask", 2, 3, "width"},
    {"input_values", 1, 2, "samples"},
    {"input_features", 2, 3, "frames"},
    {"input_features", 1, 3, "features"},
};

}  // namespace

std::string symbol_name(std::string_view leaf, std::size_t axis, std::size_t rank) {
  // The cross-attention part of an encoder-decoder cache.
  if (leaf.starts_with("past_key_values") && leaf.find(".encoder.") != std::string_view::npos &&
      axis == 2) {
    return "encoder_sequence";
  }
  for (const Row& row : kRows) {
    if (leaf.starts_with(row.stem) && row.axis == axis && (row.rank == 0 || row.rank == rank)) {
      return std::string(row.name);
    }
  }
  if (axis == 0 && rank > 1) return "batch";
  std::string name(leaf);
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0)
    name = "input_" + name;
  return name + "_dim_" + std::to_string(axis);
}

std::string without_numbers(std::string_view leaf) {
  // Keys and values of a cache belong together.
  for (const std::string_view last : {".key", ".value"}) {
    if (leaf.ends_with(last)) leaf.remove_suffix(last.size());
  }
  std::string text;
  for (const char c : leaf) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) {
      text += c;
    } else if (text.empty() || text.back() != '#') {
      text += '#';
    }
  }
  return text;
}

}  // namespace fairlead
