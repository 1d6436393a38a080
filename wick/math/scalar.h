#pragma once

// The elementwise functions of wick, written once for every processor: branch-free, fma spelled
// out, no call into a maths library. The same source gives the same bits wherever fma, division and
// square root are correctly rounded, results below the normal range are kept, and the compiler
// contracts nothing (-ffp-contract=off and its like).
//
// The polynomials are minimax fits with coefficients rounded to their type, printed by
// tools/math_coefficients.sollya. "ulp" is the distance to the true value in units of the last
// place of the true value's binade; the worst found is over all 2^32 floats
// (tests/math/math_exhaustive) and over samples of pairs, for double over random and edge values.

#include "wick/math/error_function.h"
#include "wick/math/exp_log.h"
#include "wick/math/order.h"
#include "wick/math/power.h"
#include "wick/math/rounding.h"
#include "wick/math/sigmoid.h"
#include "wick/math/trigonometry.h"
