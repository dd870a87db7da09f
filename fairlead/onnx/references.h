// Initializers whose bytes lie in files as they are, so that the writer refers to them and copies
// nothing.
#pragma once

#include "fairlead/onnx/model.h"
#include "fairlead/weights/file_regions.h"

namespace fairlead::onnx {

// In the main graph, an initializer in memory that stands for files becomes
// 1. where it is transposed: one in the order of the file, and a Transpose;
// 2. where several parts of files make it up (experts that are stacked): one for each, a Concat, and
//    a Reshape where sizes are not theirs.
// ONNX Runtime does both once, when it loads the model. Others stay what they are.
void refer_to_files(Model& model, const FileRegions& files);

}  // namespace fairlead::onnx
