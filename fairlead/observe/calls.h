// The observed calls of one method: per call a tree of arguments and facts about its tensors.
//
// The root of every tree is a dict of arguments by name. Trees that are equal are stored once, so
// that ten thousand calls of one structure cost one tree and their sizes. Adding is linear in the
// call.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "fairlead/base/dtype.h"
#include "fairlead/tree/tree.h"

namespace fairlead {

struct TensorFact {
  Dtype dtype = Dtype::kFloat32;
  std::uint8_t rank = 0;
  bool contiguous = true;    // strides are kept only where it is not
  std::uint16_t device = 0;  // string id, see Calls::device
  std::uint32_t dims = 0;    // first of `rank` sizes, then `rank` strides where not contiguous
};

class Calls {
 public:
  // Names in the order of the signature; arguments come in this order, others after them.
  explicit Calls(std::vector<std::string> order = {}) : order_(std::move(order)) {}

  // Tensors are added first, one by one, then the call that owns them.
  void add_tensor(Dtype dtype, std::span<const std::int64_t> shape,
                  std::span<const std::int64_t> strides, std::string_view device);
  // Number of the call. Error kInvalidInput if the tree has another number of tensors than were
  // added.
  std::uint32_t add_call(Tree tree);
  // Takes a call out again (it failed); later calls move up. Sizes stay allocated.
  void discard(std::uint32_t call);

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(calls_.size()); }
  [[nodiscard]] std::uint32_t structure(std::uint32_t call) const { return calls_[call].structure; }
  [[nodiscard]] std::uint32_t structure_count() const {
    return static_cast<std::uint32_t>(trees_.size());
  }
  [[nodiscard]] const Tree& tree(std::uint32_t structure) const { return trees_[structure]; }
  [[nodiscard]] const std::vector<std::string>& order() const { return order_; }

  // The tensors of a call, in the order of its tree.
  [[nodiscard]] std::span<const TensorFact> tensors(std::uint32_t call) const;
  [[nodiscard]] std::span<const std::int64_t> shape(const TensorFact& fact) const {
    return std::span(dims_).subspan(fact.dims, fact.rank);
  }
  [[nodiscard]] std::vector<std::int64_t> strides(const TensorFact& fact) const;
  [[nodiscard]] const std::string& device(const TensorFact& fact) const {
    return devices_[fact.device];
  }

 private:
  struct Call {
    std::uint32_t structure = 0;
    std::uint32_t first = 0;  // in facts_
  };

  std::vector<std::string> order_;
  std::vector<Call> calls_;
  std::vector<TensorFact> facts_;
  std::vector<std::int64_t> dims_;
  std::vector<std::string> devices_;
  std::vector<Tree> trees_;
  std::unordered_multimap<std::size_t, std::uint32_t> by_hash_;
  std::uint32_t pending_ = 0;  // first fact that belongs to no call yet
};

}  // namespace fairlead
