// Generates the precompiled header of the tests.
