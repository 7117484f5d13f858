/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/bpf/scripts.h"

#include <asm/prctl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/langs.h"

#define BYTECODE 0x40	/* its offset in a code object */
#define BIAS	 0x3000 /* any: what it is added to is counted with it */

#define ALONE(where) __attribute__((noinline, used, section(where)))

extern const char __start_scripts_at_loop[], __stop_scripts_at_loop[];
extern const char __start_scripts_at_c[], __stop_scripts_at_c[];

struct scripts_state scripts_state;
struct scripts_frame scripts_frame[SCRIPTS_MAX];
struct scripts_code scripts_code[SCRIPTS_MAX];
__thread struct scripts_state *scripts_thread;

static volatile uint64_t scripts_counter;
static volatile bool scripts_no_thread;

static uint64_t scripts_thread_pointer(void)
{
	uint64_t value;

	__asm__("movq %%fs:0, %0" : "=r"(value));
	return value;
}

void scripts_make(const int *functions)
{
	memset(scripts_frame, 0, sizeof(scripts_frame));
	for (int i = 0; i < SCRIPTS_MAX && functions[i] >= 0; i++) {
		struct scripts_code *code = &scripts_code[functions[i]];
		struct scripts_frame *frame = &scripts_frame[i];

		frame->code = code;
		frame->at = (uint64_t)code + BYTECODE + 2u * (uint32_t)functions[i];
		frame->owner = functions[i] ? 0 : PYTHON_OWNER_C;
		frame->back = functions[i + 1] < 0 ? NULL : frame + 1;
		*code = (struct scripts_code){.name = 0x1000u + (uint64_t)functions[i],
					      .file = 0x2000,
					      .lines = 0x3000,
					      .first = (uint32_t)functions[i]};
	}
	scripts_state.thread = scripts_thread_pointer();
	scripts_state.frame = functions[0] < 0 ? NULL : scripts_frame;
	scripts_thread = &scripts_state;
}

uint32_t scripts_where(int function)
{
	return 2 * (uint32_t)function;
}

uint64_t scripts_cookie(int function)
{
	const struct scripts_code *code = &scripts_code[function];

	return python_cookie(code->name, code->file, code->lines, code->first);
}

uint64_t scripts_vaddr(const struct table_runtime *runtime, const struct record_range *own,
		       const void *at)
{
	return (uint64_t)at - (own->start - own->offset - runtime->bias);
}

void scripts_runtime(struct table_runtime *runtime, const struct record_range *own)
{
	uint64_t in_file = own->offset - own->start;

	*runtime = (struct table_runtime){
	    .language = LANG_PYTHON,
	    .version = 312,
	    .bias = BIAS,
	    .thread = TABLE_THREAD_TP,
	    .thread_at = (uint64_t)&scripts_thread - scripts_thread_pointer(),
	    .fields =
		{
		    [PYTHON_FORM] = PYTHON_SHIM,
		    [PYTHON_STATE_ID] = offsetof(struct scripts_state, thread),
		    [PYTHON_STATE_FRAME] = offsetof(struct scripts_state, frame),
		    [PYTHON_FRAME_CODE] = offsetof(struct scripts_frame, code),
		    [PYTHON_FRAME_BACK] = offsetof(struct scripts_frame, back),
		    [PYTHON_FRAME_LASTI] = offsetof(struct scripts_frame, at),
		    [PYTHON_FRAME_MARK] = offsetof(struct scripts_frame, owner),
		    [PYTHON_BYTECODE] = BYTECODE,
		    [PYTHON_CODE_NAME] = offsetof(struct scripts_code, name),
		    [PYTHON_CODE_FILE] = offsetof(struct scripts_code, file),
		    [PYTHON_CODE_LINES] = offsetof(struct scripts_code, lines),
		    [PYTHON_CODE_FIRST] = offsetof(struct scripts_code, first),
		},
	};
	/* The second one: nothing depends on which it is. */
	runtime->loops[1].start = (uint32_t)((uint64_t)__start_scripts_at_loop + in_file);
	runtime->loops[1].end = (uint32_t)((uint64_t)__stop_scripts_at_loop + in_file);
}

static ALONE("scripts_at_c") void scripts_leaf(void)
{
	if (scripts_no_thread)
		syscall(SYS_arch_prctl, ARCH_SET_FS, 0);
	while (++scripts_counter)
		;
}

static void scripts_call(int deeper);

static ALONE("scripts_at_loop") void scripts_loop(int deeper)
{
	if (deeper)
		scripts_call(deeper - 1);
	else
		scripts_leaf();
	scripts_counter = 0;
}

static ALONE("scripts_at_c") void scripts_call(int deeper)
{
	scripts_loop(deeper);
	scripts_counter = 0;
}

void scripts_work(void)
{
	scripts_call(1);
	scripts_counter = 0;
}

void scripts_work_lost(void)
{
	scripts_no_thread = true;
	scripts_work();
}

static ALONE("scripts_at_c") void scripts_call_made(void (*made)(void))
{
	made();
	scripts_counter = 0;
}

void scripts_work_made(void)
{
	/*
	 * push %rbp; mov %rsp, %rbp; four times push $0, or a walker might take what stands there
	 * for the way out of code that it knows; jmp to itself
	 */
	static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x6a, 0,	   0x6a,
				       0,    0x6a, 0,	 0x6a, 0,    0xeb, 0xfe};
	void *made = mmap(NULL, sizeof(code), PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (made == MAP_FAILED)
		return;
	memcpy(made, code, sizeof(code));
	scripts_call_made((void (*)(void))made);
	scripts_counter = 0;
}

bool scripts_in_loop(uintptr_t pc)
{
	return pc >= (uintptr_t)__start_scripts_at_loop && pc <= (uintptr_t)__stop_scripts_at_loop;
}

bool scripts_in_c(uintptr_t pc)
{
	return pc >= (uintptr_t)__start_scripts_at_c && pc <= (uintptr_t)__stop_scripts_at_c;
}
