// Import of an experiment of HPCC's ns-3 simulator: configuration, topology and flows become a scenario file with equal
// parameters.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "lab/exchange/ns3_scenario_text.hpp"

namespace roci::lab {

struct Ns3ImportOptions {
  std::string config;  // configuration file
  std::string base;    // folder of the files that it names; empty: found (see import_ns3)
  std::string out;     // scenario file; the names of the lists are made from its name
};

struct Ns3Import {
  std::string scenario;             // text of the scenario file
  std::vector<Ns3ListFile> lists;   // lists of flows, one for each priority
  std::vector<std::string> notes;   // settings that were not translated, one sentence each
  std::vector<std::string> inputs;  // files that were read
};

// Without a base, the folder of the configuration file, its parent and the current folder are searched. Writes nothing.
Result<Ns3Import> import_ns3(const Ns3ImportOptions& options);
// Writes the scenario file and its lists. Fails, without writing, if one of them would replace an input file.
Status write_ns3_import(const Ns3ImportOptions& options, const Ns3Import& imported);

}  // namespace roci::lab
