// Indexing that takes everything in order is a view.
#pragma once

#include "fairlead/passes/fusion.h"

namespace fairlead {

// x[rows[:, None, None, None], columns] with rows and columns that count all of x's becomes
// x.view(rows, 1, 1, columns): so masks are looked up by models that write them as functions.
std::size_t view_indexing(Graph& graph, FusionLog& log);

}  // namespace fairlead
