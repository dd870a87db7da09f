// The parts of a file's report that stand in sources of their own.
#pragma once

#include "fairlead/report/file_report.h"

namespace fairlead::report {

// Fills tensors, bytes_by_dtype and files.
void add_layout(const onnx::ModelSummary& summary, const std::string& path, FileReport& report);

}  // namespace fairlead::report
