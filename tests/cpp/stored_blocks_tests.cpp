// Tests of tensors that consist of parts of a checkpoint's: whatever is done to them, their elements
// are where a computation with the numbers themselves finds them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "fairlead/base/error.h"
#include "fairlead/onnx/check_references.h"
#include "fairlead/weights/placed_weights.h"
#include "fairlead/weights/stored_blocks.h"
#include "onnx_models.h"

using namespace fairlead;
using fairlead::test::put_file;
using fairlead::test::TemporaryFolder;

namespace {

using Dims = StoredBlocks::Dims;

// Numbers in the order of their elements: what StoredBlocks stands for.
struct Plain {
  Dims dims;
  std::vector<std::int32_t> values;

  static std::int64_t count(const Dims& dims) {
    return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
  }

  // The element (of `dims`) that `from` says for each place of `made`.
  template <typename From>
  [[nodiscard]] Plain taken(const Dims& made, const From& from) const {
    Plain found{made, {}};
    Dims at(made.size());
    for (std::int64_t k = 0; k < count(made); ++k) {
      std::int64_t rest = k;
      for (std::size_t axis = made.size(); axis-- > 0;) {
        at[axis] = rest % made[axis];
        rest /= made[axis];
      }
      const Dims place = from(at);
      std::int64_t index = 0;
      for (std::size_t axis = 0; axis < dims.size(); ++axis) {
        index = index * dims[axis] + place[axis];
      }
      found.values.push_back(values.at(static_cast<std::size_t>(index)));
    }
    return found;
  }
};

// Tensors "0", "1", ... of int32 with numbers that no two elements share; the last file has them.
std::vector<Plain> put_tensors(const TemporaryFolder& folder, const std::vector<Dims>& shapes) {
  std::string header = "{", data;
  std::vector<Plain> made;
  std::int32_t next = 100;
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    Plain plain{shapes[k], {}};
    const std::size_t begin = data.size();
    for (std::int64_t n = 0; n < Plain::count(shapes[k]); ++n) {
      plain.values.push_back(++next);
      data.append(reinterpret_cast<const char*>(&next), sizeof(next));
    }
    std::string sizes;
    for (const std::int64_t size : shapes[k]) {
      sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
    }
    header += (k > 0 ? "," : "") + std::string("\"") + std::to_string(k) +
              "\":{\"dtype\":\"I32\",\"shape\":[" + sizes + "],\"data_offsets\":[" +
              std::to_string(begin) + "," + std::to_string(data.size()) + "]}";
    made.push_back(std::move(plain));
  }
  header += "}";
  header.resize((header.size() + 15) / 8 * 8, ' ');
  std::string file;
  for (int k = 0; k < 8; ++k) file.push_back(static_cast<char>(header.size() >> (8 * k) & 0xff));
  put_file(folder / "model.safetensors", file + header + data);
  return made;
}

std::int32_t element(const WeightFolder& folder, const StoredPart& part, const Dims& at) {
  std::int64_t place = part.offset;
  for (std::size_t k = 0; k < at.size(); ++k) place += at[k] * part.strides[k] * 4;
  std::int32_t value = 0;
  std::memcpy(&value, folder.file(part.file).bytes().data() + place, 4);
  return value;
}

// The numbers of the blocks, each at its place.
Plain read(const WeightFolder& folder, const StoredBlocks& blocks) {
  Plain found{blocks.dims(), {}};
  found.values.assign(static_cast<std::size_t>(Plain::count(blocks.dims())), 0);
  for (std::size_t k = 0; k < blocks.count(); ++k) {
    const StoredPart part = blocks.part(folder, k);
    const Dims start = blocks.start(k);
    Plain inside{part.dims, {}};
    for (std::int64_t n = 0; n < Plain::count(part.dims); ++n) {
      Dims at(part.dims.size());
      std::int64_t rest = n, index = 0;
      for (std::size_t axis = at.size(); axis-- > 0;) {
        at[axis] = rest % part.dims[axis];
        rest /= part.dims[axis];
      }
      for (std::size_t axis = 0; axis < at.size(); ++axis) {
        index = index * blocks.dims()[axis] + start[axis] + at[axis];
      }
      std::int32_t& value = found.values.at(static_cast<std::size_t>(index));
      CHECK(value == 0);  // no two blocks overlap
      value = element(folder, part, at);
    }
  }
  return found;
}

