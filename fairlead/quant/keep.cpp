// 1. Every row of the checkpoint is hashed by what it stands for.
// 2. Each row of a weight is looked for, and compared in full.
// 3. The rows of a weight that was found are repacked. Where that would need a zero point or a
//    minimum that the kernel has not, in this order:
//      a. integers are moved so that their zero is the middle, which is the kernel's;
//      b. the minimum takes it in: scale * q + m = scale * (q - 8) + (m + 8 * scale), where that
//         sum is exact in every block;
//      c. zero points are stored.
#include "fairlead/quant/keep.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <map>
#include <set>
#include <unordered_set>

#include "fairlead/base/error.h"
#include "fairlead/base/half.h"
#include "fairlead/base/parallel.h"
#include "fairlead/files/content_hash.h"
#include "fairlead/quant/matrices.h"

namespace fairlead::quant {
namespace {

using Place = StoredRows::Place;

std::uint64_t hash_of(std::span<const float> row) {
  ContentHash hash;
  hash.update(std::as_bytes(row));
  return hash.value();
}

bool is_half(float value) {
  return std::bit_cast<std::uint32_t>(float16_to_float(half_from_float(value))) ==
         std::bit_cast<std::uint32_t>(value);
}

// How zero points are dealt with, for all rows of a weight.
enum class Zeros {
  kMoved,   // integers so that the middle is zero
  kOffset,  // in the minimum
  kStored,
};

class Repacker {
 public:
  Repacker(const StoredRows& stored, std::vector<Place> places)
      : stored_(stored), places_(std::move(places)), first_(matrix_of(places_[0])) {}

  [[nodiscard]] Format format() const { return {first_.format->bits, first_.block, true, false}; }

  [[nodiscard]] Packed packed(unsigned threads) {
    look(threads);
    const StoredFormat& format = *first_.format;
    Packed packed;
    packed.rows = static_cast<std::int64_t>(places_.size());
    packed.columns = first_.columns;
    packed.blocks = packed.columns / first_.block;
    const auto bytes = [](std::int64_t count) {
      return std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(count));
    };
    const std::int64_t floats = packed.rows * packed.blocks * std::int64_t{sizeof(float)};
    packed.values = bytes(packed.rows * packed.columns * format.bits / 8);
    packed.scales = bytes(floats);
    packed.scales_fit_half = halves_;
    if (format.minimum) packed.offsets = bytes(floats);
    if (zeros_ == Zeros::kStored) {
      packed.zero_points = bytes(packed.rows * ((packed.blocks * format.bits + 7) / 8));
    }
    in_threads(threads, packed.rows, [&](std::int64_t from, std::int64_t to, std::size_t) {
      StoredRow row(first_);
      for (std::int64_t r = from; r < to; ++r) {
        take(r, row);
        put(packed, r, row);
      }
    });
    return packed;
  }

 private:
  [[nodiscard]] const StoredMatrix& matrix_of(Place place) const {
    return stored_.matrices()[place.matrix];
  }

  void take(std::int64_t r, StoredRow& row) const {
    const Place place = places_[static_cast<std::size_t>(r)];
    const StoredMatrix& matrix = matrix_of(place);
    matrix.format->take(matrix, place.row, row);
  }

  // Which of the three ways all rows allow, and whether scales are halves.
  void look(unsigned threads) {
    const StoredFormat& format = *first_.format;
    const int middle = 1 << (format.bits - 1), top = 2 * middle - 1;
    std::atomic<bool> moved = true, offset = format.minimum, halves = true;
    const auto count = static_cast<std::int64_t>(places_.size());
    in_threads(threads, count, [&](std::int64_t from, std::int64_t to, std::size_t) {
      StoredRow row(first_);
      for (std::int64_t r = from; r < to; ++r) {
        take(r, row);
        for (std::size_t b = 0; b < row.scales.size(); ++b) {
          const double sum = offset_of(row, b, middle);
          if (row.zeros[b] > middle || format.most + middle - row.zeros[b] > top) moved = false;
          if (sum != static_cast<double>(static_cast<float>(sum))) offset = false;
          if (!is_half(row.scales[b])) halves = false;
        }
      }
    });
    zeros_ = moved ? Zeros::kMoved : offset ? Zeros::kOffset : Zeros::kStored;
    halves_ = halves;
  }

