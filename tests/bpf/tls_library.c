/* SPDX-License-Identifier: Apache-2.0 */
/* A variable of which each thread has one; compiled for each way to find it that a library has. */
__thread void *tls_word;
void **tls_word_at(void);

void **tls_word_at(void)
{
	return &tls_word;
}
