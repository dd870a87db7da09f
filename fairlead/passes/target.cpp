// What is known of runtimes.
#include "fairlead/passes/target.h"

#include <string>

#include "fairlead/base/error.h"

namespace fairlead {
namespace {

struct OpsetRow {
  int version;  // of ONNX Runtime 1.x
  int opset;    // the newest that it runs
};

constexpr OpsetRow kOpsets[] = {{20, 21}, {21, 22}, {22, 23}, {23, 23},
                                {24, 24}, {25, 25}, {31, 26}};
constexpr int kOldest = 20;

}  // namespace

int RuntimeProfile::newest_opset() const {
  int found = kOldest;
  for (const OpsetRow& row : kOpsets) {
    if (version == 0 || row.version <= version) found = row.opset;
  }
  return found;
}

Provider parse_provider(std::string_view name) {
  if (name == "onnxruntime-cpu") return Provider::kOnnxRuntimeCpu;
  if (name == "portable") return Provider::kPortable;
  throw Error(ErrorCode::kInvalidInput,
              "[export] Expected runtime \"onnxruntime-cpu\" or \"portable\", got \"" +
                  std::string(name) + "\".");
}

}  // namespace fairlead