  // Both terms have few digits: exact unless their sizes are very far apart.
  static double offset_of(const StoredRow& row, std::size_t b, int middle) {
    return static_cast<double>(row.minima[b]) +
           static_cast<double>(row.scales[b]) * (middle - row.zeros[b]);
  }

  void put(const Packed& packed, std::int64_t r, const StoredRow& row) const {
    const int bits = first_.format->bits, middle = 1 << (bits - 1);
    const std::int64_t place = r * packed.blocks;
    const std::size_t bytes = row.scales.size() * sizeof(float);
    std::memcpy(packed.scales->data() + place * std::int64_t{sizeof(float)}, row.scales.data(),
                bytes);
    if (packed.offsets) {
      std::vector<float> offsets = row.minima;
      for (std::size_t b = 0; b < offsets.size() && zeros_ == Zeros::kOffset; ++b) {
        offsets[b] = static_cast<float>(offset_of(row, b, middle));
      }
      std::memcpy(packed.offsets->data() + place * std::int64_t{sizeof(float)}, offsets.data(),
                  bytes);
    }
    std::byte* values = packed.values->data() + r * packed.columns * bits / 8;
    for (std::size_t k = 0; k < row.integers.size(); ++k) {
      const int zero = row.zeros[k / static_cast<std::size_t>(first_.block)];
      put_integer(values, k, row.integers[k] + (zeros_ == Zeros::kMoved ? middle - zero : 0), bits);
    }
    if (!packed.zero_points) return;
    std::byte* zeros = packed.zero_points->data() + r * ((packed.blocks * bits + 7) / 8);
    for (std::size_t b = 0; b < row.zeros.size(); ++b) put_integer(zeros, b, row.zeros[b], bits);
  }

  const StoredRows& stored_;
  std::vector<Place> places_;
  const StoredMatrix& first_;
  Zeros zeros_ = Zeros::kMoved;
  bool halves_ = false;
};

class Keeper {
 public:
  Keeper(onnx::Model& model, const StoredRows& stored, bool int8_activations, unsigned threads)
      : model_(model),
        matrices_(model),
        stored_(stored),
        int8_activations_(int8_activations),
        threads_(threads) {}

  KeptReport run() {
    for (auto& [tensor, weight] : matrices_.weights()) take(tensor, weight);
    if (report_.weights.empty()) {
      throw Error(ErrorCode::kInvalidInput,
                  "[keep] Expected a model that multiplies by weights of its checkpoint, got none "
                  "that is stored there" +
                      (report_.floats.empty()
                           ? std::string(".")
                           : ": " + report_.floats.front().first + " stays float32 because " +
                                 report_.floats.front().second + ".") +
                      " Export it without keep, or with quantize.");
    }
    for (std::size_t k = 0; k < stored_.matrices().size(); ++k) {
      if (!used_.contains(k)) report_.unread.push_back(stored_.matrices()[k].name);
    }
    report_.bytes_after = matrices_.bytes_added();
    matrices_.finish();
    return std::move(report_);
  }

 private:
  void take(onnx::TensorId tensor, Weight& weight) {
    if (weight.products.empty() && weight.lookups.empty()) return;
    const Matrix matrix = matrices_.floats(weight);
    const std::string name = matrices_.name(tensor);
    const std::vector<Place> places = places_of(matrix);
    if (places.empty()) {
      report_.floats.emplace_back(name, "the checkpoint does not hold it in blocks of integers");
      return;
    }
    const std::string formats = formats_of(places);
    if (const std::string why = reason(weight, formats); !why.empty()) {
      report_.floats.emplace_back(name, why);
      return;
    }
    for (const Place place : places) used_.insert(place.matrix);
    Repacker repacker(stored_, places);
    const Packed packed = repacker.packed(threads_);
    report_.weights.emplace_back(name, formats);
    report_.bytes_before += matrix.rows * matrix.columns * std::int64_t{sizeof(float)};
    matrices_.pack_for_onnxruntime(tensor, weight, packed, repacker.format(), int8_activations_);
  }

  std::string reason(const Weight& weight, const std::string& formats) {
    if (!weight.can_be_packed()) return "it is read in other ways too";
    if (formats.find(" and ") != std::string::npos) {
      report_.mixed = true;
      return "the checkpoint holds its rows in " + formats;
    }
    for (const onnx::Node* node : weight.products) {
      if (!model_.tensors[static_cast<std::size_t>(node->inputs[0])].shape) {
        return "the rank of what it is multiplied by is not known";
      }
    }
    return "";
  }

