/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "symbolizer/cfifill.h"

#include <string.h>

#include "symbolizer/elfparts.h"

#define CFIFILL_SCAN_BYTES_MAX (16u << 20)
#define CFIFILL_SCANS_MAX      4096
#define CFIFILL_PLT_BYTES_MAX  (16u << 20)
#define CFIFILL_ANY	       0x100 /* in a form: any byte */
#define CFIFILL_FORM_MAX       32

/* sp at the system call is where the kernel put struct ucontext; its sigcontext is 40 bytes on. */
static const struct table_rule signal_rule = {.cfa = RULE_SIGNAL, .cfa_offset = 40};
static const struct table_rule stop_rule = {.cfa = RULE_STOP};
static const struct table_rule call_rule = {.cfa = RULE_REGISTER, .cfa_offset = 8, .ra_offset = -8};

static void cfifill_add(struct cfifills *fills, uint64_t offset, uint64_t bytes,
			const struct table_rule *rule)
{
	if (fills->n < CFIFILL_MAX && bytes > 0)
		fills->fills[fills->n++] = (struct cfifill){offset, bytes, *rule};
}

#define ANY4 CFIFILL_ANY, CFIFILL_ANY, CFIFILL_ANY, CFIFILL_ANY

static bool cfifill_matches(const uint8_t *code, const uint16_t *form, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (form[i] != CFIFILL_ANY && form[i] != code[i])
			return false;
	return true;
}

/* First instructions of a process, and the ones with which their function ends. */
static const struct {
	uint16_t form[CFIFILL_FORM_MAX];
	uint8_t form_bytes, last[3], last_bytes;
} entries[] = {
    /* musl: xor %rbp,%rbp; mov %rsp,%rdi; lea _DYNAMIC,%rsi; and $-16,%rsp; call */
    {{0x48, 0x31, 0xed, 0x48, 0x89, 0xe7, 0x48, 0x8d, 0x35, ANY4, 0x48, 0x83, 0xe4, 0xf0, 0xe8,
      ANY4},
     22,
     {0},
     0},
    /* glibc's ld.so: mov %rsp,%rdi; call _dl_start; mov %rax,%r12; ... jmp *%r12 */
    {{0x48, 0x89, 0xe7, 0xe8, ANY4, 0x49, 0x89, 0xc4}, 11, {0x41, 0xff, 0xe4}, 3},
    /* glibc's crt1 before it had notes: xor %ebp,%ebp; mov %rdx,%r9; pop %rsi; ... hlt */
    {{0x31, 0xed, 0x49, 0x89, 0xd1, 0x5e}, 6, {0xf4}, 1},
};

#define CFIFILL_ENTRY_BYTES 128

void cfifill_entry(struct elffile *file, struct cfifills *fills)
{
	uint64_t offset, n;
	const uint8_t *code, *end;

	if (!elfparts_entry(file, &offset) || offset >= file->size_bytes)
		return;
	n = file->size_bytes - offset;
	n = n < CFIFILL_ENTRY_BYTES ? n : CFIFILL_ENTRY_BYTES;
	code = elffile_bytes(file, offset, n);
	for (size_t i = 0; code && i < sizeof(entries) / sizeof(entries[0]); i++) {
		size_t form = entries[i].form_bytes, last = entries[i].last_bytes;

		if (form > n || !cfifill_matches(code, entries[i].form, form))
			continue;
		end = last ? memmem(code + form, n - form, entries[i].last, last) : code + form;
		if (end)
			cfifill_add(fills, offset, (uint64_t)(end - code) + last, &stop_rule);
		return;
	}
}

bool cfifill_is_sigreturn(const uint8_t *code)
{
	/* mov $__NR_rt_sigreturn,%rax; syscall */
	return !memcmp(code, "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", CFIFILL_SIGRETURN_BYTES);
}

/*
 * Where a thread begins in musl, which nobody called: xor %ebp,%ebp; pop %rdi; call *%r9;
 * mov %eax,%edi; xor %eax,%eax; mov $__NR_exit,%al; syscall
 */
static const uint8_t thread_start[] = {0x31, 0xed, 0x5f, 0x41, 0xff, 0xd1, 0x89,
				       0xc7, 0x31, 0xc0, 0xb0, 0x3c, 0x0f, 0x05};

