#include "wick/models/observe.h"

namespace wick::models {
namespace {

thread_local InputObserver* current = nullptr;

}  // namespace

InputObserver::~InputObserver() = default;

ObserveInputs::ObserveInputs(InputObserver& observer) : before_(current) { current = &observer; }
ObserveInputs::~ObserveInputs() { current = before_; }

InputObserver* input_observer() { return current; }

}  // namespace wick::models