// The numbers of the blocks one after the other.
std::vector<std::int32_t> in_order(const WeightFolder& folder, const StoredBlocks& blocks) {
  std::vector<std::int32_t> found;
  const auto sorted = blocks.in_order(1 << 20);
  REQUIRE(sorted);
  for (std::size_t k = 0; k < sorted->count(); ++k) {
    const StoredPart part = sorted->part(folder, k);
    for (std::int64_t n = 0; n < Plain::count(part.dims); ++n) {
      Dims at(part.dims.size());
      std::int64_t rest = n;
      for (std::size_t axis = at.size(); axis-- > 0;) {
        at[axis] = rest % part.dims[axis];
        rest /= part.dims[axis];
      }
      found.push_back(element(folder, part, at));
    }
  }
  return found;
}

struct Pair {
  StoredBlocks blocks;
  Plain plain;
};

std::size_t drawn(std::mt19937& random, std::size_t below) {
  return std::uniform_int_distribution<std::size_t>(0, below - 1)(random);
}

// One thing that a loader does, to both.
Pair changed(const Pair& given, std::mt19937& random) {
  const Dims& dims = given.plain.dims;
  const std::size_t axis = drawn(random, dims.size());
  switch (drawn(random, 5)) {
    case 0: {  // a part
      const auto low =
          static_cast<std::int64_t>(drawn(random, static_cast<std::size_t>(dims[axis])));
      const auto high =
          low + 1 +
          static_cast<std::int64_t>(drawn(random, static_cast<std::size_t>(dims[axis] - low)));
      Dims sizes = dims;
      sizes[axis] = high - low;
      return {given.blocks.cut(axis, low, high), given.plain.taken(sizes, [&](Dims at) {
                at[axis] += low;
                return at;
              })};
    }
    case 1: {  // turned
      std::vector<std::size_t> order(dims.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::ranges::shuffle(order, random);
      Dims sizes;
      for (const std::size_t from : order) sizes.push_back(dims[from]);
      return {given.blocks.permuted(order), given.plain.taken(sizes, [&](const Dims& at) {
                Dims place(at.size());
                for (std::size_t k = 0; k < order.size(); ++k) place[order[k]] = at[k];
                return place;
              })};
    }
    case 2: {  // joined with a turned part of itself
      const StoredBlocks* both[] = {&given.blocks, &given.blocks};
      Dims sizes = dims;
      sizes[axis] *= 2;
      if (Plain::count(sizes) > 2000) return given;
      return {StoredBlocks::joined(both, axis), given.plain.taken(sizes, [&](Dims at) {
                at[axis] %= dims[axis];
                return at;
              })};
    }
    case 3: {  // an axis more, or one less
      if (dims[axis] == 1 && dims.size() > 1) {
        Dims sizes = dims;
        sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(axis));
        return {given.blocks.without(axis), {sizes, given.plain.values}};
      }
      if (dims.size() > 4) return given;
      Dims sizes = dims;
      sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(axis), 1);
      return {given.blocks.with(axis), {sizes, given.plain.values}};
    }
    default: {  // counted otherwise, where that can be
      Dims sizes = dims;
      if (axis + 1 < dims.size()) {
        sizes[axis] *= sizes[axis + 1];
        sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
      } else if (sizes[axis] % 2 == 0) {
        sizes[axis] /= 2;
        sizes.push_back(2);
      }
      const auto viewed = given.blocks.viewed(sizes);
      return viewed ? Pair{*viewed, {sizes, given.plain.values}} : given;
    }
  }
}

}  // namespace

