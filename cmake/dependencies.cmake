# Third-party libraries, each with its reason. Looked for on the system first.
# protozero: writes and reads protobuf by streaming; header only, no 2 GB limit, no generated code.
find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_writer.hpp REQUIRED)
