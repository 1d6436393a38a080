#pragma once

// The elementwise functions of wick, written once for every processor: branch-free, fma spelled
// out, no call into a maths library. The same source gives the same bits wherever fma, division and
// square root are correctly rounded, results below the normal range are kept, and the compiler
// contracts nothing (-ffp-contract=off and its like).
//
// The polynomials are minimax fits with coefficients rounded to their type, printed by
// tools/math_coefficients.sollya. "ulp" is the distance to the true value in units of the last
// place of the true value's binade; docs/design/numerics/functions.md has the worst found and over
// which inputs, tests/math/math_exhaustive looks for it.

#include "wick/math/error_function.h"
#include "wick/math/exp_log.h"
#include "wick/math/order.h"
#include "wick/math/power.h"
#include "wick/math/rounding.h"
#include "wick/math/sigmoid.h"
#include "wick/math/trigonometry.h"
