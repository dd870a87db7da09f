// Tests of the summary of ONNX files: foreign spellings, and bytes that are no model.
#include "fairlead/onnx/reader.h"

#include <doctest/doctest.h>

#include <random>

#include "fairlead/base/error.h"
#include "fairlead/onnx/writer.h"
#include "onnx_models.h"

using namespace fairlead;
using namespace fairlead::onnx;
using fairlead::test::file_bytes;
using fairlead::test::put_file;
using fairlead::test::SampleModel;
using fairlead::test::TemporaryFolder;

namespace {

ModelSummary parse(const std::string& bytes) {
  return parse_model_summary(std::as_bytes(std::span(bytes)), "m.onnx");
}

std::string parse_error(const std::string& bytes) {
  try {
    (void)parse(bytes);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kParse);
    return error.what();
  }
  return "";
}

// A field with a length: field("\x0a", "abc") is field 1 of three bytes.
std::string field(const std::string& key, const std::string& payload) {
  REQUIRE(payload.size() < 128);
  return key + std::string(1, static_cast<char>(payload.size())) + payload;
}

std::string model_with(const std::string& graph) {
  return std::string("\x08\x09", 2) + field("\x3a", graph);
}

// Bytes of a small model of every feature, weights dropped so that mutations hit structure.
std::string small_model() {
  const TemporaryFolder folder;
  const SampleModel sample;
  return file_bytes(write_model(sample.model, folder / "m.onnx", ExternalData::kAlways).path());
}

}  // namespace

TEST_CASE("Packed and unpacked lists are read alike") {
  const std::string dims = "\x08\x02\x08\x03";
  const std::string packed = field("\x0a", "\x02\x03");
  for (const std::string& spelling : {dims, packed}) {
    const ModelSummary summary =
        parse(model_with(field("\x2a", spelling + "\x10\x01" + field("\x42", "w"))));
    REQUIRE(summary.initializers.size() == 1);
    CHECK(summary.initializers[0].dims == std::vector<std::int64_t>{2, 3});
    CHECK(summary.initializers[0].bytes == 24);
    CHECK(summary.initializers[0].dtype == "float32");
  }
}

TEST_CASE("Types beyond the table have names and sizes") {
  const ModelSummary summary = parse(model_with(field("\x2a", "\x08\x05\x10\x16") +  // int4
                                                field("\x2a", "\x08\x01\x10\x63")));
  CHECK(summary.initializers.at(0).dtype == "int4");
  CHECK(summary.initializers.at(0).bytes == 3);
  CHECK(summary.initializers.at(1).dtype == "type 99");
}

TEST_CASE("Bytes that are no model are refused with the reason") {
  CHECK(
      parse_error("") ==
      "[read_model_summary] Could not read 'm.onnx': it is not an ONNX model (it is empty). Check "
      "that the file is whole and of this format.");
  CHECK(parse_error(std::string("\x08\x09", 2)).find("there is no graph in it") !=
        std::string::npos);
  CHECK(parse_error(field("\x3a", "")).find("it has no IR version") != std::string::npos);
  CHECK(parse_error("\x3a\x7f").find("the bytes end inside a field") != std::string::npos);
  CHECK(parse_error("PK\x03\x04 an archive").find("is not an ONNX model") != std::string::npos);
  const std::string negative("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x01", 13);
  CHECK(parse_error(model_with(field("\x2a", negative))).find("impossible dims") !=
        std::string::npos);
  const std::string huge("\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x08\x09\x10\x01", 14);
  CHECK(parse_error(model_with(field("\x2a", huge))).find("impossible dims") != std::string::npos);
  const std::string offset = field("\x6a", field("\x0a", "offset") + field("\x12", "12x"));
  CHECK(parse_error(model_with(field("\x2a", offset))).find("'12x' is no offset") !=
        std::string::npos);
}