static bool cfifill_is_thread_start(const uint8_t *code, uint64_t bytes)
{
	return bytes >= sizeof(thread_start) && !memcmp(code, thread_start, sizeof(thread_start));
}

void cfifill_scan(struct elffile *file, uint64_t start, uint64_t end, struct cfifills *fills)
{
	const uint8_t *code;

	if (end - start > CFIFILL_SCAN_BYTES_MAX - fills->scanned_bytes)
		end = start + CFIFILL_SCAN_BYTES_MAX - fills->scanned_bytes;
	if (end - start < CFIFILL_SIGRETURN_BYTES || fills->scanned_n == CFIFILL_SCANS_MAX)
		return;
	fills->scanned_n++;
	fills->scanned_bytes += end - start;
	code = elffile_bytes(file, start, end - start);
	for (uint64_t i = 0; code && i + CFIFILL_SIGRETURN_BYTES <= end - start; i++) {
		uint64_t at = start + i;

		/* The handler "returns" to its first byte: the search for a caller looks before it.
		 */
		if (code[i] == 0x48 && cfifill_is_sigreturn(code + i))
			cfifill_add(fills, at ? at - 1 : at, CFIFILL_SIGRETURN_BYTES + 1,
				    &signal_rule);
		else if (code[i] == 0x31 && cfifill_is_thread_start(code + i, end - start - i))
			cfifill_add(fills, at, sizeof(thread_start), &stop_rule);
	}
}

/* Entries of a lazy .plt: what stands behind the 16 bytes of its head. */
static const struct {
	uint16_t form[16];
	uint8_t limit; /* offset behind the push */
} plt_entries[] = {
    {{0xff, 0x25, ANY4, 0x68, ANY4, 0xe9, ANY4}, 11},
    {{0xf3, 0x0f, 0x1e, 0xfa, 0x68, ANY4, 0xe9, ANY4, CFIFILL_ANY, CFIFILL_ANY}, 9},
    {{0xf3, 0x0f, 0x1e, 0xfa, 0x68, ANY4, 0xf2, 0xe9, ANY4, CFIFILL_ANY}, 9},
};

static void cfifill_lazy_plt(const uint8_t *code, uint64_t offset, uint64_t bytes,
			     struct cfifills *fills)
{
	/* push GOT+8(%rip); [bnd] jmp *GOT+16(%rip): the link map was pushed, then the index */
	static const uint16_t head[] = {0xff, 0x35, ANY4};
	struct table_rule rule = call_rule;

	if (bytes < 32 || bytes % 16 || !cfifill_matches(code, head, 6))
		return;
	for (size_t i = 0; i < sizeof(plt_entries) / sizeof(plt_entries[0]); i++) {
		for (uint64_t at = 16; at < bytes; at += 16)
			if (!cfifill_matches(code + at, plt_entries[i].form, 16))
				goto next;
		rule.cfa_offset = 16;
		cfifill_add(fills, offset, 6, &rule);
		rule.cfa_offset = 24;
		cfifill_add(fills, offset + 6, 10, &rule);
		rule.cfa = RULE_PLT;
		rule.cfa_offset = 8;
		rule.add = plt_entries[i].limit;
		cfifill_add(fills, offset + 16, bytes - 16, &rule);
		return;
next:;
	}
}

void cfifill_plt(struct elffile *file, struct cfifills *fills)
{
	/* Stubs that only jump. */
	static const char *const jumps[] = {".plt.got", ".plt.sec"};
	const uint8_t *code;
	GElf_Shdr header;
	uint64_t offset;

	for (size_t i = 0; i < 2; i++)
		if (elfparts_find(file, jumps[i], &header) == 0 &&
		    (header.sh_flags & SHF_EXECINSTR) &&
		    elfparts_code(file, header.sh_addr, &offset) &&
		    header.sh_size < CFIFILL_PLT_BYTES_MAX)
			cfifill_add(fills, offset, header.sh_size, &call_rule);
	if (elfparts_find(file, ".plt", &header) || !(header.sh_flags & SHF_EXECINSTR) ||
	    header.sh_addr % 16 || header.sh_size >= CFIFILL_PLT_BYTES_MAX ||
	    !elfparts_code(file, header.sh_addr, &offset))
		return;
	code = elffile_bytes(file, offset, header.sh_size);
	if (code)
		cfifill_lazy_plt(code, offset, header.sh_size, fills);
}
