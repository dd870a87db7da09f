// The public headers of the core, in dependency order: a folder includes only what stands above it.
// These are the headers that are installed; all others are private to the core.
#pragma once

// base: errors and element types.
#include "fairlead/base/checked_list.h"
#include "fairlead/base/dtype.h"
#include "fairlead/base/error.h"
// tree: nested structures of tensors and constants, and how they align.
#include "fairlead/tree/merge.h"
#include "fairlead/tree/tree.h"
// symbol: integer expressions over named sizes, and the solver that finds them.
#include "fairlead/symbol/expr.h"
#include "fairlead/symbol/solve.h"
// aten: the table of operators.
#include "fairlead/aten/operators.h"
#include "fairlead/aten/ops.h"
// graph: one SSA graph of values with exact symbolic shapes.
#include "fairlead/graph/bounds.h"
#include "fairlead/graph/graph.h"
#include "fairlead/graph/join.h"
// observe: the calls of a model, and what they say about its sizes.
#include "fairlead/observe/calls.h"
#include "fairlead/observe/infer.h"
// trace: recorded runs, and the program that they have in common.
#include "fairlead/trace/carried.h"
#include "fairlead/trace/guard.h"
#include "fairlead/trace/join_programs.h"
#include "fairlead/trace/program.h"
#include "fairlead/trace/run.h"

// experiment: what to try next, and what follows from it.
#include "fairlead/experiment/guards.h"
// passes: what a target wants of a program, and what fusions are written with.
#include "fairlead/passes/fusion.h"
#include "fairlead/passes/passes.h"
#include "fairlead/passes/rewrite.h"
#include "fairlead/passes/target.h"
// onnx: lowering by table, the model that is written, and its writer.
#include "fairlead/onnx/arguments.h"
#include "fairlead/onnx/emission.h"
#include "fairlead/onnx/faults.h"
#include "fairlead/onnx/lowering.h"
#include "fairlead/onnx/model.h"
#include "fairlead/onnx/sizes.h"
#include "fairlead/onnx/weights.h"
#include "fairlead/onnx/writer.h"
// pt2: programs of torch.export, from an archive or from memory.
#include "fairlead/pt2/import.h"
