// SPDX-License-Identifier: MIT
#include "elliptical/base/config.h"

#include <gtest/gtest.h>

#include <fstream>

#include "elliptical/base/effective_config.h"
#include "elliptical/base/errors.h"
#include "tests/support/temporary_folder.h"

namespace elliptical {
namespace {

enum class Color { kRed, kGreen };
std::string to_string(Color color) { return color == Color::kRed ? "red" : "green"; }
Color color_from_string(const std::string& name) {
  return name == "red" ? Color::kRed : Color::kGreen;
}

struct RoundOptions : Options {
  double radius = 1.5;
  void visit(FieldList& fields) override { fields.add("radius", radius, "radius", above(0)); }
  std::unique_ptr<Options> clone() const override { return std::make_unique<RoundOptions>(*this); }
};

struct SquareOptions : Options {
  int64_t side = 4;
  Color color = Color::kRed;
  void visit(FieldList& fields) override {
    fields.add("side", side, "side", at_least(1));
    fields.add_enum("color", color, {"red", "green"}, color_from_string, "color of the side");
  }
  std::unique_ptr<Options> clone() const override { return std::make_unique<SquareOptions>(*this); }
};

const std::vector<OptionsEntry>& shapes() {
  static const std::vector<OptionsEntry> table = {
      {"round", "round things",
       []() -> std::unique_ptr<Options> { return std::make_unique<RoundOptions>(); }},
      {"square", "square things",
       []() -> std::unique_ptr<Options> { return std::make_unique<SquareOptions>(); }}};
  return table;
}

struct ModelOptions {
  int64_t width = 128;
  double dropout = 0.1;
  std::optional<double> scale;
  std::optional<int64_t> limit = 7;
  ChosenOptions shape{shapes(), "round"};
  bool tied = true;
  std::vector<int64_t> cutoffs = {10, 20};
  std::vector<double> weights;
  std::vector<std::string> names = {"a"};
  void visit(FieldList& fields) {
    fields.add("width", width, "channels", between(1, 4096));
    fields.add("dropout", dropout, "probability", below(0, 1));
    fields.add("scale", scale, "scale of logits");
    fields.add("limit", limit, "some limit");
    fields.add_group("shape", shape);
    fields.add("tied", tied, "share weights");
    fields.add("cutoffs", cutoffs, "cut-offs", at_least(1));
    fields.add("weights", weights, "weights");
    fields.add("names", names, "names");
  }
};

struct TestOptions {
  int64_t seed = 1;
  std::string data = "small";
  ModelOptions model;
  void visit(FieldList& fields) {
    fields.add("seed", seed, "seed of everything");
    fields.add("data", data, "name of the data");
    fields.add_group("model", model);
  }
};

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

std::string read_error(const std::string& text) {
  TestOptions options;
  return message_of([&] { read_recipe_text(text, "r.toml", fields_of(options)); });
}

std::string set_error(const std::string& assignment) {
  TestOptions options;
  return message_of([&] { apply_overrides({assignment}, fields_of(options)); });
}

TEST(Recipe, ReadsEveryType) {
  TestOptions options;
  read_recipe_text(R"(
seed = 3
data = "wikitext-2"
[model]
width = 64
dropout = 0
scale = 0.25
tied = false
cutoffs = [1, 2, 3]
weights = [1, 0.5]
names = ["x", "y"]
[model.shape]
name = "square"
side = 9
color = "green"
)",
                   "r.toml", fields_of(options));
  EXPECT_EQ(options.seed, 3);
  EXPECT_EQ(options.data, "wikitext-2");
  EXPECT_EQ(options.model.width, 64);
  EXPECT_EQ(options.model.dropout, 0);
  EXPECT_EQ(options.model.scale, 0.25);
  EXPECT_FALSE(options.model.tied);
  EXPECT_EQ(options.model.cutoffs, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(options.model.weights, (std::vector<double>{1, 0.5}));
  EXPECT_EQ(options.model.names, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(options.model.shape.name(), "square");
  EXPECT_EQ(options.model.shape.get<SquareOptions>().side, 9);
  EXPECT_EQ(options.model.shape.get<SquareOptions>().color, Color::kGreen);
}

TEST(Recipe, EffectiveConfigurationReadsBackTheSame) {
  TestOptions options;
  apply_overrides(
      {"model.shape.name=square", "model.shape.color=green", "data=a \"b\" \\ \xC3\xA9 \x7F",
       "model.dropout=0.30000000000000004", "model.weights=1e30,-2.5e-7", "model.limit=none"},
      fields_of(options));
  const std::string text = to_toml(fields_of(options));
  TestOptions again;
  again.model.limit.reset();
  read_effective_text(text, "effective.toml", fields_of(again));
  EXPECT_EQ(to_toml(fields_of(again)), text);
  EXPECT_EQ(again.data, options.data);
  EXPECT_EQ(again.model.dropout, 0.30000000000000004);
  EXPECT_TRUE(differences(fields_of(again), fields_of(options)).empty());
}

TEST(Recipe, S3AnEffectiveConfigurationReadsNoBase) {
  TestOptions options;
  EXPECT_EQ(message_of([&] {
              read_effective_text("base = \"/etc/hostname\"\n", "config.toml", fields_of(options));
            }),
            "config.toml:1: base: a run's configuration is whole and has none");
}

TEST(Recipe, EffectiveConfigurationHasEachSectionOnce) {
  TestOptions options;
  EXPECT_EQ(to_toml(fields_of(options)), R"(seed = 1
data = "small"

[model]
width = 128
dropout = 0.1
limit = 7
tied = true
cutoffs = [10, 20]
weights = []
names = ["a"]

[model.shape]
name = "round"
radius = 1.5
)");
}

TEST(RecipeErrors, S5UnknownKeyNamesLineAndNearest) {
  EXPECT_EQ(read_error("seed = 1\n[model]\nwidht = 3\n"),
            "r.toml:3: unknown key \"model.widht\", did you mean \"model.width\"?");
  EXPECT_EQ(read_error("width = 3\n"),
            "r.toml:1: unknown key \"width\", did you mean \"model.width\"?");
  EXPECT_EQ(read_error("model.shape.xxxxxx = 3\n"),
            "r.toml:1: unknown key \"model.shape.xxxxxx\", known: model.shape.name, "
            "model.shape.radius");
  EXPECT_EQ(read_error("[nothing]\n").substr(0, 38), "r.toml:1: unknown key \"nothing\", known");
  EXPECT_EQ(read_error("'model.width' = 3\n").substr(0, 37),
            "r.toml:1: unknown key \"'model.width'\"");
}

TEST(RecipeErrors, S5KeyOfAnotherChoiceIsUnknown) {
  EXPECT_EQ(read_error("[model.shape]\nname = 'square'\nradius = 2.0\n"),
            "r.toml:3: unknown key \"model.shape.radius\", known: model.shape.name, "
            "model.shape.side, model.shape.color");
}

TEST(RecipeErrors, S5WrongTypes) {
  EXPECT_EQ(read_error("[model]\nwidth = 3.0"),
            "r.toml:2: model.width: must be a whole number in [1, 4096], got 3.0");
  EXPECT_EQ(read_error("model.width = 'x'"),
            "r.toml:1: model.width: must be a whole number in [1, 4096], got text \"x\"");
  EXPECT_EQ(read_error("data = 1"), "r.toml:1: data: must be text, got 1");
  EXPECT_EQ(read_error("model.tied = 1"), "r.toml:1: model.tied: must be true or false, got 1");
  EXPECT_EQ(read_error("model.cutoffs = 1"), "r.toml:1: model.cutoffs: must be a list, got 1");
  EXPECT_EQ(read_error("model.cutoffs = [1, 'a']"),
            "r.toml:1: model.cutoffs: each element must be a whole number >= 1, got text \"a\"");
  EXPECT_EQ(read_error("[model.width]\n"),
            "r.toml:1: model.width: must be a whole number in [1, 4096], got a table");
  EXPECT_EQ(read_error("seed = 1979-05-27"),
            "r.toml:1: seed: must be a whole number, got a date or time");
  EXPECT_EQ(read_error("model.shape.name = 3"),
            "r.toml:1: model.shape.name: must be one of round, square, got 3");
}

TEST(RecipeErrors, S5OutOfRange) {
  EXPECT_EQ(read_error("model.width = 0"),
            "r.toml:1: model.width: must be a whole number in [1, 4096], got 0");
  EXPECT_EQ(read_error("model.dropout = 1.0"),
            "r.toml:1: model.dropout: must be a number in [0, 1), got 1.0");
  EXPECT_EQ(read_error("model.dropout = nan"),
            "r.toml:1: model.dropout: must be a number in [0, 1), got nan");
  EXPECT_EQ(read_error("model.shape.radius = 0"),
            "r.toml:1: model.shape.radius: must be a number > 0, got 0");
  EXPECT_EQ(read_error("model.scale = inf"), "r.toml:1: model.scale: must be a number, got inf");
}

TEST(RecipeErrors, S5FieldsWithoutLimitsHaveThoseOfTheirType) {
  EXPECT_EQ(read_error("model.limit = 9223372036854775807"),
            "r.toml:1: model.limit: must be a whole number in [-1000000000, 1000000000], got "
            "9223372036854775807");
  EXPECT_EQ(read_error("model.scale = -1e31"),
            "r.toml:1: model.scale: must be a number in [-1e+30, 1e+30], got -1e+31");
  EXPECT_EQ(read_error("model.shape.name = 'square'\nmodel.shape.side = 2147483648"),
            "r.toml:2: model.shape.side: must be a whole number in [1, 1000000000], got "
            "2147483648");
  EXPECT_EQ(read_error("model.shape.name = 'square'\nmodel.shape.side = 0"),
            "r.toml:2: model.shape.side: must be a whole number >= 1, got 0");
  std::string list = "model.weights = [1";
  for (int i = 0; i < 10'000; ++i) list += ",1";
  EXPECT_EQ(read_error(list + "]"),
            "r.toml:1: model.weights: must be a list of at most 10000 elements, got 10001");
}

TEST(RecipeErrors, S5UnknownName) {
  EXPECT_EQ(read_error("\n[model.shape]\nname = 'sqare'"),
            "r.toml:3: model.shape.name: unknown \"sqare\", did you mean \"square\"?");
  EXPECT_EQ(read_error("[model.shape]\nname = 'square'\ncolor = 'blue'"),
            "r.toml:3: model.shape.color: unknown \"blue\", known: red, green");
}

TEST(RecipeErrors, S5DuplicatesAndSyntaxNameTheLine) {
  EXPECT_EQ(read_error("seed = 1\nseed = 2\n").substr(0, 10), "r.toml:2: ");
  EXPECT_EQ(read_error("[model]\nwidth = 1\n[model]\n").substr(0, 10), "r.toml:3: ");
  EXPECT_EQ(read_error("seed = \n").substr(0, 10), "r.toml:1: ");
  EXPECT_EQ(read_error("seed = 99999999999999999999\n").substr(0, 10), "r.toml:1: ");
  EXPECT_EQ(read_error(std::string("seed = 1\n\0", 10)).substr(0, 10), "r.toml:2: ");
  EXPECT_EQ(read_error("data = '\xFF'\n").substr(0, 10), "r.toml:1: ");
}

TEST(RecipeErrors, S5HostileNestingIsRefused) {
  std::string dots = "a";
  for (int i = 0; i < 100000; ++i) dots += ".a";
  EXPECT_EQ(read_error("\n" + dots + " = 1"), "r.toml:2: a line may hold at most 200 dots");
  const std::string brackets = "seed = " + std::string(100000, '[');
  EXPECT_EQ(read_error(brackets).substr(0, 10), "r.toml:1: ");
  std::string nested;
  for (int i = 0; i < 2000; ++i) nested += "a" + std::string(" = [\n{");
  EXPECT_NE(read_error(nested), "no error");
}

TEST(RecipeErrors, S5LettersOutsideOfAscii) {
  EXPECT_EQ(read_error("seed = 1\n\xC3\xA9 = 2\n").substr(0, 10), "r.toml:2: ");
  EXPECT_EQ(read_error("seed = 1\xC9\xA1\n").substr(0, 10), "r.toml:1: ");
  EXPECT_EQ(read_error("data = \"\xC3\xA9\" # \xC3\xA9\n"), "no error");
}

class RecipeFiles : public testing::Test {
 protected:
  std::string error_of(const std::string& name) {
    TestOptions options;
    return message_of([&] { read_recipe(folder.path() / name, fields_of(options)); });
  }
  std::string in_folder(const std::string& text) const { return (folder.path() / text).string(); }
  test::TemporaryFolder folder;
};

TEST_F(RecipeFiles, BaseComesFirst) {
  std::filesystem::create_directory(folder.path() / "sub");
  folder.write("base.toml", "seed = 5\n[model.shape]\nname = 'square'\nside = 3\n");
  folder.write("sub/r.toml", "base = '../base.toml'\ndata = 'x'\nmodel.shape.color = 'green'\n");
  TestOptions options;
  read_recipe(folder.path() / "sub/r.toml", fields_of(options));
  EXPECT_EQ(options.seed, 5);
  EXPECT_EQ(options.data, "x");
  EXPECT_EQ(options.model.shape.get<SquareOptions>().side, 3);
  EXPECT_EQ(options.model.shape.get<SquareOptions>().color, Color::kGreen);
}

TEST_F(RecipeFiles, AnotherChoiceThanThatOfTheBaseStartsFromItsDefaults) {
  folder.write("base.toml", "[model.shape]\nname = 'square'\nside = 3\n");
  folder.write("r.toml", "base = 'base.toml'\nmodel.shape.name = 'round'\n");
  TestOptions options;
  read_recipe(folder.path() / "r.toml", fields_of(options));
  EXPECT_EQ(options.model.shape.get<RoundOptions>().radius, 1.5);
}

TEST_F(RecipeFiles, S5BaseOfABaseIsRefusedAlsoInACycle) {
  folder.write("a.toml", "base = 'b.toml'\n");
  folder.write("b.toml", "seed = 1\nbase = 'c.toml'\n");
  folder.write("c.toml", "seed = 1\n");
  folder.write("self.toml", "base = 'self.toml'\n");
  EXPECT_EQ(error_of("a.toml"), in_folder("b.toml") +
                                    ":2: base: a recipe that is a base may have none itself, and " +
                                    in_folder("a.toml") + " is based on it");
  EXPECT_EQ(error_of("self.toml").substr(0, in_folder("self.toml:1: base: a").size()),
            in_folder("self.toml:1: base: a"));
}

TEST_F(RecipeFiles, S5ErrorsInABaseNameTheBase) {
  folder.write("base.toml", "seed = 1\nsede = 2\n");
  folder.write("r.toml", "base = 'base.toml'\n");
  EXPECT_EQ(error_of("r.toml"),
            in_folder("base.toml") + ":2: unknown key \"sede\", did you mean \"seed\"?");
}

TEST_F(RecipeFiles, S5MissingFiles) {
  folder.write("r.toml", "seed = 1\nbase = 'none.toml'\n");
  EXPECT_EQ(error_of("none.toml"),
            in_folder("none.toml") + ": can not open: No such file or directory");
  EXPECT_EQ(error_of("r.toml"), in_folder("r.toml") + ":2: " + in_folder("none.toml") +
                                    ": can not open: No such file or directory");
  folder.write("s.toml", "base = 3\n");
  EXPECT_EQ(error_of("s.toml"), in_folder("s.toml") + ":1: base: must be text, got 3");
}

TEST_F(RecipeFiles, S5FileOf100MegabytesIsRefusedUnread) {
  folder.write("big.toml", "");
  std::filesystem::resize_file(folder.path() / "big.toml", 100 << 20);
  EXPECT_EQ(error_of("big.toml"),
            in_folder("big.toml") + ": must have at most 1048576 bytes, has more");
}

TEST(Overrides, NeedNoQuotesAndComeInOrder) {
  TestOptions options;
  apply_overrides({"model.shape.side=8", "model.shape.name=square", "data=a,b = c", "seed=1",
                   "seed=2", "model.cutoffs=5,6", "model.weights=[1, 2.5]", "model.names=x,y",
                   "model.tied=false", "model.scale=2"},
                  fields_of(options));
  EXPECT_EQ(options.model.shape.get<SquareOptions>().side, 8);
  EXPECT_EQ(options.data, "a,b = c");
  EXPECT_EQ(options.seed, 2);
  EXPECT_EQ(options.model.cutoffs, (std::vector<int64_t>{5, 6}));
  EXPECT_EQ(options.model.weights, (std::vector<double>{1, 2.5}));
  EXPECT_EQ(options.model.names, (std::vector<std::string>{"x", "y"}));
  EXPECT_FALSE(options.model.tied);
  EXPECT_EQ(options.model.scale, 2.0);
  apply_overrides({"model.scale=none", "data='q'", "model.names=", "model.cutoffs="},
                  fields_of(options));
  EXPECT_FALSE(options.model.scale);
  EXPECT_EQ(options.data, "q");
  EXPECT_TRUE(options.model.names.empty());
  EXPECT_TRUE(options.model.cutoffs.empty());
}

TEST(Overrides, S5ErrorsNameTheAssignment) {
  EXPECT_EQ(set_error("seed"), "--set seed: must have the form a.b=value");
  EXPECT_EQ(set_error("=3"), "--set =3: must have the form a.b=value");
  EXPECT_EQ(set_error("sead=3"), "--set sead=3: unknown key \"sead\", did you mean \"seed\"?");
  EXPECT_EQ(set_error("seed=x"), "--set seed=x: seed: must be a whole number, got \"x\"");
  EXPECT_EQ(set_error("seed=1\nbase=2"),
            "--set seed=1\nbase=2: must be UTF-8 without control characters");
  EXPECT_EQ(set_error("seed={}"), "--set seed={}: seed: must be a whole number, got a table");
  EXPECT_EQ(set_error("model.width=5000"),
            "--set model.width=5000: model.width: must be a whole number in [1, 4096], got 5000");
  EXPECT_EQ(set_error("model.shape.name=cirle"),
            "--set model.shape.name=cirle: model.shape.name: unknown \"cirle\", known: round, "
            "square");
}

TEST(Describe, HasOneEntryPerField) {
  TestOptions options;
  const std::vector<FieldText> fields = describe(fields_of(options));
  ASSERT_EQ(fields.size(), 12u);
  EXPECT_EQ(fields[2].key, "model.width");
  EXPECT_EQ(fields[2].type, "a whole number in [1, 4096]");
  EXPECT_EQ(fields[2].value, "128");
  EXPECT_EQ(fields[2].help, "channels");
  EXPECT_EQ(fields[4].value, "");
  EXPECT_EQ(fields[6].type, "one of round, square");
}

TEST(Differences, NameEachFieldThatDiffersOrIsNew) {
  TestOptions before, now;
  now.seed = 2;
  now.model.limit.reset();
  now.model.shape.choose("square");
  EXPECT_EQ(differences(fields_of(now), fields_of(before)),
            (std::vector<std::string>{
                "seed: 2, was 1", "model.shape.name: \"square\", was \"round\"",
                "model.shape.side: 4, was absent", "model.shape.color: \"red\", was absent",
                "model.limit: absent, was 7", "model.shape.radius: absent, was 1.5"}));
}

TEST(ChosenOptions, CopiesAreIndependent) {
  ChosenOptions a(shapes(), "round");
  ChosenOptions b = a;
  b.get<RoundOptions>().radius = 9;
  EXPECT_EQ(a.get<RoundOptions>().radius, 1.5);
  a = b;
  EXPECT_EQ(a.get<RoundOptions>().radius, 9);
  a.choose("round");  // the same again keeps what was set
  EXPECT_EQ(a.get<RoundOptions>().radius, 9);
  EXPECT_EQ(message_of([&] { a.choose("rund"); }),
            "name: unknown \"rund\", did you mean \"round\"?");
  EXPECT_EQ(a.name(), "round");
}

TEST(RecipeValues, KnowNoOptions) {
  const auto values = recipe_values(
      "name = \"a b\"\nseed = 3\n[task.model]\ncutoffs = [1, 2]\nrate = 0.5\nflag = true\n", "x");
  EXPECT_EQ(values, (std::map<std::string, std::string>{{"name", "a b"},
                                                        {"seed", "3"},
                                                        {"task.model.cutoffs", "[1, 2]"},
                                                        {"task.model.flag", "true"},
                                                        {"task.model.rate", "0.5"}}));
  EXPECT_TRUE(message_of([] { recipe_values("a =", "f.toml"); }).starts_with("f.toml:1: "));
}

}  // namespace
}  // namespace elliptical
