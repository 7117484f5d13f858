/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/dwarflimit.h"

#include <errno.h>

#define FIRST 32

int dwarflimit_grow(const struct dwarflimit *limit, void **array, uint32_t n, uint32_t *room,
		    size_t element)
{
	uint64_t more = *room ? *room + *room / 2ull : FIRST;
	void *grown;

	if (n < *room)
		return 0;
	if (n * element >= limit->bytes_max || more > UINT32_MAX)
		return -EFBIG;
	grown = realloc(*array, more * element);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	*room = (uint32_t)more;
	return 0;
}
