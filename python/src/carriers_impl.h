// What the files of the carriers share: the sink, what Python's own types do while nothing is
// watched, and how nodes and questions are noted.
#pragma once

#include <cstdint>

#include "carriers.h"

namespace fairlead::python::carriers {

extern CarrySink* sink;
extern PyTypeObject* int_type;
extern PyTypeObject* float_type;

extern newfunc plain_int_new;
extern newfunc plain_float_new;
extern PyNumberMethods plain_floats;  // float's own, while ours stand in their place
extern richcmpfunc plain_float_compare;

struct Tag {
  CarryId node;
  std::uint32_t serial;
};

// An int is its header, 24 bytes, and digits of 30 bits: three hold what has 64 bits. The tag lies
// behind those.
constexpr Py_ssize_t kIntTag = 40;
constexpr Py_ssize_t kFloatTag = sizeof(PyFloatObject);

inline bool is_int(PyObject* o) { return Py_TYPE(o) == int_type; }
inline bool is_float(PyObject* o) { return Py_TYPE(o) == float_type; }

CarryId add_node(const Carry& node);
// Notes the question; the answer to go on with.
bool add_guard(Compare compare, CarryId left, CarryId right, bool outcome);
// From here on a plain number may come from a size.
void note_forgotten();
// What was asked may depend on which number it is exactly: it is another one, where it can be.
void ask_which(CarryId node, bool told = false);
// A number, or those of a list or tuple, went where no memory is kept: which they are may decide
// what comes next.
void forget(PyObject* object);
// A result (stolen) of an operator on these, with its memory; b may be null.
PyObject* carry_binary(PyObject* plain, CarryKind kind, PyObject* a, PyObject* b);

// carrier_numbers.cpp: the two types, and float's own operators with one of them.
void make_types();
PyObject* rounded(PyObject* self, CarryKind kind);
void watch_floats(bool on);

// carrier_arrays.cpp: NumPy's functions.
PyObject* array_function(PyObject* self, PyObject* args, PyObject* names);
PyObject* array_type(PyObject* self, PyObject* type);
PyObject* array_of(PyObject* self, PyObject* args, PyObject* names);
PyObject* without_memory(PyObject* object);  // a new reference

// carrier_lists.cpp: lists of numbers that were read. Null: not one of those, or not to be said.
void forget_lists();
PyObject* list_answer(PyObject* list, const char* method);
PyObject* list_length(PyObject* list);
int list_contains(PyObject* list, PyObject* value);  // -1
PyObject* list_count(PyObject* list, PyObject* value);
PyObject* list_index(PyObject* list, PyObject* value);
void note_part(PyObject* list, PyObject* key, PyObject* part);
PyObject* list_item(PyObject* list, PyObject* key);
PyObject* list_sorted(PyObject* list, bool downwards);

// carrier_doors.cpp: what C code would take the plain number of.
void find_doors();
void watch_doors(bool on);
void forget_ranges();           // that the last run made of sizes
void watch_functions(bool on);  // of modules alone: `len` and those of math

}  // namespace fairlead::python::carriers
