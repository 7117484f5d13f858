# A merged profile in memory, and its formats. Linked into the exporter and the viewer:
# PROFILE_SRCS for the profile and OTLP, PROFILE_FILE_SRCS in addition to write folded and pprof files.
OTLP_GEN = $(patsubst %,gen/proto/opentelemetry/%.pb-c.c,common resource profiles collector)
PROFILE_SRCS = profile/table.c profile/utf8.c profile/profile.c profile/wire.c \
	profile/dictionary.c profile/otlp_encode.c profile/otlp_check.c profile/translate.c profile/otlp_decode.c \
	$(OTLP_GEN)
PROFILE_FILE_SRCS = profile/folded.c profile/pprof.c profile/gzip.c gen/proto/pprof/profile.pb-c.c
PROFILE_LIBS = -lprotobuf-c -lz

# The headers that protoc-c writes must be there before anything that includes them is compiled.
$(patsubst %,$(BUILD)/%.o,profile/wire profile/dictionary profile/otlp_encode profile/otlp_check profile/translate profile/otlp_decode) \
	$(patsubst %.c,$(BUILD)/%.o,$(OTLP_GEN)): | $(patsubst %,$(BUILD)/%,$(OTLP_GEN))
$(BUILD)/profile/pprof.o: | $(BUILD)/gen/proto/pprof/profile.pb-c.c
