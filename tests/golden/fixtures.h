// A checkpoint of tests/data/golden with its graph and recorded logits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "files/gguf.h"
#include "graph/passes.h"
#include "models/family.h"
#include "support/logits.h"

namespace hearth::testing {

struct Fixture {
  Catalog catalog;
  ModelGraph model;  // no pass has run
  Golden golden;
};

// Names of all checkpoints, in order.
std::vector<std::string> fixture_names();
// nullopt when no family of this version runs it.
std::optional<Fixture> load_fixture(const std::string& name);

}  // namespace hearth::testing
