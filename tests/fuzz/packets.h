/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of a fuzzer as packets on a socket. Each is
 *
 *   u8 kind of message | u8: how many descriptors (low half), PACKETS_RAW | u16 bytes | the bytes
 *
 * A message is filled up with zeros to the length of its kind, so that it gets beyond that check; a
 * raw one is what the bytes are. The descriptors are sealed memfds that hold the bytes behind the
 * payload of the message, as a table would be.
 */
#ifndef SCONCE_TESTS_FUZZ_PACKETS_H
#define SCONCE_TESTS_FUZZ_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/messages.h"

#define PACKETS_RAW 0x80

struct packets {
	const uint8_t *at, *end;
};

/* The next one, into this socket. False: there is none, or it takes no more. */
bool packets_send(struct packets *packets, int fd);
/* Append one to data at `at`; where the next one goes. */
size_t packets_add(uint8_t *data, size_t at, enum message_type type, const void *payload,
		   size_t bytes, unsigned fds);
/* Read whatever lies in this socket, and close what came with it. */
void packets_discard(int fd);

#endif
