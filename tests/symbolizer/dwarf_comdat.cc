/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two units with the same inline functions, of which the linker keeps one each: both say that it is
 * theirs. In the first one's code, which is in one piece, the second one's are small holes.
 */
#define EACH(DO) \
	DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) \
	DO(15) DO(16) DO(17) DO(18) DO(19) DO(20)
#ifdef FIRST
#define OWN(n) \
	__attribute__((noinline, used)) int own_##n(int x) \
	{ \
		return x % (n + 7) + (x << n) - x / (n + 11); \
	}
#else
#define OWN(n)
#endif
#define BOTH(n) \
	inline __attribute__((noinline, used)) int shared_##n(int x) \
	{ \
		return x * n + (x >> 3); \
	} \
	OWN(n)

EACH(BOTH)

#ifdef FIRST
int main(int argc, char **)
{
	return own_1(argc);
}
#endif
