/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fuzz target of what others may write into our sockets and memory: a function that takes any
 * bytes, and one that makes the inputs from which mutations begin.
 *
 *   build/tests/fuzz/NAME_test     those, and some thousand mutations, the same each time
 *   FUZZ_CORPUS=DIR build/tests/fuzz/NAME_test      writes the inputs into DIR, for
 *   make build/tests/fuzz/NAME_fuzz && build/tests/fuzz/NAME_fuzz DIR      as long as you like
 */
#ifndef SCONCE_TESTS_FUZZ_H
#define SCONCE_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#define FUZZ_BYTES_MAX 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* Input number n in data; how long it is, 0 behind the last. */
size_t fuzz_seed(unsigned n, uint8_t data[FUZZ_BYTES_MAX]);
/* Mutations of each seed that the test makes. */
extern const unsigned fuzz_mutations;

#endif