  // Where each row is stored; nothing where one is not. Rows that are equal, such as those of
  // zeros, are taken from the matrix that holds most of the others.
  std::vector<Place> places_of(const Matrix& matrix) const {
    std::vector<std::vector<Place>> found(static_cast<std::size_t>(matrix.rows));
    std::atomic<bool> all = true;
    in_threads(threads_, matrix.rows, [&](std::int64_t from, std::int64_t to, std::size_t) {
      std::vector<float> row(static_cast<std::size_t>(matrix.columns));
      for (std::int64_t r = from; r < to && all; ++r) {
        const float* start = matrix.data + r * matrix.row_stride;
        for (std::size_t c = 0; c < row.size(); ++c) {
          row[c] = start[static_cast<std::int64_t>(c) * matrix.column_stride];
        }
        auto& places = found[static_cast<std::size_t>(r)];
        places = stored_.find(row);
        if (places.empty()) all = false;
      }
    });
    if (!all) return {};
    std::map<std::uint32_t, std::size_t> counts;
    for (const auto& places : found) {
      for (const Place place : places) ++counts[place.matrix];
    }
    std::vector<Place> chosen;
    for (const auto& places : found) {
      chosen.push_back(*std::ranges::max_element(
          places, {}, [&](const Place place) { return counts[place.matrix]; }));
    }
    return chosen;
  }

  // "Q4_K", or "Q4_K and Q6_K".
  std::string formats_of(const std::vector<Place>& places) const {
    std::set<std::pair<std::string_view, int>> formats;
    for (const Place place : places) {
      const StoredMatrix& matrix = stored_.matrices()[place.matrix];
      formats.emplace(matrix.format->name, matrix.block);
    }
    std::string words;
    for (const auto& [name, block] : formats) {
      words += (words.empty() ? "" : " and ") + std::string(name);
    }
    return words;
  }

  onnx::Model& model_;
  Matrices matrices_;
  const StoredRows& stored_;
  bool int8_activations_;
  unsigned threads_;
  std::set<std::size_t> used_;
  KeptReport report_;
};

}  // namespace

StoredRows::StoredRows(std::vector<StoredMatrix> matrices, unsigned threads)
    : matrices_(std::move(matrices)) {
  for (std::size_t m = 0; m < matrices_.size(); ++m) {
    const StoredMatrix& matrix = matrices_[m];
    std::vector<std::uint64_t> hashes(static_cast<std::size_t>(matrix.rows));
    in_threads(threads, matrix.rows, [&](std::int64_t from, std::int64_t to, std::size_t) {
      StoredRow row(matrix);
      std::vector<float> values(static_cast<std::size_t>(matrix.columns));
      for (std::int64_t r = from; r < to; ++r) {
        matrix.format->take(matrix, r, row);
        row.values(matrix, values.data());
        hashes[static_cast<std::size_t>(r)] = hash_of(values);
      }
    });
    // Of rows that are equal one is enough, and a million of them would be looked through each
    // time.
    std::unordered_set<std::uint64_t> met;
    for (std::size_t r = 0; r < hashes.size(); ++r) {
      if (!met.insert(hashes[r]).second) continue;
      places_.emplace(hashes[r],
                      Place{static_cast<std::uint32_t>(m), static_cast<std::uint32_t>(r)});
    }
  }
}

std::vector<StoredRows::Place> StoredRows::find(std::span<const float> row) const {
  std::vector<Place> found;
  const auto [from, to] = places_.equal_range(hash_of(row));
  std::vector<float> values(row.size());
  for (auto each = from; each != to; ++each) {
    const StoredMatrix& matrix = matrices_[each->second.matrix];
    if (static_cast<std::size_t>(matrix.columns) != row.size()) continue;
    StoredRow stored(matrix);
    matrix.format->take(matrix, each->second.row, stored);
    stored.values(matrix, values.data());
    if (std::memcmp(values.data(), row.data(), row.size_bytes()) == 0) {
      found.push_back(each->second);
    }
  }
  return found;
}

KeptReport keep(onnx::Model& model, const StoredRows& stored, bool int8_activations,
                unsigned threads) {
  refuse_quantized(model);
  return Keeper(model, stored, int8_activations, threads).run();
}

}  // namespace fairlead::quant
