// Weights of a model that a quantised checkpoint holds already: stored in the file as they are
// there.
//
// A matrix of floats is kept where every row of it is, bit for bit, a row of the checkpoint: so it
// does not matter what names they have, which rows changed places, and which matrices were put
// together. What the integers, scales and offsets of the file stand for is then the same numbers,
// bit for bit.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fairlead/onnx/model.h"
#include "fairlead/quant/stored.h"

namespace fairlead::quant {

// Rows of a checkpoint, found by what they stand for.
class StoredRows {
 public:
  StoredRows(std::vector<StoredMatrix> matrices, unsigned threads);

  struct Place {
    std::uint32_t matrix = 0;
    std::uint32_t row = 0;
  };
  // One row of every matrix that has these numbers as a row.
  [[nodiscard]] std::vector<Place> find(std::span<const float> row) const;
  [[nodiscard]] const std::vector<StoredMatrix>& matrices() const { return matrices_; }

 private:
  std::vector<StoredMatrix> matrices_;
  std::unordered_multimap<std::uint64_t, Place> places_;  // by the hash of the numbers
};

struct KeptReport {
  std::vector<std::pair<std::string, std::string>> weights;  // name, format
  std::vector<std::pair<std::string, std::string>> floats;   // weights that are not, and why
  std::vector<std::string> unread;  // matrices of the checkpoint that no kept weight has
  bool mixed = false;               // a matrix was put together from different formats
  std::int64_t bytes_before = 0, bytes_after = 0;
};

// Throws Error(kInvalidInput) where no weight of the model is in the checkpoint.
[[nodiscard]] KeptReport keep(onnx::Model& model, const StoredRows& stored, bool int8_activations,
                              unsigned threads);

}  // namespace fairlead::quant
