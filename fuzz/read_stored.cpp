// Fuzz target: no bytes may crash the readers of quantised matrices. The first six say what the
// rest is taken for: a format, rows, columns, a group, how scales are stored, and the share of
// them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fairlead/quant/keep.h"
#include "fuzz/fuzz_impl.h"

namespace {

using namespace fairlead;

void use(const quant::StoredMatrix& matrix) {
  const quant::StoredRows rows({matrix}, 1);
  quant::StoredRow row(matrix);
  std::vector<float> values(static_cast<std::size_t>(matrix.columns));
  for (std::int64_t r = 0; r < matrix.rows; ++r) {
    matrix.format->take(matrix, r, row);
    row.values(matrix, values.data());
    if (rows.find(values).empty()) std::abort();  // what is stored is found
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 6) return 0;
  const std::span<const std::byte> rest(reinterpret_cast<const std::byte*>(data) + 6, size - 6);
  const auto of_gguf = quant::gguf_formats();
  const auto of_groups = quant::group_formats();
  const std::size_t which = data[0] % (of_gguf.size() + of_groups.size());
  const std::int64_t rows = data[1], columns = 8 * data[2], group = 8 * data[3];
  return fuzz::no_fault([&] {
    if (which < of_gguf.size()) {
      return use(quant::gguf_matrix("w", of_gguf[which].name, rows, columns, rest));
    }
    constexpr Dtype kTypes[] = {Dtype::kFloat16, Dtype::kBfloat16, Dtype::kFloat32};
    // Scales first, then zero points, as many as would fit; integers are what is left.
    const Dtype dtype = kTypes[data[4] % 3];
    const std::size_t groups = group == 0 ? 0 : static_cast<std::size_t>(rows * columns / group);
    const std::size_t scales = std::min(rest.size(), groups * (dtype == Dtype::kFloat32 ? 4 : 2));
    const auto& format = of_groups[which - of_gguf.size()];
    const std::size_t zeros =
        data[5] % 2 == 0
            ? 0
            : std::min(rest.size() - scales, groups * static_cast<std::size_t>(format.bits) / 8);
    use(quant::grouped_matrix("w", format.name, rows, columns, group, rest.subspan(scales + zeros),
                              {rest.first(scales), dtype}, rest.subspan(scales, zeros)));
  });
}