TEST_CASE("Graphs nested without end are refused") {
  std::string graph;
  const auto wrap = [](const std::string& key, const std::string& payload) {
    std::string length;
    for (std::size_t rest = payload.size(); true; rest >>= 7) {
      length += static_cast<char>(rest < 128 ? rest : (rest & 127) | 128);
      if (rest < 128) break;
    }
    return key + length + payload;
  };
  for (int i = 0; i < 5000; ++i) graph = wrap("\x0a", wrap("\x2a", wrap("\x32", graph)));
  CHECK(parse_error(std::string("\x08\x09", 2) + wrap("\x3a", graph))
            .find("graphs are nested too deeply") != std::string::npos);
}

TEST_CASE("Functions that call each other without end are counted, not followed") {
  // A model of one call of F0; each function calls the next `times` times, the last calls `last`.
  const auto check = [](int levels, int times, const std::string& last) {
    const auto node = [](const std::string& name) {
      return field("\x22", name) + field("\x3a", "f");
    };
    std::string model = std::string("\x08\x09", 2) + field("\x3a", field("\x0a", node("F0")));
    for (int k = 0; k < levels; ++k) {
      const std::string next = k + 1 == levels ? last : "F" + std::to_string(k + 1);
      std::string function = field("\x0a", "F" + std::to_string(k)) + field("\x52", "f");
      for (int i = 0; i < times; ++i) function += field("\x3a", node(next));
      model += "\xca\x01" + std::string(1, static_cast<char>(function.size())) + function;
    }
    check_functions(std::as_bytes(std::span(model)), "m.onnx");
  };
  CHECK_THROWS_WITH_AS(check(60, 5, "Relu"),
                       "[read_model_summary] Could not read 'm.onnx': it is not an ONNX model (the "
                       "functions in it call each other so often that its 301 operators come to "
                       "more than 130100). Check that the file is whole and of this format.",
                       Error);
  CHECK_NOTHROW(check(4, 5, "Relu"));
  CHECK_NOTHROW(check(60, 1, "F0"));  // ONNX Runtime says what is wrong with it
  const std::string whole = small_model();
  CHECK_NOTHROW(check_functions(std::as_bytes(std::span(whole)), "m.onnx"));
}

TEST_CASE("Files that cannot be opened are an error of their own") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH_AS((void)read_model_summary(folder / "none.onnx"),
                       ("[read_model_summary] Could not read '" + (folder / "none.onnx") +
                        "': No such file or directory. Check the path.")
                           .c_str(),
                       Error);
  CHECK_THROWS_AS((void)read_model_summary(folder.path()), Error);
  put_file(folder / "empty.onnx", "");
  CHECK_THROWS_AS((void)read_model_summary(folder / "empty.onnx"), Error);
}

TEST_CASE("Initializers are visited without the rest, those of subgraphs too") {
  const TemporaryFolder folder;
  put_file(folder / "m.onnx", small_model());
  std::vector<std::string> visited, summed;
  visit_initializers(folder / "m.onnx",
                     [&](const InitializerSummary& row) { visited.push_back(row.name); });
  for (const InitializerSummary& row : read_model_summary(folder / "m.onnx").initializers) {
    summed.push_back(row.name);
  }
  CHECK(!visited.empty());
  CHECK(visited == summed);
  const auto nothing = [](const InitializerSummary&) {};
  put_file(folder / "cut.onnx", small_model().substr(0, small_model().size() / 2));
  CHECK_THROWS_AS(visit_initializers(folder / "cut.onnx", nothing), Error);
  CHECK_THROWS_AS(visit_initializers(folder / "none.onnx", nothing), Error);
}

TEST_CASE("A truncated model is refused wherever it is cut, or is a shorter model") {
  const std::string whole = small_model();
  CHECK(parse(whole).nodes.size() == 18);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    CHECK_FALSE(parse_error(whole.substr(0, length)).empty());  // the graph comes last
  }
}

TEST_CASE("Mutated and random bytes never crash the reader") {
  const std::string whole = small_model();
  std::mt19937 random(11);
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = whole;
    for (int change = 0; change < 1 + round % 8; ++change) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (round % 5 == 0) bytes.erase(random() % bytes.size(), random() % 9);
    refused += parse_error(bytes).empty() ? 0 : 1;
  }
  CHECK(refused > 1000);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes(random() % 64, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    (void)parse_error(bytes);
  }
}
