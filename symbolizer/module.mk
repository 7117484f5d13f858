# Names for addresses: the process that parses what others wrote.
PROGRAMS += sconce-symbolizer
SYMBOLIZER_SRCS = symbolizer/worker.c symbolizer/ahead.c symbolizer/books.c symbolizer/introductions.c \
	symbolizer/symbolize.c symbolizer/process.c symbolizer/files.c symbolizer/filenames.c symbolizer/reader.c \
	symbolizer/elffile.c symbolizer/symbols.c symbolizer/demangle.c symbolizer/kallsyms.c \
	symbolizer/cgroup.c symbolizer/define.c symbolizer/walk.c symbolizer/view.c \
	symbolizer/patience.c symbolizer/lru.c symbolizer/sha256.c symbolizer/filetable.c \
	symbolizer/memory.c symbolizer/companions.c symbolizer/others.c symbolizer/peers.c \
	symbolizer/crash.c symbolizer/golines.c \
	symbolizer/goinline.c symbolizer/gomodule.c symbolizer/runtimes.c symbolizer/scripts.c \
	shm/table.c $(EHFRAME_SRCS)
# Sections by name, unpacked; symbol tables.
SECTIONS_SRCS = symbolizer/sections.c symbolizer/unpack.c symbolizer/elffile_symbols.c \
	symbolizer/debugdata.c
# Code that is made at run time.
SYMBOLIZER_SRCS += symbolizer/jit.c symbolizer/jitindex.c symbolizer/perfmap.c symbolizer/jitdump.c
# From an open ELF file to its unwind table.
EHFRAME_SRCS = symbolizer/ehframe.c symbolizer/textmap.c symbolizer/cfi.c symbolizer/cfientry.c \
	symbolizer/cfirule.c symbolizer/ehreturn.c symbolizer/cfifill.c symbolizer/dwarfexpr.c \
	symbolizer/cursor.c symbolizer/elfparts.c symbolizer/tablebuild.c symbolizer/gotable.c \
	symbolizer/pclntab.c symbolizer/goplace.c symbolizer/window.c $(SECTIONS_SRCS) $(CODEGAPS_SRCS)
# From debug information to functions, files and lines.
DWARF_SRCS = symbolizer/dwarf.c symbolizer/dwarfloaded.c symbolizer/dwarfmap.c \
	symbolizer/dwarfindex.c symbolizer/dwarfpieces.c symbolizer/dwarfline.c \
	symbolizer/dwarfname.c symbolizer/dwarfsplit.c symbolizer/dwarfranges.c \
	symbolizer/dwarfunit.c symbolizer/dwarfabbrev.c symbolizer/dwarffile.c \
	symbolizer/dwarfbytes.c symbolizer/dwarflimit.c symbolizer/dwarflinehead.c
SYMBOLIZER_SRCS += $(DWARF_SRCS)
# Languages: their runtimes, and the names of their functions.
LANG_SRCS = symbolizer/lang/lang.c symbolizer/remote.c $(FACTS_SRCS) $(PYTHON_SRCS) $(PHP_SRCS) $(RUBY_SRCS) \
	$(PERL_SRCS)
PYTHON_SRCS = symbolizer/lang/python.c symbolizer/lang/python_layout.c symbolizer/lang/python_lines.c \
	symbolizer/lang/python_text.c
PHP_SRCS = symbolizer/lang/php.c symbolizer/lang/phpfile.c
RUBY_SRCS = symbolizer/lang/ruby.c symbolizer/lang/ruby_file.c symbolizer/lang/ruby_layout.c \
	symbolizer/lang/ruby_lines.c symbolizer/lang/ruby_values.c
PERL_SRCS = symbolizer/lang/perl.c symbolizer/lang/perl_names.c
FACTS_SRCS = symbolizer/lang/facts.c symbolizer/lang/facts_symbols.c symbolizer/lang/facts_loop.c \
	symbolizer/lang/facts_code.c symbolizer/lang/facts_ask.c
SYMBOLIZER_SRCS += $(LANG_SRCS)
# Code without call frame information.
CODEGAPS_SRCS = symbolizer/codegaps.c $(CODEFLOW_SRCS)
CODEFLOW_SRCS = symbolizer/codegraph.c symbolizer/codeflow.c symbolizer/codetry.c \
	symbolizer/codeconfirm.c symbolizer/coderows.c symbolizer/codestate.c symbolizer/x86.c
# liburing.so of 2.3 lacks the calls that restrict a ring; the archive has them.
SYMBOLIZER_LIBS = -lelf -l:liburing.a -liberty -lZydis -lz -lzstd -llzma
sconce-symbolizer_SRCS = symbolizer/main.c $(SYMBOLIZER_SRCS) $(CHILD_SRCS) $(SANDBOX_SRCS)
sconce-symbolizer_LIBS = $(SYMBOLIZER_LIBS) $(SANDBOX_LIBS)
