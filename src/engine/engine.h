// The engine over any model: what Engine::create makes of a Model, and tests of a fake device.
#pragma once

#include <memory>

#include "base/result.h"
#include "engine/scheduler.h"
#include "hearth/engine.h"

namespace hearth {

// Starts the engine thread. `keep` is released when the engine is gone: it owns what `model` points to.
Result<std::unique_ptr<Engine>> make_engine(EngineModel model, const EngineOptions& options,
                                            std::shared_ptr<void> keep);

}  // namespace hearth
