/* SPDX-License-Identifier: Apache-2.0 */
/* What lang_facts_test looks at: every way to come to a variable, a field, a key, and a cold part.
 */
#include <pthread.h>
#include <stddef.h>

struct forms {
	long padding[5];
	struct forms *next;
};

__thread struct forms *forms_thread;
__thread long forms_second;
static __thread struct forms *forms_hidden;
pthread_key_t forms_key;
struct forms forms_static;
long forms_cold_calls;

struct forms *forms_get_thread(void);
long forms_get_second(void);
struct forms *forms_get_hidden(struct forms *f);
struct forms *forms_get_field(struct forms *f);
struct forms *forms_get_static(void);
void *forms_get_key(void);
void *forms_ask(pthread_key_t *key);
void *forms_give_key(void);
long forms_loop(long n, struct forms *f);

struct forms *forms_get_thread(void)
{
	return forms_thread;
}

long forms_get_second(void)
{
	return (long)forms_thread + forms_second;
}

struct forms *forms_get_hidden(struct forms *f)
{
	struct forms *was = forms_hidden;

	forms_hidden = f;
	return was;
}

struct forms *forms_get_field(struct forms *f)
{
	return f->next->next;
}

struct forms *forms_get_static(void)
{
	return forms_static.next;
}

void *forms_get_key(void)
{
	return pthread_getspecific(forms_key);
}

__attribute__((noinline)) void *forms_ask(pthread_key_t *key)
{
	return pthread_getspecific(*key);
}

void *forms_give_key(void)
{
	return forms_ask(&forms_key);
}

__attribute__((cold, noinline)) static void forms_cold(long i)
{
	if (pthread_getspecific(forms_key))
		forms_cold_calls += i;
}

long forms_loop(long n, struct forms *f)
{
	long sum = 0;

	for (long i = 0; i < n; i++) {
		if (__builtin_expect(f->padding[i % 5] < 0, 0)) {
			forms_cold(i);
			sum -= i * n;
		}
		sum += f->padding[i % 5];
	}
	return sum;
}

int main(void)
{
	forms_thread = &forms_static;
	return !forms_get_thread() || forms_get_second() == forms_loop(5, &forms_static) ||
	       forms_get_hidden(NULL) || forms_get_static() || forms_get_key() || forms_give_key();
}
