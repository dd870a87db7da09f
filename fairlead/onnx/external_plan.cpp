// Places initializers in the external file and writes it.
#include "fairlead/onnx/external_plan.h"

#include <optional>
#include <utility>

#include "fairlead/files/output_file.h"
#include "fairlead/onnx/shared_weights.h"
#include "fairlead/onnx/tensor_stream.h"

namespace fairlead::onnx {
namespace {

// Small tensors need no page of their own: a page each would cost more than the tensor.
constexpr std::int64_t kPageAlignedBytes = 64ll << 10;
constexpr std::int64_t kSmallAlignment = 64;

template <typename Visit>
void for_each_initializer(const Graph& graph, const Visit& visit) {
  for (const Initializer& initializer : graph.initializers)
    visit(initializer.data, initializer.pieces);
  for (const Node& node : graph.nodes) {
    for (const Attribute& attribute : node.attributes) {
      const auto* subgraph = std::get_if<std::shared_ptr<Graph>>(&attribute.value);
      if (subgraph != nullptr && *subgraph) for_each_initializer(**subgraph, visit);
    }
  }
}

std::int64_t aligned(std::int64_t offset, std::int64_t bytes) {
  const std::int64_t step = bytes >= kPageAlignedBytes ? kExternalAlignment : kSmallAlignment;
  return (offset + step - 1) / step * step;
}

TensorIdentity identity(const TensorData& tensor, std::int64_t bytes) {
  Layout layout = reduced_layout(tensor);
  if (layout.contiguous()) return {first_byte(tensor), bytes, 0, {}, {}};
  return {first_byte(tensor), bytes, dtype_size(tensor.dtype), std::move(layout.dims),
          std::move(layout.strides)};
}

}  // namespace

std::int64_t initializer_bytes(const Graph& graph) {
  std::int64_t total = 0;
  for_each_initializer(
      graph, [&](const TensorData& tensor, std::int64_t) { total += stored_bytes(tensor); });
  return total;
}

ExternalPlan plan_external(const Graph& graph, bool external, const SharedWeights* shared) {
  ExternalPlan plan;
  plan.shared = shared;
  if (!external && (shared == nullptr || shared->files().empty())) return plan;
  for_each_initializer(graph, [&](const TensorData& tensor, std::int64_t pieces) {
    const std::int64_t bytes = stored_bytes(tensor);
    if (pieces > 1) {
      for (const FilePart& part : plan.parts(tensor)) plan.others.insert(part.file);
      plan.other_bytes += bytes;
      return;
    }
    // However small: what is in a file already is not written again.
    const bool in_files =
        shared != nullptr && bytes > 0 && shared->files().holds(first_byte(tensor));
    if (!in_files && (!external || bytes < kExternalTensorBytes)) return;
    TensorIdentity same = identity(tensor, bytes);
    const std::optional<ExternalSlot> elsewhere =
        shared != nullptr ? shared->find(same) : std::nullopt;
    if (elsewhere) {
      plan.others.insert(elsewhere->location);
      plan.other_bytes += bytes;
    }
    if (in_files && elsewhere) return;  // tens of thousands: `slot` finds them
    if (!elsewhere && (!external || bytes < kExternalTensorBytes)) return;
    const auto [found, is_new] = plan.known.try_emplace(std::move(same));
    if (elsewhere && is_new) {
      found->second = *elsewhere;
    } else if (is_new) {
      found->second = {aligned(plan.bytes, bytes), bytes, {}};
      plan.entries.push_back({&tensor, found->second});
      plan.bytes = found->second.offset + bytes;
    }
    plan.slots.emplace(&tensor, found->second);
  });
  return plan;
}

std::optional<ExternalSlot> ExternalPlan::slot(const TensorData& tensor) const {
  if (const auto found = slots.find(&tensor); found != slots.end()) return found->second;
  if (shared == nullptr || shared->files().empty()) return std::nullopt;
  const std::int64_t size = stored_bytes(tensor);
  if (size == 0 || !shared->files().holds(first_byte(tensor))) return std::nullopt;
  return shared->find(identity(tensor, size));
}

std::vector<FilePart> ExternalPlan::parts(const TensorData& tensor) const {
  std::vector<FilePart> found;
  if (shared != nullptr) found = shared->files().find(first_byte(tensor), stored_bytes(tensor));
  if (found.empty()) fail_elsewhere();
  return found;
}

void write_external(const ExternalPlan& plan, const std::string& path, const std::string& shown_as,
                    ContentHash* hash, FetchedWeights* fetched) {
  OutputFile file(path, shown_as);
  file.hash_into(hash);
  if (plan.bytes >= kWrittenBehind) file.write_behind();
  for (const ExternalPlan::Entry& entry : plan.entries) {
    file.pad_to(entry.slot.offset);
    stream_tensor(*entry.tensor, file, fetched);
  }
  file.close();
}

}  // namespace fairlead::onnx
