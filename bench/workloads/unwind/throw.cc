// SPDX-License-Identifier: Apache-2.0
// Exceptions in flight through frames that have something to destroy: see bench/workloads/README.md.
#include "bench/workloads/unwind/chain.h"

struct guard {
	long &x;
	explicit guard(long &value) : x(value) {}
	~guard() { x++; }
};

static volatile long guarded;

extern "C" {

CHAIN_NOINLINE long chain_end(long x)
{
	if (x >= 0)
		throw x;
	return x;
}

#define GUARDED(name, next)                                                                        \
	CHAIN_NOINLINE long name(long x)                                                           \
	{                                                                                          \
		guard g(x);                                                                        \
		guarded = guarded + next(x + 1);                                                   \
		return guarded + 1;                                                                \
	}
GUARDED(chain_h, chain_end)
GUARDED(chain_g, chain_h)
GUARDED(chain_f, chain_g)
GUARDED(chain_e, chain_f)
GUARDED(chain_d, chain_e)
GUARDED(chain_c, chain_d)
GUARDED(chain_b, chain_c)

CHAIN_NOINLINE long chain_a(long x)
{
	try {
		return chain_b(x) + 1;
	} catch (long &thrown) {
		return thrown & 1;
	}
}

CHAIN_NOINLINE long chain_run(void)
{
	long x = 0;

	while (chain_goes_on())
		for (int i = 0; i < 50; i++)
			x += chain_a(x) & 1;
	return x;
}
}

int main(int argc, char **argv)
{
	chain_begin(argc, argv);
	return chain_run() < 0;
}
