// Several threads read, lower, write and read again at once: what they share is made once and never
// changed. ThreadSanitizer looks on (preset "thread").
#include <doctest/doctest.h>

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "fairlead/graph/graph.h"
#include "fairlead/onnx/lowering.h"
#include "fairlead/onnx/reader.h"
#include "fairlead/onnx/writer.h"
#include "fairlead/passes/passes.h"
#include "fairlead/pt2/import.h"
#include "fairlead/report/file_report.h"

namespace {

constexpr std::size_t kThreads = 8;

std::size_t exported(const std::string& name, const std::string& path) {
  fairlead::pt2::Imported imported =
      fairlead::pt2::read_pt2(std::string(FAIRLEAD_GOLDEN) + "/" + name);
  fairlead::Graph& graph = imported.program.graph;
  fairlead::run_passes(graph);
  const fairlead::Graph again = fairlead::parse_graph(to_text(graph));
  const fairlead::onnx::Model model = fairlead::onnx::lower_graph(graph, {});
  fairlead::onnx::StagedModel staged =
      fairlead::onnx::write_model(model, path, fairlead::onnx::ExternalData::kNever);
  staged.commit();
  const fairlead::onnx::ModelSummary summary = fairlead::onnx::read_model_summary(path);
  return summary.nodes.size() + again.nodes.size() +
         fairlead::report::report_of(summary, path).operators.size();
}

}  // namespace

TEST_CASE("threads that export at once do not disturb each other") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("fairlead-threads-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::vector<std::string> names = {"mlp.pt2", "control.pt2"};
  std::vector<std::size_t> expected;
  for (const std::string& name : names) {
    expected.push_back(exported(name, (folder / "alone.onnx").string()));
  }
  std::atomic<std::size_t> right = 0;
  std::vector<std::thread> threads;
  for (std::size_t k = 0; k < kThreads; ++k) {
    threads.emplace_back([&, k] {
      const std::string path = (folder / (std::to_string(k) + ".onnx")).string();
      if (exported(names[k % 2], path) == expected[k % 2]) ++right;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == kThreads);
  std::filesystem::remove_all(folder);
}
