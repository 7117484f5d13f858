/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers as people write them: 19, 5s, 1.5m, 8MiB. All refuse signs, trailing bytes and overflow.
 */
#ifndef SCONCE_CLI_UNITS_H
#define SCONCE_CLI_UNITS_H

#include <stdbool.h>
#include <stdint.h>

bool units_number(const char *text, uint64_t *value);
/* B, K = KiB, M = MiB, G = GiB; kB, MB, GB are decimal. */
bool units_bytes(const char *text, uint64_t *bytes);
/* ms, s, m, h; bare_ms is what a number without unit counts in. */
bool units_duration_ms(const char *text, uint64_t bare_ms, uint64_t *ms);
bool units_bool(const char *text, bool *value);

#endif
