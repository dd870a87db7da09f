// What the numbers of a stored row stand for.
#include "fairlead/quant/stored.h"

#include <algorithm>

#include "fairlead/base/error.h"

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

void DecodedMatrix::decode(std::int64_t first, std::span<float> out) const {
  FAIRLEAD_CHECK(first >= 0 && static_cast<std::int64_t>(out.size()) <= count() - first,
                 "elements beyond the matrix");
  StoredRow row(matrix_);
  std::vector<float> values(static_cast<std::size_t>(matrix_.columns));
  for (std::size_t done = 0; done < out.size();) {
    const std::int64_t at = first + static_cast<std::int64_t>(done);
    const auto column = static_cast<std::size_t>(at % matrix_.columns);
    matrix_.format->take(matrix_, at / matrix_.columns, row);
    row.values(matrix_, values.data());
    const std::size_t some = std::min(out.size() - done, values.size() - column);
    std::copy_n(values.data() + column, some, out.data() + done);
    done += some;
  }
}

}  // namespace fairlead::quant
