// The headers that a source includes, and so the headers whose edits change its digest.
#include "tilewright/compile/include_graph.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tilewright::compile {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::vector<Header> kHeaders = {
    {"tilewright/epilogue/bias.cuh", "#pragma once\n#include \"tilewright/types.cuh\"\n"},
    {"tilewright/epilogue/gelu.cuh", "#include \"bias.cuh\"\n"},
    {"tilewright/gemm/gemm.cuh", "#include <tilewright/types.cuh>\n#include \"../mma.cuh\"\n"},
    {"tilewright/mma.cuh", "inline void mma() {}\n"},
    {"tilewright/types.cuh", "using u32 = unsigned;\n"},
};

Source source_of(std::string text) {
  Source source;
  source.name = source.symbol = "kernel";
  source.text = std::move(text);
  source.target = {.sm = 80};
  return source;
}

std::vector<std::string> included_names(const Source& source) {
  std::vector<std::string> names;
  for (const Header& header : IncludeGraph(kHeaders).included_by(source)) {
    names.emplace_back(header.name.substr(std::string_view("tilewright/").size()));
  }
  return names;
}

std::vector<std::string> included_names(const std::string& text) { return included_names(source_of(text)); }

TEST(IncludeGraph, FollowsDirectivesThroughHeaders) {
  EXPECT_THAT(included_names("#include \"tilewright/gemm/gemm.cuh\"\n"),
              ElementsAre("gemm/gemm.cuh", "mma.cuh", "types.cuh"));
  EXPECT_THAT(included_names("#include \"tilewright/epilogue/gelu.cuh\"\n"),
              ElementsAre("epilogue/bias.cuh", "epilogue/gelu.cuh", "types.cuh"));
  EXPECT_THAT(included_names("int x;\n"), IsEmpty());
}

TEST(IncludeGraph, ReadsEverySpelling) {
  for (const char* text : {"#include <tilewright/mma.cuh>", "  #\tinclude\"tilewright/mma.cuh\" // why",
                           "#include \"./tilewright/gemm/../mma.cuh\"", "int x;\r\n#include <tilewright/mma.cuh>\r\n",
                           "#include_next <tilewright/mma.cuh>", "#if 0\n#include \"tilewright/mma.cuh\"\n#endif",
                           "// #include \"tilewright/mma.cuh\""}) {
    EXPECT_THAT(included_names(text), ElementsAre("mma.cuh")) << text;
  }
}

TEST(IncludeGraph, IgnoresUnknownHeadersAndOtherDirectives) {
  EXPECT_THAT(included_names("#include <cuda_fp16.h>\n#include \"mine.cuh\"\n#include \"tilewright/none.cuh\"\n"
                             "#define TEXT(x) #x\n#pragma unroll\n#if defined(X) && \\\n  Y\n#endif\n"),
              IsEmpty());
}

TEST(IncludeGraph, TakesAllHeadersWhereOnlyAPreprocessorCouldTell) {
  for (const char* text :
       {"#define HEADER <a.h>\n#include HEADER\n", "#if __has_include(\"tilewright/mma.cuh\")\n#endif",
        "#if X || \\\n  __has_include(<a.h>)\n#endif", "#/* */include \"tilewright/mma.cuh\"",
        "#\\\ninclude \"tilewright/mma.cuh\"", "%:include \"tilewright/mma.cuh\""}) {
    EXPECT_EQ(included_names(text).size(), kHeaders.size()) << text;
  }
}

TEST(IncludeGraph, FollowsTheHeadersOfTheUser) {
  Source source = source_of("#include \"mine/kernel.cuh\"\n");
  source.headers = {{"mine/kernel.cuh", "#include \"../tilewright/mma.cuh\"\n"}};
  EXPECT_THAT(included_names(source), ElementsAre("mma.cuh"));
}

TEST(IncludeGraph, PtxAndCubinsIncludeNothing) {
  for (const Language language : {Language::ptx, Language::cubin}) {
    Source source = source_of("// #include \"tilewright/mma.cuh\"\n");
    source.language = language;
    EXPECT_THAT(included_names(source), IsEmpty());
  }
}

TEST(IncludeGraph, EditingAHeaderChangesTheDigestsOfTheSourcesThatIncludeIt) {
  std::vector<Header> edited = kHeaders;
  edited[0].text = "#include \"tilewright/types.cuh\"\n// edited\n";
  const IncludeGraph before(kHeaders);
  const IncludeGraph after(edited);
  const auto is_changed = [&](const std::string& text) {
    return source_digest(source_of(text), before) != source_digest(source_of(text), after);
  };
  EXPECT_TRUE(is_changed("#include \"tilewright/epilogue/bias.cuh\"\n"));
  EXPECT_TRUE(is_changed("#include \"tilewright/epilogue/gelu.cuh\"\n")) << "included through another header";
  EXPECT_TRUE(is_changed("#define HEADER <a.h>\n#include HEADER\n"));
  EXPECT_FALSE(is_changed("#include \"tilewright/gemm/gemm.cuh\"\n"));
  EXPECT_FALSE(is_changed("int x;\n"));
}

TEST(IncludeGraph, ANewHeaderChangesTheDigestsOfTheSourcesThatIncludeIt) {
  std::vector<Header> more = kHeaders;
  more.push_back({"tilewright/unused.cuh", ""});
  const Source source = source_of("#include \"tilewright/unused.cuh\"\n");
  EXPECT_NE(source_digest(source, IncludeGraph(kHeaders)), source_digest(source, IncludeGraph(more)));
  const Source other = source_of("#include \"tilewright/mma.cuh\"\n");
  EXPECT_EQ(source_digest(other, IncludeGraph(kHeaders)), source_digest(other, IncludeGraph(more)));
}

// A directive that the graph cannot read would make a device header count as including all others.
TEST(IncludeGraph, ReadsEveryDeviceHeader) {
  const IncludeGraph& graph = IncludeGraph::of_device_headers();
  for (const Header& header : device_headers()) {
    const auto included = graph.included_by(source_of("#include \"" + std::string(header.name) + "\"\n"));
    EXPECT_LT(included.size(), device_headers().size()) << header.name;
    EXPECT_EQ(header.text.find("#include <"), std::string_view::npos) << header.name;
  }
}

}  // namespace
}  // namespace tilewright::compile
