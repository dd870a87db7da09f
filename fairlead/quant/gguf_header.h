// The head of a GGUF file, walked before others read it: what it says of itself fits into it.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace fairlead::quant {

// Settings and the table of tensors: every count, text and list lies within the bytes. Throws
// Error(kInvalidInput) where one does not; `name` is the file, for the message. Those who read it
// with Python's numbers would go through a list of 2 to the 62 that is not there.
void check_gguf_header(std::span<const std::byte> bytes, const std::string& name);

}  // namespace fairlead::quant
