// SPDX-License-Identifier: MIT
#include "elliptical/report/section.h"

namespace elliptical::report {

SectionParts headline_section(const ReportInput& input);
SectionParts comparison_section(const ReportInput& input);
SectionParts value_section(const ReportInput& input);
SectionParts attack_section(const ReportInput& input);
SectionParts attacked_section(const ReportInput& input);
SectionParts corruption_section(const ReportInput& input);
SectionParts loss_section(const ReportInput& input);
SectionParts speed_section(const ReportInput& input);
SectionParts variant_section(const ReportInput& input);
SectionParts inside_section(const ReportInput& input);
SectionParts number_section(const ReportInput& input);

const std::vector<SectionEntry>& section_table() {
  static const std::vector<SectionEntry> table{
      {.name = "words", .reads = "what the comparison says in sentences", .make = headline_section},
      {.name = "comparison",
       .reads = "the comparison's cells and differences",
       .make = comparison_section},
      {.name = "clean and damaged data",
       .reads = "values of its columns that no other section draws",
       .make = value_section},
      {.name = "attacks",
       .reads = "TaskMeasures::robustness: what is left under attack, over eps",
       .make = attack_section},
      {.name = "attacked pictures",
       .reads = "attack.safetensors of runs",
       .make = attacked_section},
      {.name = "corruptions",
       .reads = "TaskMeasures::robustness: by kind and severity of damage, and its errors",
       .make = corruption_section},
      {.name = "training",
       .reads = "log.jsonl, and TaskMeasures::loss_metric while training",
       .make = loss_section},
      {.name = "speed", .reads = "log.jsonl: *_per_second", .make = speed_section},
      {.name = "variants",
       .reads = "the JSON of `elliptical bench --what variants`",
       .make = variant_section},
      {.name = "inside",
       .reads = "snapshot.safetensors, and records of layers and heads",
       .make = inside_section},
      {.name = "numbers", .reads = "all records but those of parts", .make = number_section},
  };
  return table;
}

}  // namespace elliptical::report
