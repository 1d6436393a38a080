#pragma once

// The elementwise functions of wick, written once for all processors: branch-free, with explicit
// fma and without calls into a maths library. The source gives the same bits wherever fma, division
// and square root are correctly rounded, denormal results are kept, and the compiler doesn't
// contract operations (-ffp-contract=off or its equivalent).
//
// "Every input" means that a function's result is defined for every bit pattern of its operands;
// otherwise the comment names the domain. The polynomials are minimax fits with coefficients
// rounded to their type, printed by tools/math_coefficients.sollya. "ulp" is the distance to the
// true value in units of the last place of the true value's binade.
// docs/design/numerics/functions.md lists the largest errors found ("worst") and the inputs that
// were tried; tests/math/math_exhaustive searches for them.

#include "wick/math/error_function.h"
#include "wick/math/exp_log.h"
#include "wick/math/order.h"
#include "wick/math/power.h"
#include "wick/math/rounding.h"
#include "wick/math/sigmoid.h"
#include "wick/math/trigonometry.h"
