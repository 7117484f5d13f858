/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lang/specimens.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/lang/check.h"

#define SPECIMEN_TRIES 40

static const char python[] = "class A:\n"
			     "    def method(self, n):\n"
			     "        if n: return self.method(n - 1)\n"
			     "        return sorted([3, 1, 2], key=lambda x: self.last(x))\n"
			     "    def last(self, x):\n"
			     "        return sum(self.some(50)) + x\n"
			     "    def some(self, n):\n"
			     "        for i in range(n): yield len(str(i))\n"
			     "print('ready', flush=True)\n"
			     "while True: A().method(3)\n";

static const char php[] =
    "class A {\n"
    "  function method($n) {\n"
    "    if ($n) return $this->method($n - 1);\n"
    "    return array_map(function ($x) { return $this->last($x); }, [3, 1, 2]);\n"
    "  }\n"
    "  function last($x) {\n"
    "    foreach ($this->some(50) as $i) $x += strlen(\"$i\");\n"
    "    return $x;\n"
    "  }\n"
    "  function some($n) { for ($i = 0; $i < $n; $i++) yield $i; }\n"
    "}\n"
    "echo \"ready\\n\";\n"
    "while (true) (new A)->method(3);\n";

static const char ruby[] = "class A\n"
			   "  def m(n)\n"
			   "    return m(n - 1) if n > 0\n"
			   "    [3, 1, 2].sort_by { |x| last(x) }\n"
			   "  end\n"
			   "  def last(x)\n"
			   "    some(50) { |i| x += i.to_s.size }\n"
			   "    x\n"
			   "  end\n"
			   "  def some(n) = n.times { |i| yield i }\n"
			   "end\n"
			   "$stdout.puts 'ready'; $stdout.flush\n"
			   "A.new.m(3) while true\n";

static const char perl[] = "package A; $| = 1;\n"
			   "sub method { my ($s, $n) = @_;\n"
			   "  return $s->method($n - 1) if $n;\n"
			   "  my @a = sort { $s->last($a) <=> $s->last($b) } 3, 1, 2; return @a }\n"
			   "sub last { my ($s, $x) = @_;\n"
			   "  eval { $s->some(50, sub { $x += length $_[0] }); 1 }; return $x }\n"
			   "sub some { my ($s, $n, $f) = @_; $f->($_) for 1 .. $n }\n"
			   "print \"ready\\n\";\n"
			   "(bless {})->method(3) while 1;\n";

const struct specimen specimens[LANG_COUNT] = {
    [LANG_PYTHON] = {"python3", {"python3", "-c", python}},
    [LANG_PHP] = {"php", {"php", "-r", php}},
    [LANG_RUBY] = {"ruby", {"ruby", "--disable-gems", "-e", ruby}},
    [LANG_PERL] = {"perl", {"perl", "-e", perl}},
};

static bool specimen_has_script(const struct live_stack *stack)
{
	for (uint32_t i = 0; i < stack->frames_n; i++)
		if (stack->frames[i].kind == LIVE_SCRIPT)
			return true;
	return false;
}

struct live *specimen_take(enum language language)
{
	static uint64_t seed = 0x2545f4914f6cdd1dull;
	const struct specimen *specimen = &specimens[language];
	const struct live_stack *stack = NULL;
	struct check_workload workload;
	struct live *live;

	if (!specimen->name || !check_program(specimen->name) ||
	    !check_start(&workload, (char *const *)specimen->argv))
		return NULL;
	live = live_open(workload.pid);
	for (int i = 0; live && i < SPECIMEN_TRIES; i++) {
		live_pause(&seed, 3000);
		stack = live_sample(live, workload.pid);
		if (!stack || specimen_has_script(stack))
			break;
	}
	check_stop(&workload);
	if (live && !stack) {
		live_close(live);
		live = NULL;
	}
	return live;
}
