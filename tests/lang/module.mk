# Languages: their walkers and names as ordinary programs, on processes that live and on snapshots of them.
LIVE_SRCS = tests/lang/live.c tests/lang/livefile.c tests/lang/stopped.c tests/lang/hostwalk.c \
	tests/lang/snapshot.c tests/lang/walkers.c tests/lang/fold.c $(LANG_SRCS) symbolizer/symbols.c \
	symbolizer/demangle.c symbolizer/elffile.c symbolizer/reader.c symbolizer/sha256.c shm/table.c \
	$(EHFRAME_SRCS)
# What symbolizer/remote.c reads by is the snapshot's.
LIVE_LIBS = $(SYMBOLIZER_LIBS) -Wl,--wrap=pread

# The stacks of any process, for whoever works on a language.
BENCHES += tests/lang/live-stacks
tests/lang/live-stacks_SRCS = tests/lang/stacks.c $(LIVE_SRCS)
tests/lang/live-stacks_LIBS = $(LIVE_LIBS)
BENCHES += tests/lang/replay
tests/lang/replay_SRCS = tests/lang/replay.c $(LIVE_SRCS)
tests/lang/replay_LIBS = $(LIVE_LIBS)

# Each language's own: tests/lang/x_test.c, which starts a workload, and takes samples (tests/lang/check.h).
define lang_test
TESTS += tests/lang/$1_test
tests/lang/$1_test_SRCS = tests/lang/$1_test.c tests/lang/check.c $(LIVE_SRCS)
tests/lang/$1_test_LIBS = $(LIVE_LIBS) -lcmocka
endef
$(foreach t,check recognize replay python php ruby perl,$(eval $(call lang_test,$t)))
tests/lang/replay_test_SRCS += tests/lang/specimens.c tests/lang/damage.c
tests/lang/recognize_test_SRCS += tests/lang/specimens.c
$(eval $(call fuzz_target,lang,tests/lang/specimens.c tests/lang/check.c $(LIVE_SRCS),$(LIVE_LIBS)))

TESTS += tests/lang/ruby_values_test
tests/lang/ruby_values_test_SRCS = tests/lang/ruby_values_test.c symbolizer/lang/ruby_values.c \
	symbolizer/lang/ruby_layout.c symbolizer/remote.c
tests/lang/ruby_values_test_LIBS = -lcmocka
