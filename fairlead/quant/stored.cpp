// What the numbers of a stored row stand for.
#include "fairlead/quant/stored.h"

namespace fairlead::quant {

StoredRow::StoredRow(const StoredMatrix& matrix)
    : integers(static_cast<std::size_t>(matrix.columns)),
      zeros(static_cast<std::size_t>(matrix.columns / matrix.block)),
      scales(zeros.size()),
      minima(zeros.size()) {}

// Of the product and the sum one is exact in every format, so that it does not matter whether a
// compiler makes one operation of both.
void StoredRow::values(const StoredMatrix& matrix, float* out) const {
  const auto block = static_cast<std::size_t>(matrix.block);
  for (std::size_t b = 0; b < scales.size(); ++b) {
    const int zero = zeros[b];
    for (std::size_t k = b * block; k < (b + 1) * block; ++k) {
      const float product = scales[b] * static_cast<float>(integers[k] - zero);
      out[k] = matrix.format->minimum ? product + minima[b] : product;
    }
  }
}

}  // namespace fairlead::quant
