// Drives a backend directly, without the engine: sequences with scattered pages, steps of any mix of rows, logits.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"

namespace hearth::testing {

// A device that tests run on.
struct TestDevice {
  std::string name;  // of make_backend
  std::string isa;
  std::string label() const { return isa.empty() ? name : name + "_" + isa; }
  friend std::ostream& operator<<(std::ostream& out, const TestDevice& device) { return out << device.label(); }
};
// The reference and every forced variant of the CPU. Some may not exist on this machine: then the backend cannot be
// made.
std::span<const TestDevice> test_devices();
// nullptr when this build or machine lacks it (kUnsupported, kNotFound); any other error aborts.
std::unique_ptr<Backend> make_test_backend(const TestDevice& device);

struct RunnerOptions {
  KvType kv_type = KvType::kF32;
  Activations activations = Activations::kDefault;
  WeightLayout layout = WeightLayout::kAuto;
  int64_t pages = 256;         // of each KV group
  bool deterministic = false;  // Plan::deterministic
  uint32_t seed = 1;           // of the order in which pages are handed out
};

enum class WantLogits { kAll, kLast };  // of every row, or of the last row of each sequence
enum class Output { kLogits, kHidden };

class Runner {
 public:
  // Graph and backend must outlive it. An error of the backend aborts: tests of errors use the backend itself.
  Runner(Backend& backend, const Graph& graph, const RunnerOptions& options = {});

  int add_sequence();
  void remove_sequence(int sequence);  // its pages are given back; the id is not used again
  int64_t length(int sequence) const { return sequences_.at(sequence).length; }
  // Forgets all positions from `length` on. Pages that a window freed do not come back.
  void rewind(int sequence, int64_t length);

  struct Part {
    int sequence = 0;
    std::span<const int32_t> tokens;  // appended to it
  };
  // One step; returns logits [rows, vocab] of the rows that were asked for, in order, or their hidden states.
  std::vector<float> step(std::span<const Part> parts, PlanKind kind, WantLogits want = WantLogits::kAll,
                          Output output = Output::kLogits);

  // Appends tokens to one sequence in steps of at most `chunk` rows; logits or hidden states of all of them.
  std::vector<float> append(int sequence, std::span<const int32_t> tokens, PlanKind kind, int64_t chunk,
                            Output output = Output::kLogits);

  int64_t vocab() const { return graph_.value(graph_.logits).cols; }
  DeviceModel& model() { return *model_; }

 private:
  struct Sequence {
    int64_t length = 0;
    std::vector<std::vector<int32_t>> pages;  // [kv group][logical page]
  };
  struct Recorded {
    std::unique_ptr<Plan> plan;
    std::unique_ptr<Executable> executable;
  };
  Recorded& recorded(Bucket bucket);
  void make_room(Sequence& sequence, int64_t rows);

  const Graph& graph_;
  bool deterministic_;
  std::unique_ptr<DeviceModel> model_;
  std::vector<std::vector<int32_t>> free_pages_;  // [kv group], in random order
  std::map<int, Sequence> sequences_;
  std::map<std::pair<PlanKind, int64_t>, Recorded> recorded_;
  int next_id_ = 0;
};

}  // namespace hearth::testing
