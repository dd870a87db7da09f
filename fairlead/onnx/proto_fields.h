// Field numbers of onnx.proto, one enum per message, for what is written or read here.
#pragma once

#include <cstdint>

namespace fairlead::onnx::proto {

enum ModelField : std::uint32_t {
  kModelIrVersion = 1,
  kModelProducerName = 2,
  kModelProducerVersion = 3,
  kModelDomain = 4,
  kModelGraph = 7,
  kModelOpsetImport = 8,
  kModelMetadata = 14,
  kModelFunctions = 25,
};

enum FunctionField : std::uint32_t {
  kFunctionName = 1,
  kFunctionInput = 4,
  kFunctionOutput = 5,
  kFunctionNode = 7,
  kFunctionOpsetImport = 9,
  kFunctionDomain = 10,
};

enum OpsetField : std::uint32_t { kOpsetDomain = 1, kOpsetVersion = 2 };

enum EntryField : std::uint32_t { kEntryKey = 1, kEntryValue = 2 };  // StringStringEntryProto

enum GraphField : std::uint32_t {
  kGraphNode = 1,
  kGraphName = 2,
  kGraphInitializer = 5,
  kGraphInput = 11,
  kGraphOutput = 12,
  kGraphValueInfo = 13,
};

enum NodeField : std::uint32_t {
  kNodeInput = 1,
  kNodeOutput = 2,
  kNodeName = 3,
  kNodeOpType = 4,
  kNodeAttribute = 5,
  kNodeDomain = 7,
  kNodeMetadata = 9,
};

enum AttributeField : std::uint32_t {
  kAttributeName = 1,
  kAttributeFloat = 2,
  kAttributeInt = 3,
  kAttributeString = 4,
  kAttributeTensor = 5,
  kAttributeGraph = 6,
  kAttributeFloats = 7,
  kAttributeInts = 8,
  kAttributeStrings = 9,
  kAttributeGraphs = 11,
  kAttributeType = 20,
};

// AttributeProto.AttributeType: the values of kAttributeType.
enum AttributeType : std::int32_t {
  kTypeFloat = 1,
  kTypeInt = 2,
  kTypeString = 3,
  kTypeTensor = 4,
  kTypeGraph = 5,
  kTypeFloats = 6,
  kTypeInts = 7,
  kTypeStrings = 8,
};

enum TensorField : std::uint32_t {
  kTensorDims = 1,
  kTensorDataType = 2,
  kTensorFloatData = 4,
  kTensorInt32Data = 5,
  kTensorStringData = 6,
  kTensorInt64Data = 7,
  kTensorName = 8,
  kTensorRawData = 9,
  kTensorDoubleData = 10,
  kTensorUint64Data = 11,
  kTensorExternalData = 13,
  kTensorDataLocation = 14,
};

enum DataLocation : std::int32_t { kLocationDefault = 0, kLocationExternal = 1 };

enum ValueInfoField : std::uint32_t { kValueInfoName = 1, kValueInfoType = 2 };

enum TypeField : std::uint32_t { kTypeTensorType = 1 };

enum TensorTypeField : std::uint32_t { kTensorTypeElem = 1, kTensorTypeShape = 2 };

enum ShapeField : std::uint32_t { kShapeDim = 1 };

enum DimField : std::uint32_t { kDimValue = 1, kDimParam = 2 };

// Node metadata keys that carry where a node came from.
inline constexpr const char* kModuleKey = "fairlead.module";
inline constexpr const char* kSourceKey = "fairlead.source";

}  // namespace fairlead::onnx::proto
