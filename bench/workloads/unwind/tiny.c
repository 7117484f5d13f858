/* SPDX-License-Identifier: Apache-2.0 */
/* Functions so short that the way to them through the PLT takes as long as they do. */
long tiny_a(long x);
long tiny_b(long x);

long tiny_a(long x)
{
	return x * 3;
}

long tiny_b(long x)
{
	return x ^ 5;
}
