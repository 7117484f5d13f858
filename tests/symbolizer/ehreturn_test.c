/* SPDX-License-Identifier: Apache-2.0 */
/* The code of functions that throw, as compilers write it, and as they do not. */
#include "symbolizer/ehreturn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define START 0x1000

/* offset: r1 at cfa-64, r0 at cfa-72 */
static const uint8_t program[] = {0x81, 0x08, 0x80, 0x09};

static const uint8_t code[] = {
    0x55, 0x48, 0x89, 0xe5,			  /*  0 push %rbp; mov %rsp,%rbp */
    0x4c, 0x8d, 0xbd, 0x60, 0xfc, 0xff, 0xff,	  /*  4 lea -0x3a0(%rbp),%r15 */
    0x4c, 0x89, 0xff,				  /* 11 mov %r15,%rdi */
    0x52, 0x50,					  /* 14 push %rdx; push %rax */
    0x48, 0x8b, 0x55, 0x08,			  /* 16 mov 0x8(%rbp),%rdx */
    0xe8, 0, 0, 0, 0,				  /* 20 call uw_init_context_1 */
    0x4c, 0x89, 0xff,				  /* 25 mov %r15,%rdi */
    0xe8, 1, 0, 0, 0,				  /* 28 call uw_install_context_1 */
    0xe8, 2, 0, 0, 0,				  /* 33 call _Unwind_DebugHook */
    0x48, 0x8b, 0x6d, 0x00,			  /* 38 mov 0x0(%rbp),%rbp */
    0x48, 0x89, 0xcc, 0x59, 0xff, 0xe1,		  /* 42 mov %rcx,%rsp; pop %rcx; jmp *%rcx */
};

static const struct cfi_fde fde = {
    .start = START, .end = START + sizeof(code), .program = program, .program_bytes = sizeof(program)};

static const struct table_rule noted = {.cfa = RULE_REGISTER,
					.cfa_register = RULE_FP,
					.fp = RULE_FP_CFA,
					.cfa_offset = 16,
					.fp_offset = -16,
					.ra_offset = -8};

static struct table_rule at(const struct ehreturn *found, uint64_t offset)
{
	struct table_rule rule = noted;

	ehreturn_correct(found, START + offset, &rule);
	return rule;
}

static void test_known_code(void **state)
{
	struct table_rule rule;
	struct ehreturn found;

	(void)state;
	assert_true(ehreturn_may_be(&fde));
	ehreturn_find(&fde, code, sizeof(code), &found);
	assert_int_equal(found.edges[0], START + 25);
	assert_int_equal(found.edges[1], START + 32);
	assert_int_equal(found.edges[2], START + 42);
	rule = at(&found, 24);
	assert_memory_equal(&rule, &noted, sizeof(rule));
	rule = at(&found, 25);
	assert_int_equal(rule.ra_offset, -0x3a0 + 0x98 - 16);
	assert_int_equal(rule.fp, RULE_FP_CFA);
	rule = at(&found, 32);
	assert_int_equal(rule.ra_offset, -0x3a0 + 0x98 - 16);
	assert_int_equal(rule.fp, RULE_FP_UNDEFINED);
	rule = at(&found, 42);
	assert_memory_equal(&rule, &noted, sizeof(rule));
}

/* A rule that says something else than a frame by rbp, on the way out for example, is left as it is. */
static void test_other_rules(void **state)
{
	struct table_rule rule = {.cfa = RULE_REGISTER, .cfa_offset = 8, .ra_offset = -8}, before = rule;
	struct ehreturn found;

	(void)state;
	ehreturn_find(&fde, code, sizeof(code), &found);
	ehreturn_correct(&found, START + 30, &rule);
	assert_memory_equal(&rule, &before, sizeof(rule));
}

/* Without any one of its instructions it is another function, about which nothing is said. */
static void test_other_code(void **state)
{
	static const size_t needed[] = {5, 17, 26, 28, 39, 44};
	uint8_t other[sizeof(code)];
	struct ehreturn found;

	(void)state;
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		memcpy(other, code, sizeof(code));
		other[needed[i]] ^= 0x40;
		ehreturn_find(&fde, other, sizeof(other), &found);
		assert_int_equal(found.edges[0], 0);
	}
	for (size_t n = 0; n < sizeof(code) - 4; n++) {
		ehreturn_find(&fde, code, n, &found);
		assert_int_equal(found.edges[2], 0);
	}
}

static void test_other_notes(void **state)
{
	static const uint8_t apart[] = {0x81, 0x08, 0x80, 0x0b};
	struct cfi_fde other = fde;

	(void)state;
	other.program = apart;
	assert_false(ehreturn_may_be(&other));
	other.program_bytes = 0;
	assert_false(ehreturn_may_be(&other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_known_code),
	    cmocka_unit_test(test_other_rules),
	    cmocka_unit_test(test_other_code),
	    cmocka_unit_test(test_other_notes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