TEST_CASE("whatever is done to stored tensors, their elements are where they should be") {
  const TemporaryFolder folder;
  const std::vector<Plain> plain = put_tensors(folder, {{4, 6}, {2, 3, 4}, {8}, {1, 5}});
  const WeightFolder files(folder.path());
  std::mt19937 random(17);
  for (int trial = 0; trial < 400; ++trial) {
    const std::size_t number = drawn(random, plain.size());
    Pair pair{StoredBlocks::of(files, number), plain[number]};
    for (int step = 0; step < 6; ++step) pair = changed(pair, random);
    CAPTURE(trial);
    REQUIRE(pair.blocks.dims() == pair.plain.dims);
    REQUIRE(in_order(files, pair.blocks) == pair.plain.values);
    // Where an element stands twice, read() would find blocks that overlap: they never do.
    REQUIRE(read(files, pair.blocks).values == pair.plain.values);
  }
}

TEST_CASE("a parameter is one part, several, or something else") {
  const TemporaryFolder folder;
  const std::vector<Plain> plain = put_tensors(folder, {{4, 6}, {4, 6}, {0, 3}, {3000, 2}});
  const auto files = std::make_shared<WeightFolder>(folder.path());
  PlacedWeights placed(files);
  const StoredBlocks first = StoredBlocks::of(*files, 0), second = StoredBlocks::of(*files, 1);
  const StoredBlocks* const both[] = {&second, &first};
  const auto one = placed.add(first.cut(0, 1, 3), Dtype::kInt32);
  CHECK(one.way == PlacedWeights::Way::kMapped);
  CHECK(one.bytes == 48);
  CHECK(placed.add(StoredBlocks::of(*files, 2), Dtype::kInt32).way == PlacedWeights::Way::kEmpty);
  const auto joined = placed.add(StoredBlocks::joined(both, 0), Dtype::kInt32);
  CHECK(joined.way == PlacedWeights::Way::kJoined);
  CHECK(joined.bytes == 192);
  const std::size_t turned[] = {1, 0};
  CHECK(placed.add(first.permuted(turned), Dtype::kInt32).way == PlacedWeights::Way::kOther);
  CHECK(placed.add(first, Dtype::kInt64).way == PlacedWeights::Way::kOther);
  // Rows of two matrices side by side: thousands of parts of a few bytes.
  const StoredBlocks many = StoredBlocks::of(*files, 3);
  const StoredBlocks* const sides[] = {&many, &many};
  CHECK(placed.add(StoredBlocks::joined(sides, 1), Dtype::kInt32).way ==
        PlacedWeights::Way::kOther);

  placed.reserve();
  REQUIRE(placed.reserved() != nullptr);
  CHECK(!placed.reserved()->touched());
  CHECK(placed.is_joined(joined.offset));
  CHECK(!placed.is_joined(joined.offset + 4));
  const FileRegions regions = placed.regions();
  const std::byte* const at = placed.reserved()->bytes().data() + joined.offset;
  const auto parts = regions.find(at, joined.bytes);
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].file == "model.safetensors");
  CHECK(parts[0].offset == files->tensors()[1].stored.begin);
  placed.fill(joined.offset);
  std::vector<std::int32_t> numbers(48);
  std::memcpy(numbers.data(), at, 192);
  std::vector<std::int32_t> expected = plain[1].values;
  expected.insert(expected.end(), plain[0].values.begin(), plain[0].values.end());
  CHECK(numbers == expected);
  CHECK_THROWS_AS(placed.fill(joined.offset + 4), Error);

  const auto known = placed.find(0, one.offset, 48);
  REQUIRE(known);
  CHECK(known->bytes == 48);
  CHECK(known->tensor == 0);
  const auto part = placed.find(0, one.offset + 12, 12);  // of several matrices the second
  REQUIRE(part);
  CHECK(part->offset == one.offset);
  CHECK(!placed.find(0, one.offset + 4, 4096));
  CHECK(!placed.find(std::nullopt, 0, 4));
}
